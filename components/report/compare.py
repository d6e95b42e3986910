"""Pools the gains of several runs, and compares two groups of runs: `python -m components.report.compare`.

Runs that differ in the seed share their held-out problems, so their gains are not independent: a problem that training
helps with, it helps with under any seed. Three intervals answer three questions.

- over problems: each problem's gain averaged over the runs, then clustered by problem. Would these runs have gained on
  other problems?
- over seeds: Student's t over the runs' mean gains. Would other seeds have gained on these problems?
- over both: the variance of a crossed design, problems and runs both drawn at random (Searle, Casella and McCulloch,
  Variance Components, ch. 4): s_p^2 / G + s_r^2 / R - s_e^2 / (G R), with Satterthwaite's degrees of freedom. Would
  other seeds have gained on other problems?
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from components.core.errors import UserError
from components.core.page import signed
from components.core.statistics import Estimate, cluster_mean, interval, unpaired_difference

_BOUNDS = (-1.0, 1.0)


@dataclass(frozen=True)
class RunGain:
    """What `summary.json` of one run says."""

    run: str
    seed: int
    base: float
    final: float
    format_base: float
    format_final: float
    by_problem: dict[str, float]
    """Final minus base success of each problem."""


def read_run(path: str) -> RunGain:
    """Read the `summary.json` of one run's report.

    Raises:
        UserError: not such a file, or the run has one evaluation only.
    """
    try:
        summary = json.loads(Path(path).read_text())
        first, last = summary["policies"][0], summary["policies"][-1]
        gains = {name: rates["final"] - rates["base"] for name, rates in summary["by_problem"].items()}
        found = RunGain(
            summary["run"],
            int(summary["seed"]),
            first["pass@1"]["value"],
            last["pass@1"]["value"],
            first["format_share"]["value"],
            last["format_share"]["value"],
            gains,
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise UserError(f"{path}: not a summary.json of a run's report ({error!r})") from error
    if summary["gain"] is None or not gains:
        raise UserError(f"{path}: this run has no gain: it needs evaluations of two policies on the same problems")
    return found


def _matrix(runs: list[RunGain], problems: list[str]) -> np.ndarray:
    return np.array([[run.by_problem[name] for name in problems] for run in runs])


def shared_problems(runs: list[RunGain]) -> list[str]:
    """The problems that all runs have.

    Raises:
        UserError: none.
    """
    shared = set.intersection(*(set(run.by_problem) for run in runs))
    if not shared:
        raise UserError(f"no held-out problem is in all of {', '.join(run.run for run in runs)}")
    return sorted(shared)


def crossed(groups: list[tuple[float, np.ndarray]], confidence: float) -> Estimate:
    """The signed sum of the groups' means with problems and runs both drawn at random.

    Args:
        groups: (sign, gains of R runs x G problems); the problems are the same in all groups, the runs differ.
        confidence: of the interval.

    With one run in a group its seed counts as fixed. `clusters` is the number of problems.
    """
    problems = groups[0][1].shape[1]
    value = sum(sign * float(gains.mean()) for sign, gains in groups)
    if problems < 2:
        return interval(value, 0.0, 1, confidence, _BOUNDS)
    averaged = sum((sign * gains.mean(axis=0) for sign, gains in groups), start=np.zeros(problems))
    terms = [(float(averaged.var(ddof=1)) / problems, problems - 1)]
    for _, gains in groups:
        runs = len(gains)
        if runs < 2:
            continue
        rest = gains - gains.mean(axis=0) - gains.mean(axis=1, keepdims=True) + gains.mean()
        noise = float((rest**2).sum()) / ((runs - 1) * (problems - 1))
        # The noise within a cell is in the problems' term already.
        between = float(gains.mean(axis=1).var(ddof=1)) / runs - noise / (runs * problems)
        terms.append((max(0.0, between), runs - 1))
    variance = sum(term for term, _ in terms)
    weight = sum(term**2 / df for term, df in terms)
    df = variance**2 / weight if weight > 0 else problems - 1
    return interval(value, math.sqrt(variance), problems, confidence, _BOUNDS, df)


def pool(runs: list[RunGain], confidence: float = 0.95) -> dict[str, Any]:
    """The mean gain of several runs with the three intervals (see the module).

    Returns:
        Plain data: `runs`, `problems` (shared by all), `gain` {over_problems, over_seeds, over_both};
        over_seeds is None for a single run.
    """
    problems = shared_problems(runs)
    gains = _matrix(runs, problems)
    means = gains.mean(axis=1).tolist()
    return {
        "runs": [
            {"run": run.run, "seed": run.seed, "base": run.base, "final": run.final, "gain": gain,
             "format_base": run.format_base, "format_final": run.format_final}
            for run, gain in zip(runs, means, strict=True)
        ],
        "problems": len(problems),
        "confidence": confidence,
        "gain": {
            "over_problems": cluster_mean(gains.mean(axis=0).tolist(), confidence, _BOUNDS).as_dict(),
            "over_seeds": cluster_mean(means, confidence, _BOUNDS).as_dict() if len(runs) > 1 else None,
            "over_both": crossed([(1.0, gains)], confidence).as_dict(),
        },
    }  # fmt: skip


def difference(runs: list[RunGain], controls: list[RunGain], confidence: float = 0.95) -> dict[str, Any]:
    """Mean gain of `runs` minus that of `controls`, on the problems that all have, with the three intervals.

    Over problems it is paired (each problem's mean gain in both groups), over seeds it is Welch's.
    """
    problems = shared_problems(runs + controls)
    first, second = _matrix(runs, problems), _matrix(controls, problems)
    paired = (first.mean(axis=0) - second.mean(axis=0)).tolist()
    several = len(runs) > 1 and len(controls) > 1
    seeds = unpaired_difference(second.mean(axis=1).tolist(), first.mean(axis=1).tolist(), confidence)
    return {
        "problems": len(problems),
        "confidence": confidence,
        "over_problems": cluster_mean(paired, confidence, _BOUNDS).as_dict(),
        "over_seeds": seeds.as_dict() if several else None,
        "over_both": crossed([(1.0, first), (-1.0, second)], confidence).as_dict(),
    }


def _lines(name: str, pooled: dict[str, Any]) -> list[str]:
    lines = [f"{name}: {len(pooled['runs'])} runs, {pooled['problems']} problems"]
    width = max(len(row["run"]) for row in pooled["runs"])
    lines += [
        f"  {row['run']:<{width}}  seed {row['seed']}  pass@1 {100 * row['base']:.1f} -> {100 * row['final']:.1f} %  "
        f"gain {100 * row['gain']:+.1f}  format {100 * row['format_base']:.1f} -> {100 * row['format_final']:.1f} %"
        for row in pooled["runs"]
    ]
    return lines + _interval_lines("mean gain", pooled["gain"])


def _interval_lines(name: str, estimates: dict[str, Any]) -> list[str]:
    return [
        f"  {name} over {what:<8}  {signed(estimates[f'over_{what}'])} points" for what in ("problems", "seeds", "both")
    ]


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m components.report.compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("runs", nargs="+", help="summary.json of each run's report")
    parser.add_argument("--control", nargs="+", default=[], help="the same of the runs to compare with")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the intervals (default 0.95)")
    parser.add_argument("--json", help="also write the numbers to this file")
    options = parser.parse_args(arguments)
    try:
        runs, controls = [read_run(path) for path in options.runs], [read_run(path) for path in options.control]
        result: dict[str, Any] = {"runs": pool(runs, options.confidence)}
        lines = _lines("runs", result["runs"])
        if controls:
            result["control"] = pool(controls, options.confidence)
            result["difference"] = difference(runs, controls, options.confidence)
            lines += _lines("control", result["control"])
            lines += [f"runs minus control, {result['difference']['problems']} problems"]
            lines += _interval_lines("difference", result["difference"])
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(lines))
    print(f"{100 * options.confidence:g} % intervals; --help says what each is over.")
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
