"""Grading a JSON-lines file into another, so that a killed run can go on.

A verdict is committed once its line, newline included, is in OUT. A rerun cuts a torn last line off, counts the ids
that are there, and grades the rest of IN. Lines without an id of their own get their line number, from 0.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from typing import IO, Any, TypedDict

from .api import grade
from .docker_backend import ContainerSettings
from .docker_backend import grade_in_container as in_container
from .model import Mode, allow_long_integers


class _Grading(TypedDict):
    mode: Mode
    workers: int | None
    early_exit: bool
    allow_weak: bool


def _identity_key(identity: Any) -> str:
    return json.dumps(identity, sort_keys=True)


def committed(path: str) -> Counter[str]:
    """The ids in OUT by how often they occur; a torn last line is cut off the file."""
    done: Counter[str] = Counter()
    if not os.path.exists(path):
        return done
    with open(path, "rb+") as file:
        good = 0
        for line in file:
            if not line.endswith(b"\n"):
                break
            good += len(line)
            try:
                done[_identity_key(json.loads(line)["id"])] += 1
            except (ValueError, KeyError, TypeError):
                continue  # not a verdict: whatever it is, it stays
        file.truncate(good)
    return done


def read_programs(lines: Iterable[bytes], done: Counter[str]) -> Iterator[Any]:
    """Programs of a JSON-lines file that are not done yet; an unreadable line is handed on as what it is."""
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            program = json.loads(line)
        except (ValueError, RecursionError) as error:
            program = {"unreadable": f"line {number + 1}: {error}"}
        if not isinstance(program, dict):
            program = {"unreadable": f"line {number + 1} is {type(program).__name__}, not an object"}
        program.setdefault("id", number)
        key = _identity_key(program["id"])
        if done[key] > 0:
            done[key] -= 1
        else:
            yield program


def _count_lines(path: str) -> int:
    with open(path, "rb") as file:
        return sum(1 for line in file if line.strip())


class _Progress:
    """A bar on a terminal, nothing elsewhere; redrawn ten times a second at the most."""

    def __init__(self, total: int, stream: IO[str]) -> None:
        self._total, self._stream = total, stream
        self._on = total > 0 and stream.isatty()
        self._done, self._started, self._drawn = 0, time.monotonic(), 0.0

    def advance(self, counts: Counter[str]) -> None:
        """One more verdict."""
        self._done += 1
        now = time.monotonic()
        if self._on and (now - self._drawn > 0.1 or self._done == self._total):
            self._drawn = now
            rate = self._done / max(now - self._started, 1e-6)
            filled = 30 * self._done // self._total
            left = (self._total - self._done) / rate
            self._stream.write(
                f"\r[{'#' * filled}{'.' * (30 - filled)}] {self._done}/{self._total}  {rate:.0f}/s  "
                f"{left:.0f} s left  AC {counts['AC']}  INFRA {counts['INFRA']} \x1b[K"
            )
            self._stream.flush()

    def close(self) -> None:
        """Leave the line."""
        if self._on:
            self._stream.write("\n")


def grade_file(
    programs: str,
    verdicts: str,
    *,
    mode: Mode = "real",
    workers: int | None = None,
    early_exit: bool = True,
    allow_weak: bool = False,
    container: ContainerSettings | None = None,
) -> Counter[str]:
    """Grade IN into OUT and count this run's verdicts; each may be `-`. Raises OSError and WeakSandboxError.

    container: grade in such a container instead of in this process.
    """
    allow_long_integers()
    done = committed(verdicts) if verdicts != "-" else Counter()
    grading: _Grading = {"mode": mode, "workers": workers, "early_exit": early_exit, "allow_weak": allow_weak}
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        source: IO[bytes] = sys.stdin.buffer if programs == "-" else stack.enter_context(open(programs, "rb"))
        total = 0 if programs == "-" else _count_lines(programs) - done.total()
        # Its own descriptor, unbuffered: one write a line, so that a kill leaves whole lines and at most one torn one.
        target: str | int = verdicts if verdicts != "-" else os.dup(sys.stdout.fileno())
        sink = stack.enter_context(open(target, "ab", buffering=0))
        progress = _Progress(total, sys.stderr)
        stack.callback(progress.close)
        remaining = read_programs(source, done)
        first = next(remaining, None)
        if first is None:
            return counts
        remaining = chain([first], remaining)
        graded = grade(remaining, **grading) if container is None else in_container(remaining, container, **grading)
        for verdict in graded:
            _write_all(sink, json.dumps(verdict).encode("ascii") + b"\n")
            counts[verdict["verdict"]] += 1
            progress.advance(counts)
        if verdicts != "-":
            os.fsync(sink.fileno())
    return counts


def _write_all(sink: IO[bytes], line: bytes) -> None:
    rest = memoryview(line)
    while rest:  # a pipe may take a part
        rest = rest[sink.write(rest) :]
