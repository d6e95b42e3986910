"""The tasks of a compiled pipeline and what each waits for, read from the YAML that a cluster would run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from components.core.errors import UserError


@dataclass(frozen=True)
class Task:
    """One pod: a component with its parameters, and the numbers of the tasks that must end before it starts."""

    number: int
    name: str
    kind: str
    """The component: `rollout`, `policy-update`."""
    values: dict[str, Any]
    """Its constant parameters and those of the pipelines around it: stage, iteration, label; `item` is a loop's."""
    after: frozenset[int]


def read_graph(path: Path) -> list[Task]:
    """All tasks of a pipeline, loops over constant items unrolled.

    A nested pipeline starts when all its inputs are there, also those that its first tasks do not need, and has ended
    when all its tasks have: so Argo runs it.

    Raises:
        UserError: the file is no compiled pipeline, or loops over items that are known only at run time.
    """
    try:
        document = next(yaml.load_all(path.read_text(), yaml.CSafeLoader))
        reader = _Reader(document["components"])
        reader.dag(document["root"]["dag"], {}, frozenset(), "")
    except (OSError, yaml.YAMLError, StopIteration, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a compiled pipeline ({type(error).__name__}: {error})") from error
    return reader.tasks


class _Reader:
    def __init__(self, components: dict[str, Any]) -> None:
        self._components = components
        self.tasks: list[Task] = []

    def dag(self, dag: dict[str, Any], values: dict[str, Any], after: frozenset[int], where: str) -> frozenset[int]:
        """Add a DAG's tasks; returns the numbers of all of them."""
        ends: dict[str, frozenset[int]] = {}
        given: dict[str, dict[str, Any]] = {}
        todo = dict(dag["tasks"])
        while todo:
            name = next(name for name in todo if all(one in ends for one in todo[name].get("dependentTasks", [])))
            task = todo.pop(name)
            before = after.union(*(ends[one] for one in task.get("dependentTasks", [])))
            own = values | self._values(task, values)
            if "item" in values:  # in a loop a reward is of the stage that its rollout is told
                for one in task.get("dependentTasks", []):
                    own = given[one] | own
            given[name] = own
            label = f"{where}{task['taskInfo']['name']}"
            ends[name] = frozenset().union(
                *(self._task(task, own | item, before, label + suffix) for item, suffix in _items(task, label))
            )
        return frozenset().union(*ends.values())

    def _task(self, task: dict[str, Any], values: dict[str, Any], before: frozenset[int], label: str) -> frozenset[int]:
        component = task["componentRef"]["name"]
        body = self._components[component]
        if "dag" in body:
            # Tasks of the DAG without dependencies of their own wait for what the DAG waits for.
            return self.dag(body["dag"], values, before, f"{label}/") or before
        # Copies of a component are numbered, those of a numbered task twice.
        kind = re.sub(r"(-\d+)+$", "", body["executorLabel"].removeprefix("exec-"))
        shown = {name.removeprefix("pipelinechannel--"): value for name, value in values.items()}
        self.tasks.append(Task(len(self.tasks), label, kind, shown, before))
        return frozenset([len(self.tasks) - 1])

    @staticmethod
    def _values(task: dict[str, Any], outer: dict[str, Any]) -> dict[str, Any]:
        found = {}
        for name, source in task.get("inputs", {}).get("parameters", {}).items():
            if "constant" in source.get("runtimeValue", {}):
                value = source["runtimeValue"]["constant"]
                found[name] = int(value) if isinstance(value, float) and value.is_integer() else value  # all are floats
            elif source.get("componentInputParameter") in outer:
                found[name] = outer[source["componentInputParameter"]]
        return found


def _items(task: dict[str, Any], label: str) -> list[tuple[dict[str, Any], str]]:
    if "parameterIterator" not in task:
        return [({}, "")]
    iterator = task["parameterIterator"]
    if "raw" not in iterator["items"]:
        raise UserError(f"{label}: loops over items that only the run knows; it cannot be planned")
    return [({iterator["itemInput"]: item, "item": item}, f" {item}") for item in json.loads(iterator["items"]["raw"])]
