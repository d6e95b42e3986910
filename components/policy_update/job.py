"""What the step hands to its ranks, and what it hears from them. Imports no heavy library."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

from components.core.config import Config


@dataclass(frozen=True)
class Job:
    """One update; all paths are local folders."""

    config: Config
    stage: int
    iteration: int
    global_step: int
    """Optimizer steps before this update."""
    policy: str
    """Holds `hf/`."""
    policy_version: str
    optimizer: str | None
    """Holds `zero/`; None starts with fresh optimizer state."""
    shards: list[tuple[str, str]]
    """A rollout folder and its reward folder, each."""
    output: str
    """Where `hf/`, `zero/` and `critic/` are written."""
    reference: str | None = None
    """Holds `hf/` of the run's initial policy, if the update compares with it."""
    critic: str | None = None
    """Holds `hf/`, and `zero/` if that can be used; None starts a value model from the policy."""
    history: list[dict[str, float]] = field(default_factory=list)
    """A few numbers of earlier updates; see alarms.py."""
    nan_steps: dict[str, int] = field(default_factory=dict)
    """Steps in a row that ended the earlier updates with a gradient that is not finite; `actor` and `critic`."""

    @property
    def max_response_length(self) -> int:
        """The stage's."""
        return self.config.stages[self.stage - 1].max_response_length

    def write(self, path: Path) -> None:
        """Write the job for ranks that other processes run."""
        values = {**vars(self), "config": self.config.model_dump(mode="json")}
        path.write_text(json.dumps(values))

    @classmethod
    def read(cls, path: Path) -> Job:
        """The inverse of `write`."""
        values = json.loads(path.read_text())
        values["config"] = Config.model_validate(values["config"])
        values["shards"] = [(rollout, reward) for rollout, reward in values["shards"]]
        return cls(**values)


@dataclass(frozen=True)
class Outcome:
    """What came of an update."""

    global_step: int
    steps: int
    """Mini-batches gone through, the skipped ones too."""
    samples: int
    metrics: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    """The job's, and this update."""
    nan_steps: dict[str, int] = field(default_factory=dict)
    """As in the job, after this update."""

    def to_json(self) -> str:
        """As one line."""
        return json.dumps(asdict(self))


class Report(Protocol):
    """Who listens to rank 0."""

    def ready(self) -> None:
        """Imports and loading are over."""

    def log_curve(self, metrics: dict[str, float], x: int) -> None:
        """One optimizer step is done."""
