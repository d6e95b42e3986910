"""What one iteration of a context stage takes, from the simulated schedule."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from pipelines.plan.graph import Task
from pipelines.plan.simulate import Schedule
from pipelines.plan.timing import Timing


def stage_times(
    number: int, timing: Timing, tasks: Sequence[Task], parts: Sequence[dict[str, float]], schedule: Schedule
) -> dict[str, Any]:
    """Seconds of a stage: medians over its iterations, but of an iteration as a whole the mean.

    With staleness two updates may come right after each other, and then none for a while.

    Args:
        number: of the stage, from 1.
        timing: where lengths come from.
        tasks: the graph.
        parts: for each task its time by part.
        schedule: when each ran.
    """
    mine = [task for task in tasks if task.values.get("stage") == number]
    updates = sorted((task for task in mine if task.kind == "policy-update"), key=lambda task: task.values["iteration"])
    rollouts = [task for task in mine if task.kind == "rollout"]
    rewards = [task for task in mine if task.kind == "reward"]

    def median(chosen: Sequence[Task], part: str) -> float:
        return statistics.median(parts[task.number][part] for task in chosen)

    before = [
        schedule.end[task.number]
        for task in tasks
        if task.kind == "policy-update" and task.values["stage"] == number - 1
    ]
    begin = max(before) if before else min(schedule.start[task.number] for task in rollouts)
    end = max(schedule.end[task.number] for task in updates)
    slowest = [
        max(
            parts[task.number]["generate"]
            for task in rollouts
            if task.values["iteration"] == update.values["iteration"]
        )
        for update in updates
    ]
    batches = [timing.batch(task) for task in updates]
    stage = timing.config.stages[number - 1]
    return {
        "name": stage.name,
        "iterations": stage.iterations,
        "iteration_s": (end - begin) / len(updates),
        "rollout_s": {
            "pod start": median(rollouts, "pod start"),
            "load": median(rollouts, "load"),
            "generate, median shard": median(rollouts, "generate"),
            "generate, slowest shard": statistics.median(slowest),
        },
        "reward_s": {"pod start": median(rewards, "pod start"), "grade": median(rewards, "grade")},
        "update_s": {part: median(updates, part) for part in parts[updates[0].number]},
        "mean_response_tokens": statistics.mean(float(batch.mean()) for batch in batches),
        "response_tokens": statistics.mean(float(batch.sum()) for batch in batches),
        "truncated_share": statistics.mean(float((batch >= stage.max_response_length).mean()) for batch in batches),
    }
