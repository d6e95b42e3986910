"""Reads what the steps of a run left in the store: evaluations, training curves and times."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from components.core.config import Config
from components.core.errors import UserError
from components.core.pairwise import Evaluated, read_folder
from components.core.store import MARKER, Pointer, Store

Curves = dict[str, list[tuple[int, float]]]
"""Metric to (optimizer steps so far, value) points in order."""

KINDS = {
    "prepare_data": "prepare data",
    "rollout": "rollout",
    "reward": "reward",
    "policy_update": "policy update",
    "eval/rollout": "rollout (evaluation)",
    "eval/reward": "reward (evaluation)",
    "evaluate": "evaluate",
    "report": "report",
}
"""The kinds of step in the order in which a run needs them."""

_NO_CURVES = frozenset({"global_step", "timing_s/startup", "timing_s/total"})
"""The axis itself, and what the section on time shows."""


def read_evaluations(store: Store, pointers: list[Pointer]) -> list[Evaluated]:
    """All evaluations in the order of training, the base policy first.

    Raises:
        UserError: none, one that is gone or changed, or two with the same label.
    """
    if not pointers:
        raise UserError("the report needs at least one evaluation")
    found = [read_folder(store.fetch(pointer), pointer.uri) for pointer in pointers]
    found.sort(key=lambda one: (one.global_step, one.label != "base", one.label))
    labels = [one.label for one in found]
    if len(set(labels)) < len(labels):
        raise UserError(f"two evaluations have the same label: {', '.join(labels)}")
    return found


def training_curves(policies: list[Pointer]) -> Curves:
    """The metrics of all updates over optimizer steps; numbers that are not finite are left out.

    A policy's `extra["curve"]` has a row an optimizer step; what its `extra["metrics"]` has beyond that (about the
    update as a whole) belongs to its last step.
    """
    rows: dict[int, dict[str, Any]] = {}
    for policy in policies:
        curve = policy.extra.get("curve") or []
        for row in curve:
            rows.setdefault(int(row["global_step"]), {}).update(row)
        last = policy.extra.get("global_step", curve[-1]["global_step"] if curve else 0)
        known = {name for row in curve for name in row}
        whole = {name: value for name, value in (policy.extra.get("metrics") or {}).items() if name not in known}
        if last:
            rows.setdefault(int(last), {}).update(whole)
    curves: Curves = {}
    for step in sorted(rows):
        for name, value in rows[step].items():
            if name not in _NO_CURVES and isinstance(value, int | float) and math.isfinite(value):
                curves.setdefault(name, []).append((step, float(value)))
    return curves


def reward_curves(store: Store, policies: list[Pointer]) -> Curves:
    """What the reward steps said of the answers that each update learned from: format share, verdicts.

    A point an update, at its first optimizer step; the shards are weighted by their rows.
    """
    points: dict[str, dict[int, list[tuple[int, float]]]] = {}
    for policy in policies:
        curve = policy.extra.get("curve")
        if not curve or not policy.uri.endswith("/policy"):
            continue
        first = min(int(row["global_step"]) for row in curve)
        base = store.rel(policy.uri).removesuffix("/policy")
        for name in store.list(f"{base}/reward"):
            if not name.endswith(f"/{MARKER}"):
                continue
            marker = json.loads(store.read_bytes(f"{base}/reward/{name}") or b"{}")
            for metric, value in (marker.get("extra", {}).get("metrics") or {}).items():
                if metric.startswith(("reward/", "verdict/")):
                    shards = points.setdefault(metric, {}).setdefault(first, [])
                    shards.append((int(marker["rows"]), float(value)))
    return {
        metric: [
            (step, sum(rows * value for rows, value in shards) / sum(rows for rows, _ in shards))
            for step, shards in sorted(by_step.items())
            if any(rows for rows, _ in shards)
        ]
        for metric, by_step in points.items()
    }


def stage_starts(config: Config, policies: list[Pointer]) -> list[tuple[float, str]]:
    """Half a step before each later stage's first optimizer step, and the stage's name."""
    first: dict[int, int] = {}
    for policy in policies:
        place = re.search(r"/stage-(\d+)/iter-\d+/", policy.uri)
        steps = [int(row["global_step"]) for row in policy.extra.get("curve") or []]
        if place and steps:
            stage = int(place[1])
            first[stage] = min([*steps, first.get(stage, steps[0])])
    return [(first[stage] - 0.5, config.stages[stage - 1].name) for stage in sorted(first) if stage > 1]


LEFT_OUT = {
    "prompts/too_long": "prompts longer than data.max_prompt_length",
    "turns/too_long": "turns whose conversation left no room for an answer",
    "rollout/unfinished": "samples not finished within rollout.wall_limit_s",
}
"""What rollouts leave out, and what that is called."""


def left_out(store: Store, run: str) -> dict[str, int]:
    """What the run's rollouts left out, by its name in LEFT_OUT; each time counts. Only what did happen."""
    counts: dict[str, int] = {}
    for name in store.list(f"runs/{run}"):
        if re.search(rf"/rollout/shard-\d+/{MARKER}$", name):
            marker = json.loads(store.read_bytes(f"runs/{run}/{name}") or b"{}")
            for metric in LEFT_OUT:
                count = int(marker.get("extra", {}).get("metrics", {}).get(metric, 0))
                if count:
                    counts[metric] = counts.get(metric, 0) + count
    return counts


def _timing(values: dict[str, Any]) -> tuple[float, float] | None:
    metrics = values.get("metrics") or {}
    if "timing_s/total" not in metrics:
        return None
    return float(metrics.get("timing_s/startup", 0.0)), float(metrics["timing_s/total"])


def step_times(store: Store, run: str, dataset: Pointer | None) -> list[dict[str, Any]]:
    """Seconds by kind of step, start-up (process, imports, loading) apart.

    Every finished step of the run counts once, with what it took when it ran, also if a later start of the run found
    its output complete. Shards that ran side by side are added up, so that the sum can exceed the wall time.

    Returns:
        Rows of {kind, steps, startup_s, total_s} in the order of KINDS.
    """
    totals: dict[str, list[float]] = {}

    def add(kind: str, timing: tuple[float, float] | None) -> None:
        if timing is not None:
            row = totals.setdefault(kind, [0, 0.0, 0.0])
            row[0] += 1
            row[1] += timing[0]
            row[2] += timing[1]

    if dataset is not None:
        add(dataset.step, _timing(dataset.extra))
    for name in store.list(f"runs/{run}"):
        if not name.endswith(f"/{MARKER}"):
            continue
        marker = json.loads(store.read_bytes(f"runs/{run}/{name}") or b"{}")
        step = str(marker.get("step"))
        evaluation = name.startswith("eval/") and step in ("rollout", "reward")
        add(f"eval/{step}" if evaluation else step, _timing(marker.get("extra", {})))
    order = [*KINDS, *sorted(totals.keys() - KINDS.keys())]
    return [
        {"kind": KINDS.get(kind, kind), "steps": int(row[0]), "startup_s": row[1], "total_s": row[2]}
        for kind in order
        if (row := totals.get(kind))
    ]
