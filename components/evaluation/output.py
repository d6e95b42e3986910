"""The files of one evaluation: numbers, samples, problems, page and summary."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.core import charts
from components.core.groupings import GROUPINGS
from components.core.page import render, span
from components.core.schema import write_parquet
from components.core.seeds import derive_seed
from components.evaluation.samples import QUESTION_SCHEMA, SAMPLE_SCHEMA, Graded

PAGE_PROBLEMS = 120
"""Problems in the page's browser: more would make it slow to open."""
PAGE_ANSWERS = 4
"""Answers shown of each."""


@dataclass(frozen=True)
class About:
    """What the page says of where its numbers come from."""

    title: str
    policy: str
    """Its URI, or the file that held its programs."""
    sampling: str
    """How answers were drawn, in words; may be empty."""
    trained_until: str | None
    """ISO date of the last contest that may have been trained on; null if unknown."""
    seed: int = 0
    """Picks the problems of the browser."""


def write_files(folder: Path, result: dict[str, Any], graded: Graded, about: About) -> None:
    """Write result.json, samples.parquet, problems.parquet, report.html and summary.md.

    Args:
        folder: exists already.
        result: what `summarize` gave, with `label` and `global_step`.
        graded: the samples behind it.
        about: for the page.
    """
    (folder / "result.json").write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    (folder / "summary.md").write_text(summary_markdown(result))
    (folder / "report.html").write_text(render_page(result, graded, about))
    write_parquet(folder / "samples.parquet", graded.samples, SAMPLE_SCHEMA)
    write_parquet(folder / "problems.parquet", graded.questions, QUESTION_SCHEMA)


def render_page(result: dict[str, Any], graded: Graded, about: About) -> str:
    """The page of one evaluation as one string."""
    chooser = random.Random(derive_seed(about.seed, "evaluation page", result["label"]))
    chosen = {
        question["problem_id"]
        for question in chooser.sample(graded.questions, min(PAGE_PROBLEMS, len(graded.questions)))
    }
    answers: dict[str, list[dict[str, Any]]] = {}
    for sample in graded.samples:
        if sample["problem_id"] in chosen and len(answers.setdefault(sample["problem_id"], [])) < PAGE_ANSWERS:
            answers[sample["problem_id"]].append(sample)
    verdict_parts = [(row["value"], row["share"], row["value"]) for row in result["by_verdict"]]
    return render(
        Path(__file__).with_name("evaluation.html.j2"),
        title=about.title,
        label=result["label"],
        result=result,
        about=about,
        groupings=list(GROUPINGS),
        reliability=charts.columns([(row["value"], row["problems"]) for row in result["reliability"]], "reliability"),
        verdicts_chart=charts.stacked([(result["label"], verdict_parts)], "%", "share of each verdict"),
        months=month_chart(result["by_month"], about.trained_until),
        problems=[
            question | {"samples": answers[question["problem_id"]]}
            for question in graded.questions
            if question["problem_id"] in chosen
        ],
        answers_shown=PAGE_ANSWERS,
    )


def month_chart(rows: list[dict[str, Any]], trained_until: str | None) -> Any:
    """pass@1 by contest month with the end of the training window marked, or None with fewer than two months."""
    dated = [row for row in rows if row["value"] != "unknown"]
    if len(dated) < 2:
        return None
    after = [index for index, row in enumerate(dated) if trained_until and row["value"] > trained_until[:7]]
    spans = [(row["value"], row["pass@1"]["value"], row["pass@1"]["low"], row["pass@1"]["high"]) for row in dated]
    boundary = (after[0], "after the training window") if after and after[0] > 0 else None
    return charts.by_category(spans, "pass@1 by contest month", boundary)


def summary_markdown(result: dict[str, Any]) -> str:
    """The numbers of one evaluation as a markdown table."""
    lines = [
        f"# {result['label']}",
        "",
        f"{result['problems']} problems, {result['samples']} graded answers; INFRA {result['infra_samples']}; "
        f"{100 * result['confidence']:g} % intervals clustered by problem.",
        "",
        "| number | % |",
        "|---|---|",
    ]
    lines += [f"| pass@{k} | {span(estimate)} |" for k, estimate in result["pass@k"].items()]
    lines += [
        f"| right format | {span(result['format_share'])} |",
        f"| pass@1 among well-formed | {span(result['pass@1_well_formed'])} |",
        f"| truncated | {span(result['truncation_rate'])} |",
    ]
    for grouping in GROUPINGS:
        lines += ["", f"| {grouping} | problems | pass@1, % |", "|---|---|---|"]
        lines += [f"| {row['value']} | {row['problems']} | {span(row['pass@1'])} |" for row in result[f"by_{grouping}"]]
    return "\n".join(lines) + "\n"
