"""The numbers of a whole run, and the few lines of them that a terminal shows."""

from __future__ import annotations

import json
from typing import Any

from components.core.config import Config
from components.core.errors import UserError
from components.core.page import duration, signed, span
from components.core.pairwise import Evaluated, gain_over
from components.core.store import Pointer, Store
from components.report.collect import LEFT_OUT, Curves

_FROM_RESULT = (
    "problems",
    "samples",
    "pass@1",
    "pass@k",
    "format_share",
    "pass@1_well_formed",
    "truncation_rate",
    "response_tokens",
    "infra_samples",
    "by_verdict",
)


def summarize_run(
    config: Config,
    evaluations: list[Evaluated],
    curves: Curves,
    times: list[dict[str, Any]],
    left_out: dict[str, int] | None = None,
) -> dict[str, Any]:
    """Everything that `summary.json` holds; `compare` reads it back.

    Args:
        config: the run's configuration.
        evaluations: in the order of training, the base policy first.
        curves: of the optimizer steps.
        times: see `step_times`.
        left_out: see the function of that name.
    """
    base, final = evaluations[0], evaluations[-1]
    confidence = config.evaluation.confidence
    total = sum(row["total_s"] for row in times)
    startup = sum(row["startup_s"] for row in times)
    return {
        "run": config.run,
        "profile": config.profile,
        "seed": config.seed,
        "config_hash": config.hash(),
        "shuffled_rewards": config.reward.shuffle,
        "model_name": config.model_name,
        "confidence": confidence,
        "store": config.store,
        "experiment": config.experiment,
        "tracking_uri": config.shared_tracking_uri(),
        "policies": [
            {
                "label": one.label,
                "global_step": one.global_step,
                "policy": one.numbers["policy"],
                "evaluation": one.uri,
                **{name: one.numbers[name] for name in _FROM_RESULT},
                "modes": _modes(one.numbers.get("modes")),
            }
            for one in evaluations
        ],
        "gain": gain_over(base, final, confidence) if len(evaluations) > 1 else None,
        "gains_over_base": [gain_over(base, one, confidence) for one in evaluations[1:]],
        "time": {
            "by_kind": times,
            "total_s": total,
            "startup_s": startup,
            "startup_share": startup / total if total else None,
        },
        "left_out": [f"{count} {LEFT_OUT[name]}" for name, count in (left_out or {}).items()],
        "curves": curves,
        "by_problem": {
            name: {"base": values["correct"], "final": final.numbers["by_problem"][name]["correct"]}
            for name, values in base.numbers["by_problem"].items()
            if name in final.numbers["by_problem"]
        },
    }


def _modes(modes: dict[str, Any] | None) -> dict[str, Any] | None:
    """What both modes of judging say, without the list of programs."""
    return modes and {name: modes[name] for name in ("first", "second", "pass@1", "difference", "answers", "differing")}


def headline_metrics(summary: dict[str, Any]) -> dict[str, float]:
    """The few numbers of a run that go to MLflow and KFP, flat."""
    metrics = {
        "base/pass@1": summary["policies"][0]["pass@1"]["value"],
        "final/pass@1": summary["policies"][-1]["pass@1"]["value"],
        "base/format_share": summary["policies"][0]["format_share"]["value"],
        "final/format_share": summary["policies"][-1]["format_share"]["value"],
    }
    gain = summary["gain"]
    if gain:
        metrics |= {f"gain/pass@1_{end}": gain["pass@1"][end] for end in ("low", "high")}
        metrics["gain/pass@1"] = gain["pass@1"]["value"]
        metrics |= {f"gain/{part}": gain["parts"][part]["value"] for part in ("format", "skill")}
    if summary["time"]["startup_share"] is not None:
        metrics["time/startup_share"] = summary["time"]["startup_share"]
    return metrics


def summary_markdown(summary: dict[str, Any]) -> str:
    """The run as a page of markdown."""
    lines = [
        f"# {summary['run']}",
        "",
        f"{summary['model_name']}, seed {summary['seed']}, "
        f"{100 * summary['confidence']:g} % intervals clustered by problem"
        f"{'; **rewards shuffled (negative control)**' if summary['shuffled_rewards'] else ''}.",
        "",
        "| policy | steps | problems | pass@1, % | right format, % | pass@1 among well-formed, % | truncated, % |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['label']} | {row['global_step']} | {row['problems']} | {span(row['pass@1'])} | "
        f"{span(row['format_share'])} | {span(row['pass@1_well_formed'])} | {span(row['truncation_rate'])} |"
        for row in summary["policies"]
    ]
    gain = summary["gain"]
    if gain:
        lines += [
            "",
            f"Gain of {gain['to']} over {gain['from']}, paired over {gain['problems']} problems: "
            f"{signed(gain['pass@1'])} points, of which format {signed(gain['parts']['format'])} and skill "
            f"{signed(gain['parts']['skill'])}. Right format: {signed(gain['format_share'])} points. "
            f"McNemar p = {gain['mcnemar']['p']:.2g}.",
        ]
    if summary["left_out"]:
        lines += ["", f"Left out by the rollouts: {'; '.join(summary['left_out'])}."]
    lines += ["", "| step | times | total | start-up |", "|---|---|---|---|"]
    lines += [
        f"| {row['kind']} | {row['steps']} | {duration(row['total_s'])} | {duration(row['startup_s'])} |"
        for row in summary["time"]["by_kind"]
    ]
    return "\n".join(lines) + "\n"


def terminal_summary(report: Pointer, store: Store) -> str:
    """What `deepcoder run` prints at the end: at most 15 lines of plain text.

    Raises:
        UserError: the report is gone.
    """
    data = store.read_bytes(f"{store.rel(report.uri)}/summary.json")
    if data is None:
        raise UserError(f"{report.uri}: holds no summary.json. Run the step `report` again.")
    summary = json.loads(data)
    policies, gain, time = summary["policies"], summary["gain"], summary["time"]
    lines = [f"{summary['run']}: held-out pass@1, {policies[0]['problems']} problems (right format beside it)"]
    # A run of many stages shows its ends; the page has them all.
    shown = policies if len(policies) <= 6 else [policies[0], *policies[-5:]]
    width = max(len(row["label"]) for row in shown)
    lines += [
        f"  {row['label']:<{width}}  {span(row['pass@1'])} %   format {span(row['format_share'])} %" for row in shown
    ]
    if gain:
        lines.append(f"  gain    {signed(gain['pass@1'])} points, paired over {gain['problems']} problems")
        parts = gain["parts"]
        lines.append(f"          format {signed(parts['format'])}, skill {signed(parts['skill'])}")
    if summary["shuffled_rewards"]:
        lines.append("  rewards were shuffled: a negative control")
    if summary.get("left_out"):
        lines.append(f"  left out  {'; '.join(summary['left_out'])}")
    if time["total_s"]:
        kinds = sorted(time["by_kind"], key=lambda row: -row["total_s"])[:4]
        split = ", ".join(f"{row['kind']} {100 * row['total_s'] / time['total_s']:.0f} %" for row in kinds)
        lines.append(
            f"  time    {duration(time['total_s'])} in steps: {split}; start-up {100 * time['startup_share']:.0f} %"
        )
    lines.append(f"  page    {report.uri}/report.html")
    lines.append(f"  MLflow  {summary['tracking_uri'] or 'MLFLOW_TRACKING_URI'}, experiment {summary['experiment']}")
    return "\n".join(lines)
