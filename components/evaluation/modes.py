"""The same answers under both modes of judging: what each says, and on which programs they differ."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import Any

from components.core.statistics import cluster_mean, paired_difference
from components.evaluation.samples import Graded

LISTED = 200
"""Differing programs that are listed; all of them are counted, and are in samples.parquet."""


def other_mode(mode: str) -> str:
    """The mode that `mode` is not: `real` is the truth, `lcb` compares with published numbers."""
    return "lcb" if mode == "real" else "real"


def compare_modes(graded: Graded, mode: str, confidence: float) -> dict[str, Any] | None:
    """pass@1 in both modes over the answers that both could judge, or None if no answer was judged in both.

    Returns:
        `first` and `second` (the modes), `pass@1` of each, `difference` (first - second, paired by problem), `answers`
        judged in both, `differing` (how many), `changes` (from, to, how many) and `programs`, the first LISTED of
        them; estimates as plain data.
    """
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    changes: Counter[tuple[str, str]] = Counter()
    programs = []
    for sample in graded.samples:
        first, second = sample["verdict"], sample["other_verdict"]
        if second is None or "INFRA" in (first, second):
            continue
        pairs.setdefault(sample["problem_id"], []).append((first == "AC", second == "AC"))
        if first != second:
            changes[first, second] += 1
            programs.append(
                {**{key: sample[key] for key in ("problem_id", "sample_id")}, "first": first, "second": second}
            )
    if not pairs:
        return None
    rates = [[fmean(pair[side] for pair in answers) for answers in pairs.values()] for side in (0, 1)]
    return {
        "first": mode,
        "second": other_mode(mode),
        "pass@1": {
            name: cluster_mean(values, confidence).as_dict()
            for name, values in zip((mode, other_mode(mode)), rates, strict=True)
        },
        "difference": paired_difference(rates[1], rates[0], confidence).as_dict(),
        "answers": sum(map(len, pairs.values())),
        "differing": len(programs),
        "changes": [{"first": a, "second": b, "programs": count} for (a, b), count in changes.most_common()],
        # Those where success is at stake come first.
        "programs": sorted(programs, key=lambda row: "AC" not in (row["first"], row["second"]))[:LISTED],
    }
