"""The evaluate step: from the rewards of one policy on the held-out problems to numbers with intervals."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

from components.core.config import Config
from components.core.errors import UserError
from components.core.paths import evaluation_path
from components.core.schema import write_parquet
from components.core.seeds import derive_seed
from components.core.step import Step
from components.core.store import Pointer, Store
from components.evaluation import charts
from components.evaluation.numbers import GROUPINGS, headline_metrics, summarize
from components.evaluation.page import render, span
from components.evaluation.samples import (
    QUESTION_SCHEMA,
    SAMPLE_SCHEMA,
    Graded,
    attach_failing_tests,
    read_graded,
    read_questions,
)

PAGE_PROBLEMS = 120
"""Problems in the page's browser: more would make it slow to open."""
PAGE_ANSWERS = 4
"""Answers shown of each."""


def run(
    *,
    config: Config,
    dataset: Pointer,
    policy: Pointer,
    rewards: list[Pointer],
    label: str,
    output: str,
    html: str | None = None,
) -> Pointer:
    """Sum up one policy's answers to the held-out problems.

    Args:
        config: the run's configuration.
        dataset: what `prepare_data` wrote; its `test/` is the held-out split.
        policy: the policy that answered.
        rewards: one reward folder a shard; `extra["rollouts"]` is the pointer of the answers.
        label: names the policy in the run: `base`, `stage-1`.
        output: where the pointer goes.
        html: where a copy of the page goes, or None.

    Returns:
        The pointer of `result.json`, `samples.parquet`, `problems.parquet`, `report.html` and `summary.md`;
        `extra` holds label, global_step (optimizer steps the policy has had) and the dataset's pointer.

    Raises:
        UserError: inputs that do not belong together, or nothing that could be judged.
    """
    rollouts = [Pointer(**reward.extra["rollouts"]) for reward in rewards]
    inputs = {"dataset": dataset, "policy": policy}
    inputs |= {f"reward-{index}": reward for index, reward in enumerate(rewards)}
    inputs |= {f"rollout-{index}": rollout for index, rollout in enumerate(rollouts)}
    where = f"{evaluation_path(config, label)}/result"
    settings = [label, config.evaluation.model_dump(mode="json")]
    with Step(config, "evaluate", where, settings=settings, inputs=inputs, output=output) as step:
        if step.pointer is None:
            step.track()  # importing MLflow is start-up, not work
            step.ready()
            held_out = _held_out(step.store, dataset)
            folders = [(step.store.fetch(a), step.store.fetch(b)) for a, b in zip(rollouts, rewards, strict=True)]
            graded = read_graded(read_questions(held_out), folders)
            attach_failing_tests(graded.samples, held_out)
            try:
                result = summarize(graded, pass_k=config.evaluation.pass_k, confidence=config.evaluation.confidence)
            except ValueError as error:
                raise UserError(f"{where}: {error}") from error
            steps_done = optimizer_steps(policy)
            result |= {"label": label, "global_step": steps_done, "policy": policy.uri}
            metrics = headline_metrics(result)
            _write(step, result, graded, policy)
            step.log_curve({f"eval/{name}": value for name, value in metrics.items()}, steps_done)
            print(f"{label}: held-out pass@1 {span(result['pass@1'])} %, right format {span(result['format_share'])} %")
            step.commit(
                kind="evaluation",
                rows=len(graded.samples),
                metrics=metrics,
                label=label,
                global_step=steps_done,
                policy_uri=policy.uri,
                dataset=asdict(dataset),
            )
        if html is not None:
            copy_page(step.store, where, html)
    assert step.pointer is not None
    return step.pointer


def optimizer_steps(policy: Pointer) -> int:
    """How many optimizer steps a policy has had; 0 for a base policy."""
    curve = policy.extra.get("curve") or [{}]
    return int(policy.extra.get("global_step", curve[-1].get("global_step", 0)))


def copy_page(store: Store, where: str, html: str) -> None:
    """Copy `report.html` of a complete folder to a KFP artifact's path."""
    Path(html).parent.mkdir(parents=True, exist_ok=True)
    Path(html).write_bytes(store.read_bytes(f"{where}/report.html") or b"")


def _held_out(store: Store, dataset: Pointer) -> Path:
    """The `test/` folder alone: the training split may be many gigabytes away on S3."""
    rel = store.rel(dataset.uri)
    found = store.complete(rel)
    if found is None or found.sha256 != dataset.sha256:
        raise UserError(f"{dataset.uri}: not the complete dataset that the pointer names. Run prepare_data again.")
    return store.local_dir(f"{rel}/test")


def _write(step: Step, result: dict[str, Any], graded: Graded, policy: Pointer) -> None:
    with step.store.scratch() as folder:
        (folder / "result.json").write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
        (folder / "summary.md").write_text(summary_markdown(result))
        (folder / "report.html").write_text(_page(step.config, result, graded, policy))
        write_parquet(folder / "samples.parquet", graded.samples, SAMPLE_SCHEMA)
        write_parquet(folder / "problems.parquet", graded.questions, QUESTION_SCHEMA)
        for name in ("report.html", "summary.md"):
            step.artifact(folder / name)
        step.store.put_dir(folder, step.where)


def _page(config: Config, result: dict[str, Any], graded: Graded, policy: Pointer) -> str:
    chooser = random.Random(derive_seed(config.seed, "evaluation page", result["label"]))
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
        title=f"{config.run}: {result['label']}",
        label=result["label"],
        result=result,
        settings=config.evaluation,
        policy=policy,
        groupings=list(GROUPINGS),
        reliability=charts.columns([(row["value"], row["problems"]) for row in result["reliability"]], "reliability"),
        verdicts_chart=charts.stacked([(result["label"], verdict_parts)], "%", "share of each verdict"),
        months=month_chart(config, result["by_month"]),
        problems=[
            question | {"samples": answers[question["problem_id"]]}
            for question in graded.questions
            if question["problem_id"] in chosen
        ],
        answers_shown=PAGE_ANSWERS,
    )


def month_chart(config: Config, rows: list[dict[str, Any]]) -> Any:
    """pass@1 by contest month with the end of the training window marked, or None with fewer than two months."""
    dated = [row for row in rows if row["value"] != "unknown"]
    if len(dated) < 2:
        return None
    last_trained = config.data.train_until.isoformat()[:7]
    after = [index for index, row in enumerate(dated) if row["value"] > last_trained]
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
