"""Does a reference solution pass all tests? Run in the sandbox; verdicts are kept, so that a killed step goes on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from components.core.progress import Progress
from components.core.schema import Problem
from components.core.store import Store
from components.data_prep.rows import Entry
from components.data_prep.spool import spooled

Grade = Callable[[Iterable[dict[str, Any]]], Iterator[dict[str, Any]]]
"""Programs in, verdicts out, in any order; see `sandbox.grade`."""
_SAVE_EVERY_S = 20.0
_REPEATABLE = {"AC", "WA", "RE", "CE", "NF"}
"""Verdicts that would come out the same again; limits and accidents are tried anew."""


class Verdicts:
    """The verdicts of this dataset so far, in files of the store that appear whole."""

    def __init__(self, store: Store, folder: str) -> None:
        self._store, self._folder = store, folder
        self._known: dict[str, str] = {}
        self._new: dict[str, str] = {}
        self._saved = time.monotonic()
        self._files = 0
        for name in sorted(store.list(folder)):
            self._files = max(self._files, int(name.partition(".")[0]) + 1)
            self._known |= json.loads(store.read_bytes(f"{folder}/{name}") or b"{}")

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> str | None:
        """The verdict of one program, if it is known."""
        return self._known.get(key)

    def put(self, key: str, verdict: str) -> None:
        """Remember a verdict; saved at most every few seconds."""
        if verdict in _REPEATABLE:
            self._known[key] = self._new[key] = verdict
        if time.monotonic() - self._saved > _SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        """Write what is new."""
        if self._new:
            self._store.write_bytes(json.dumps(self._new).encode(), f"{self._folder}/{self._files:06d}.json")
            self._files += 1
            self._new = {}
        self._saved = time.monotonic()

    def delete(self) -> None:
        """Remove the files: the dataset's bytes must not depend on how often its making was cut off."""
        self._store.delete(self._folder)


def read_as(problem: Problem, variant: int) -> Problem:
    """The problem under one reading of its tests: 0 as parsed, 1 with the outputs wrapped in lists as they were."""
    if variant == 0:
        return problem
    tests = [replace(test, output=f"[{test.output}]") for test in problem.tests]
    return replace(problem, tests=tests, metadata={**problem.metadata, "wrapped_outputs": False})


def _attempt(entry: Entry, number: int) -> tuple[int, int] | None:
    """The n-th try of a problem as (variant, solution); None when there is no further one."""
    variant, solution = divmod(number, max(1, entry.references))
    return (variant, solution) if variant < entry.variants and entry.references else None


def _key(problem: Problem, variant: int, code: str) -> str:
    digest = hashlib.sha256(f"{problem.content_hash} {variant} ".encode())
    digest.update(code.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def verify(entries: list[Entry], spool: Path, grade: Grade, verdicts: Verdicts) -> dict[str, int]:
    """Drop every problem that none of its references passes; note which reference did, under which reading.

    Problems without references stay: the filter before has decided on them.

    Args:
        entries: to be verified, in the order of their chunks.
        spool: where the problems are.
        grade: runs programs.
        verdicts: those known, and where new ones go.

    Returns:
        How many programs were run, and how many verdicts were known already.
    """
    open_entries = [entry for entry in entries if entry.references]
    seen: dict[str, list[str]] = {entry.problem_id: [] for entry in open_entries}
    progress = Progress("verify references", len(open_entries), "problems")
    counts = {"run": 0, "known": 0}
    resolved = 0
    attempt = 0
    while pending := [entry for entry in open_entries if entry.solution is None and _attempt(entry, attempt)]:
        for entry, place, key, verdict in _one_round(pending, attempt, spool, grade, verdicts, counts):
            verdicts.put(key, verdict)
            seen[entry.problem_id].append(verdict)
            if verdict == "AC":
                entry.variant, entry.solution = place
            if verdict == "AC" or _attempt(entry, attempt + 1) is None:
                resolved += 1
                progress.update(resolved)
        attempt += 1
    verdicts.save()
    for entry in open_entries:
        if entry.solution is None:
            found = seen[entry.problem_id]
            reason = "not_gradable" if set(found) == {"INFRA"} else "reference_failed"
            entry.drop(reason, f"solutions: none of {entry.references} passes ({', '.join(sorted(set(found)))})")
    return counts


def _one_round(
    pending: list[Entry], attempt: int, spool: Path, grade: Grade, verdicts: Verdicts, counts: dict[str, int]
) -> Iterator[tuple[Entry, tuple[int, int], str, str]]:
    """The verdicts of the n-th try of each problem; programs are read from the spool only as the sandbox takes them."""
    running: dict[str, tuple[Entry, tuple[int, int]]] = {}
    known: list[tuple[Entry, tuple[int, int], str, str]] = []

    def programs() -> Iterator[dict[str, Any]]:
        for entry, problem in spooled(pending, spool):
            place = _attempt(entry, attempt)
            assert place is not None  # `pending` holds only those with a further try
            code = problem.reference_solutions[place[1]]
            key = _key(problem, place[0], code)
            if (verdict := verdicts.get(key)) is not None:
                known.append((entry, place, key, verdict))
                continue
            # Two problems may be the same: the id tells them apart, the key does not.
            name = f"{entry.problem_id} {key}"
            running[name] = entry, place
            yield read_as(problem, place[0]).sandbox_program(name, code)

    for verdict in grade(programs()):
        entry, place = running.pop(verdict["id"])
        counts["run"] += 1
        yield entry, place, verdict["id"].rpartition(" ")[2], verdict["verdict"]
    if running:
        raise RuntimeError(f"the sandbox gave no verdict on {len(running)} programs, {next(iter(running))} among them")
    counts["known"] += len(known)
    yield from known
