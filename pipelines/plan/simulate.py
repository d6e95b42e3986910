"""A discrete-event simulation of a run: tasks start when what they wait for has ended and their GPUs are free."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from components.core.errors import UserError
from pipelines.plan.graph import Task


@dataclass(frozen=True)
class Schedule:
    """When each task ran."""

    start: list[float]
    end: list[float]
    gpu_seconds: float
    """GPUs held, times how long."""

    @property
    def makespan(self) -> float:
        """Seconds from the first task's start to the last one's end."""
        return max(self.end, default=0.0)


class _Nodes:
    """Free GPUs by machine. A task's GPUs lie in one, or fill whole machines."""

    def __init__(self, gpus: int, per_node: int) -> None:
        self._per_node = per_node
        self._free = [per_node] * (gpus // per_node) + ([gpus % per_node] if gpus % per_node else [])

    def take(self, gpus: int) -> dict[int, int] | None:
        """Machines and how many GPUs of each; None while there are too few. The fullest machine that has room."""
        if gpus == 0:
            return {}
        if gpus <= self._per_node:
            fitting = [node for node, free in enumerate(self._free) if free >= gpus]
            taken = {min(fitting, key=lambda node: self._free[node]): gpus} if fitting else None
        else:
            whole = [node for node, free in enumerate(self._free) if free == self._per_node]
            count = -(-gpus // self._per_node)
            taken = dict.fromkeys(whole[:count], self._per_node) if len(whole) >= count else None
        for node, number in (taken or {}).items():
            self._free[node] -= number
        return taken

    def give(self, taken: dict[int, int]) -> None:
        for node, number in taken.items():
            self._free[node] += number


def simulate(
    tasks: Sequence[Task], seconds: Sequence[float], gpus: Sequence[int], *, total_gpus: int, gpus_per_node: int
) -> Schedule:
    """Run a graph. Of the tasks that are ready, the one first in the graph starts first; smaller ones may pass it.

    Args:
        tasks: the graph.
        seconds: how long each takes.
        gpus: how many each holds; a task without GPUs never waits for a machine.
        total_gpus: of the cluster.
        gpus_per_node: of a machine.

    Raises:
        UserError: a task wants more GPUs than there are.
    """
    for task, wanted in zip(tasks, gpus, strict=True):
        # Asked of an empty cluster.
        if _Nodes(total_gpus, gpus_per_node).take(wanted) is None:
            raise UserError(
                f"{task.name} holds {wanted} GPUs, which {total_gpus} in machines of {gpus_per_node} do not give: "
                "raise --gpus, or lower policy_update.ranks or rollout.tensor_parallel_size"
            )
    missing = [len(task.after) for task in tasks]
    waiters: dict[int, list[int]] = defaultdict(list)
    for task in tasks:
        for before in task.after:
            waiters[before].append(task.number)
    ready = [task.number for task in tasks if not task.after]
    running: list[tuple[float, int, dict[int, int]]] = []
    start, end = [0.0] * len(tasks), [0.0] * len(tasks)
    nodes, now = _Nodes(total_gpus, gpus_per_node), 0.0
    while ready or running:
        for number in sorted(ready):
            taken = nodes.take(gpus[number])
            if taken is not None:
                ready.remove(number)
                start[number], end[number] = now, now + seconds[number]
                heapq.heappush(running, (end[number], number, taken))
        now, number, taken = heapq.heappop(running)
        nodes.give(taken)
        for waiter in waiters[number]:
            missing[waiter] -= 1
            if not missing[waiter]:
                ready.append(waiter)
    held = sum(one * count for one, count in zip(seconds, gpus, strict=True))
    return Schedule(start, end, held)
