"""What every step does around its own work: find finished output, log, commit, leave a pointer."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from components.core.config import Config
from components.core.errors import UserError
from components.core.progress import say
from components.core.store import Pointer, Store, config_hash, open_store

STARTED = "DEEPCODER_STARTED"
"""An environment variable: when a step was asked for, seconds since the epoch, if before its process began."""

_KEY_FILE = "_KEY"
_process_is_fresh = True


class Step:
    """One execution of one step.

    A step whose output is complete for the same key is `done` on entry and must return `pointer` at once. Else its
    folder holds only files that an earlier try of the same key had finished.
    """

    def __init__(
        self, config: Config, name: str, where: str, *, settings: Any, inputs: dict[str, Pointer], output: str | Path
    ) -> None:
        """Look for finished output.

        Args:
            config: the run's configuration.
            name: the step's name.
            where: the folder in the store.
            settings: all configuration that the output depends on, as JSON-able data.
            inputs: pointers that the output depends on; their hashes are part of the key.
            output: where the pointer goes (a KFP artifact's path).
        """
        global _process_is_fresh
        asked = float(os.environ.pop(STARTED, 0)) or psutil.Process().create_time()
        self.started = asked if _process_is_fresh else time.time()
        _process_is_fresh = False
        self.config, self.name, self.where, self._output = config, name, where, output
        self.label = where.removeprefix(f"runs/{config.run}/")
        self.store: Store = open_store(config.store)
        self.key = config_hash([name, settings, {key: pointer.sha256 for key, pointer in inputs.items()}])
        self.metrics: dict[str, float] = {}
        self.curve: list[dict[str, float]] = []
        self.pointer = self.store.complete(where, self.key)
        self.done = self.pointer is not None
        self._startup: float | None = None
        self._tracking: Any = None
        self._run_id = ""
        if self.pointer is not None:
            self.pointer.write(output)
            say(self.label, "complete already, nothing to do")
        elif self.store.read_bytes(f"{where}/{_KEY_FILE}") != self.key.encode():
            self.store.delete(where)
            self.store.write_bytes(self.key.encode(), f"{where}/{_KEY_FILE}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.done:
            return
        if kind is None:
            self.track().end(self._run_id, "FINISHED")
            return
        if self._tracking is not None:
            # The step's own error matters more than one of the tracking server, which may have the same cause.
            with suppress(Exception):
                self._tracking.end(self._run_id, "FAILED")
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise UserError(
                f"{self.label}: no space left below {self.store.root} ({error}). Free some or change store=, then "
                "rerun: finished parts are kept."
            ) from error

    def track(self) -> Any:
        """The run's `Tracking`, opened at first use with this step's nested run."""
        if self._tracking is None:
            before = time.time()
            from components.core.tracking import Tracking

            self._tracking = Tracking(self.config)
            self._run_id = self._tracking.nested(self.label)
            if self._startup is not None:
                self._startup += time.time() - before
        return self._tracking

    def ready(self, worked_s: float = 0.0) -> None:
        """Imports and loading are over, the work begins.

        The time so far, without `worked_s` seconds of it, is start-up, and so is opening MLflow.
        """
        self._startup = time.time() - self.started - worked_s

    def artifact(self, path: Path, *, on_parent: bool = False) -> None:
        """Attach a file to this step's MLflow run, or to the parent."""
        tracking = self.track()
        tracking.artifact(tracking.parent_id if on_parent else self._run_id, path)

    def log_curve(self, metrics: dict[str, float], x: int) -> None:
        """Log one point of the parent's curves, and the same on this step's run. `x`: optimizer steps so far."""
        self.curve.append({"global_step": x, **metrics})
        tracking = self.track()
        tracking.log(self._run_id, metrics, x)
        tracking.log(tracking.parent_id, metrics, x)

    def commit(
        self, *, kind: str, rows: int, metrics: dict[str, float], hashes: dict[str, str] | None = None, **extra: Any
    ) -> Pointer:
        """Mark the output complete, log its metrics, write the pointer.

        Args:
            kind: see `Pointer.kind`.
            rows: how many rows.
            metrics: this step's numbers; they travel in the pointer as `extra["metrics"]`, with the timings.
            hashes: sha256 of files already known.
            extra: small values for later steps and the report; the points of `log_curve` join them as `curve`.
        """
        tracking = self.track()
        now = time.time()
        self.metrics = {
            **metrics,
            "timing_s/startup": self._startup if self._startup is not None else now - self.started,
            "timing_s/total": now - self.started,
        }
        tracking.log(self._run_id, self.metrics, 0)
        if self.curve:
            extra["curve"] = self.curve
        self.pointer = self.store.commit(
            self.where, kind=kind, step=self.name, rows=rows, key=self.key, hashes=hashes, metrics=self.metrics, **extra
        )
        self.pointer.write(self._output)
        return self.pointer


def publish(pointer: Pointer, metrics: Any) -> None:
    """Copy a step's numbers to a KFP `Metrics` artifact, and to its file, which caching needs to exist.

    Infinite ones and NaN are left out: KFP's launcher reads strict JSON, which has no word for them.
    """
    import json
    import math

    values = {name: value for name, value in pointer.extra.get("metrics", {}).items() if math.isfinite(value)}
    for name, value in values.items():
        metrics.log_metric(name, value)
    Path(metrics.path).parent.mkdir(parents=True, exist_ok=True)
    Path(metrics.path).write_text(json.dumps(values, allow_nan=False))
