"""From samples to the numbers of one evaluation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from statistics import fmean, median
from typing import Any

import numpy as np

from components.core.groupings import GROUPINGS, VERDICTS
from components.core.statistics import Estimate, cluster_mean, cluster_ratio, pass_at_k
from components.evaluation.modes import compare_modes
from components.evaluation.samples import Graded

_HARDER = ("introductory", "easy", "interview", "medium", "medium_hard", "hard", "competition", "very_hard")


def _order(name: str) -> tuple[int, float, str]:
    """Difficulties from easy to hard: the words of LiveCodeBench, APPS and TACO, or ratings; anything else by name."""
    known = _HARDER.index(name.lower()) if name.lower() in _HARDER else len(_HARDER)
    rating = re.match(r"\d+(?=–)", name)
    return known, float(rating[0]) if rating else math.inf, name


def by_problem(samples: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The graded samples (no INFRA) of each problem; a problem without any is left out."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for sample in samples:
        if sample["correct"] is not None:
            grouped.setdefault(sample["problem_id"], []).append(sample)
    return grouped


def shares(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """One problem's mean success and what goes with it; each is a share of its graded samples.

    `truncated` is None where it is not known how answers ended (programs that came from elsewhere).
    """
    known = all(sample["finish_reason"] is not None for sample in samples)
    return {
        "samples": len(samples),
        "correct": fmean(sample["correct"] for sample in samples),
        "well_formed": fmean(sample["well_formed"] for sample in samples),
        "well_formed_correct": fmean(sample["well_formed"] and sample["correct"] for sample in samples),
        "truncated": fmean(sample["finish_reason"] == "length" for sample in samples) if known else None,
    }


def core_numbers(problems: list[dict[str, Any]], confidence: float) -> dict[str, Any]:
    """pass@1, the format share and the truncation rate over some problems, each an Estimate as plain data.

    Args:
        problems: see `shares`; at least one.
        confidence: of the intervals.
    """

    def mean(name: str) -> dict[str, float] | None:
        values = [problem[name] for problem in problems if problem[name] is not None]
        return cluster_mean(values, confidence).as_dict() if values else None

    formed = [problem["well_formed"] for problem in problems]
    among: Estimate | None = None
    if any(formed):
        among = cluster_ratio([problem["well_formed_correct"] for problem in problems], formed, confidence)
    return {
        "problems": len(problems),
        "samples": int(sum(problem["samples"] for problem in problems)),
        "pass@1": mean("correct"),
        "format_share": mean("well_formed"),
        "pass@1_well_formed": among.as_dict() if among else None,
        "truncation_rate": mean("truncated"),
    }


def _pass_k(grouped: dict[str, list[dict[str, Any]]], k: int, confidence: float) -> dict[str, Any] | None:
    """pass@k over the problems that have k graded samples, or None if no problem has."""
    values = [
        pass_at_k(len(samples), sum(sample["correct"] for sample in samples), k)
        for samples in grouped.values()
        if len(samples) >= k
    ]
    return cluster_mean(values, confidence).as_dict() if values else None


def _lengths(samples: list[dict[str, Any]]) -> dict[str, float] | None:
    """Of the answers in tokens, or None where they are unknown (programs that came from elsewhere)."""
    tokens = [sample["response_tokens"] for sample in samples if sample["response_tokens"] is not None]
    if not tokens:
        return None
    return {"mean": fmean(tokens), "median": float(median(tokens)), "p90": float(np.quantile(tokens, 0.9))}


def _by_verdict(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for verdict in VERDICTS:
        chosen = [sample for sample in samples if sample["verdict"] == verdict]
        if chosen:
            ends = [sample["finish_reason"] for sample in chosen]
            rows.append(
                {
                    "value": verdict,
                    "samples": len(chosen),
                    "share": len(chosen) / len(samples),
                    "truncated": None if None in ends else fmean(end == "length" for end in ends),
                    "response_tokens": _lengths(chosen),
                }
            )
    return rows


def _reliability(problems: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """How many problems were solved in which share of their samples: always, never, or by luck."""
    edges = [
        ("never", lambda p: p == 0),
        ("1–25 %", lambda p: 0 < p <= 0.25),
        ("26–50 %", lambda p: 0.25 < p <= 0.5),
        ("51–75 %", lambda p: 0.5 < p <= 0.75),
        ("76–99 %", lambda p: 0.75 < p < 1),
        ("always", lambda p: p == 1),
    ]
    return [
        {"value": name, "problems": sum(inside(problem["correct"]) for problem in problems.values())}
        for name, inside in edges
    ]


def summarize(graded: Graded, *, pass_k: list[int], confidence: float, mode: str = "real") -> dict[str, Any]:
    """All numbers of one evaluation, as JSON-able data.

    Args:
        graded: the samples.
        pass_k: which pass@k; those that no problem has samples for are left out.
        confidence: of the intervals.
        mode: in which the samples were judged; their `other_verdict` is of the other one.

    INFRA samples are left out of every rate and counted in `infra_samples`; a problem with only such samples is
    counted in `infra_problems`.

    Raises:
        ValueError: every sample is INFRA, so that nothing can be said.
    """
    grouped = by_problem(graded.samples)
    if not grouped:
        raise ValueError(f"all {len(graded.samples)} samples are INFRA: the grader failed, not the policy")
    problems = {name: shares(samples) for name, samples in grouped.items()}
    questions = {question["problem_id"]: question for question in graded.questions}
    result = core_numbers(list(problems.values()), confidence)
    result["pass@k"] = {
        str(k): found for k in sorted(set(pass_k)) if (found := _pass_k(grouped, k, confidence)) is not None
    }
    result["infra_samples"] = sum(sample["correct"] is None for sample in graded.samples)
    result["infra_problems"] = len(graded.questions) - len(problems)
    result["unsampled_problems"] = graded.unsampled
    result["confidence"] = confidence
    result["response_tokens"] = _lengths(graded.samples)
    result["by_verdict"] = _by_verdict(graded.samples)
    result["mode"] = mode
    result["modes"] = compare_modes(graded, mode, confidence)
    for grouping, name_of in GROUPINGS.items():
        groups: dict[str, list[dict[str, Any]]] = {}
        for problem_id, values in problems.items():
            groups.setdefault(name_of(questions[problem_id]), []).append(values)
        result[f"by_{grouping}"] = [
            {"value": name, **core_numbers(groups[name], confidence)} for name in sorted(groups, key=_order)
        ]
    result["reliability"] = _reliability(problems)
    result["by_problem"] = problems
    return result


def headline_metrics(result: dict[str, Any]) -> dict[str, float]:
    """The few numbers that go to MLflow and KFP, flat."""
    metrics = {f"pass@{k}": estimate["value"] for k, estimate in result["pass@k"].items()}
    metrics["pass@1"] = result["pass@1"]["value"]
    metrics["pass@1_low"], metrics["pass@1_high"] = result["pass@1"]["low"], result["pass@1"]["high"]
    metrics["format_share"] = result["format_share"]["value"]
    if result["pass@1_well_formed"]:
        metrics["pass@1_well_formed"] = result["pass@1_well_formed"]["value"]
    if result["truncation_rate"]:
        metrics["truncation_rate"] = result["truncation_rate"]["value"]
    if result["response_tokens"]:
        metrics["response_tokens"] = result["response_tokens"]["mean"]
    if result["modes"]:
        metrics |= {f"pass@1_{mode}": estimate["value"] for mode, estimate in result["modes"]["pass@1"].items()}
        metrics["modes_differ"] = float(result["modes"]["differing"])
    metrics["infra_samples"] = float(result["infra_samples"])
    return metrics
