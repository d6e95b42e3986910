"""The report step: one page and one summary of a whole run."""

from __future__ import annotations

import json
import time
from pathlib import Path

from components.core.config import Config
from components.core.step import Step
from components.core.store import Pointer
from components.report.collect import (
    KINDS,
    left_out,
    read_evaluations,
    reward_curves,
    stage_starts,
    step_times,
    training_curves,
)
from components.report.summary import headline_metrics, summarize_run, summary_markdown, terminal_summary
from components.report.view import render_page

__all__ = ["run", "terminal_summary"]


def run(*, config: Config, evaluations: list[Pointer], policies: list[Pointer], output: str, html: str) -> Pointer:
    """Write the report of a run.

    Args:
        config: the run's configuration.
        evaluations: what the evaluate steps wrote, in any order; the one of the base policy is compared with the last.
        policies: what the policy updates wrote, in any order; their `extra["curve"]` holds the training curves.
        output: where the pointer goes.
        html: where a copy of the page goes.

    Returns:
        The pointer of `report.html`, `summary.json` and `summary.md`.

    Raises:
        UserError: no evaluation, or one that is gone.
    """
    where = f"runs/{config.run}/report"
    inputs = {f"evaluation-{one.extra['label']}": one for one in evaluations}
    inputs |= {f"policy-{index}": policy for index, policy in enumerate(policies)}
    settings = [config.hash(), config.evaluation.confidence]
    with Step(config, "report", where, settings=settings, inputs=inputs, output=output) as step:
        if step.pointer is None:
            step.track()  # importing MLflow is start-up, not work
            step.ready()
            startup = time.time() - step.started
            evaluated = read_evaluations(step.store, evaluations)
            dataset = Pointer(**evaluations[0].extra["dataset"])
            curves = training_curves(policies) | reward_curves(step.store, policies)
            times = step_times(step.store, config.run, dataset)
            own = {"kind": KINDS["report"], "steps": 1, "startup_s": startup, "total_s": time.time() - step.started}
            summary = summarize_run(config, evaluated, curves, [*times, own], left_out(step.store, config.run))
            page = render_page(config, step.store, dataset, summary, evaluated, curves, stage_starts(config, policies))
            with step.store.scratch() as folder:
                (folder / "summary.json").write_text(json.dumps(summary, indent=1, sort_keys=True) + "\n")
                (folder / "summary.md").write_text(summary_markdown(summary))
                (folder / "report.html").write_text(page)
                for name in ("report.html", "summary.json", "summary.md"):
                    step.artifact(folder / name, on_parent=True)
                step.store.put_dir(folder, where)
            metrics = headline_metrics(summary)
            step.log_curve(metrics, evaluated[-1].global_step)
            step.commit(kind="report", rows=len(evaluated), metrics=metrics)
        Path(html).parent.mkdir(parents=True, exist_ok=True)
        Path(html).write_bytes(step.store.read_bytes(f"{where}/report.html") or b"")
    assert step.pointer is not None
    return step.pointer
