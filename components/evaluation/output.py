"""The files of one evaluation: numbers, samples, problems, page and summary."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.core import charts
from components.core.groupings import GROUPINGS
from components.core.page import render, signed, span
from components.core.schema import write_parquet
from components.core.seeds import derive_seed
from components.evaluation.samples import QUESTION_SCHEMA, SAMPLE_SCHEMA, Graded

PAGE_PROBLEMS = 400
"""Problems in the page's browser at most: more would make it slow to open."""
PAGE_ANSWERS = 4
"""Answers shown of each."""
PAGE_CHARACTERS = 6_000_000
"""What the browser's statements and programs may add up to; later problems, in a seeded order, are left out."""
_LONGEST_TEXT = 8_000
"""Characters shown of a statement or a program."""


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
    problems = browsed_problems(graded, derive_seed(about.seed, "evaluation page", result["label"]))
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
        problems=problems,
        shown={problem["problem_id"] for problem in problems},
        answers_shown=PAGE_ANSWERS,
    )


def browsed_problems(graded: Graded, seed: int) -> list[dict[str, Any]]:
    """The problems of the page's browser, each with some `samples`, its `verdicts` counted, and whether modes differ.

    Of a problem's answers the first of each verdict and of each disagreement of modes are shown, then the earliest.
    """
    samples: dict[str, list[dict[str, Any]]] = {}
    for sample in graded.samples:
        samples.setdefault(sample["problem_id"], []).append(sample)
    order = list(graded.questions)
    random.Random(seed).shuffle(order)
    chosen: dict[str, dict[str, Any]] = {}
    left = PAGE_CHARACTERS
    for question in order[:PAGE_PROBLEMS]:
        mine = samples[question["problem_id"]]
        entry = {
            **question,
            "question": _cut(question["question"]),
            "samples": [
                {**sample, "program": _cut(sample["program"]) if sample["program"] else None}
                for sample in _telling(mine)[:PAGE_ANSWERS]
            ],
            "verdicts": Counter(sample["verdict"] for sample in mine),
            "differs": any(sample["other_verdict"] not in (None, sample["verdict"]) for sample in mine),
            "answers": len(mine),
        }
        left -= len(entry["question"])
        left -= sum(len(one["program"] or "") + len(one["first_failure"] or "") for one in entry["samples"])
        if left < 0:
            break
        chosen[question["problem_id"]] = entry
    return [chosen[question["problem_id"]] for question in graded.questions if question["problem_id"] in chosen]


def _telling(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: set[tuple[str, str | None]] = set()
    first: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for sample in samples:
        kind = (sample["verdict"], sample["other_verdict"])
        (rest if kind in seen else first).append(sample)
        seen.add(kind)
    return first + rest


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} … ({len(text)} characters)"


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
    modes = result["modes"]
    if modes:
        names = (modes["first"], modes["second"])
        lines += [
            "",
            f"Judged in both modes: pass@1 {span(modes['pass@1'][names[0]])} % ({names[0]}), "
            f"{span(modes['pass@1'][names[1]])} % ({names[1]}), difference {signed(modes['difference'])} points; "
            f"verdicts differ on {modes['differing']} of {modes['answers']} programs.",
        ]
    for grouping in GROUPINGS:
        lines += ["", f"| {grouping} | problems | pass@1, % |", "|---|---|---|"]
        lines += [f"| {row['value']} | {row['problems']} | {span(row['pass@1'])} |" for row in result[f"by_{grouping}"]]
    return "\n".join(lines) + "\n"
