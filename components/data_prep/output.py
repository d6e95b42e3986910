"""The finished dataset: parquet shards, the list of dropped rows, the manifest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from components.core.schema import PROBLEM_SCHEMA, Problem, write_parquet
from components.core.seeds import derive_seed
from components.core.store import Store, file_sha256
from components.data_prep.rows import Dropped, Entry
from components.data_prep.spool import spooled
from components.data_prep.verify import read_as

SHARD_BYTES = 64 << 20
SHARD_ROWS = 2000
_EXAMPLES = 5
_SAMPLED = 10


class Ledger:
    """Every raw row once: in, or out with a reason. The full list goes to a file, counts and examples stay here."""

    def __init__(self, path: Path, labels: Iterable[str]) -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self.rows: Counter[str] = Counter()
        self.reasons: dict[str, Counter[str]] = {label: Counter() for label in labels}
        self.examples: dict[str, list[dict[str, Any]]] = {}

    def drop(self, row: Dropped) -> None:
        """Note one row that left."""
        self._file.write(json.dumps(asdict(row), ensure_ascii=True) + "\n")
        self.reasons[row.source][row.reason] += 1
        examples = self.examples.setdefault(row.reason, [])
        if len(examples) < _EXAMPLES:
            examples.append(asdict(row))

    def drop_entries(self, entries: Iterable[Entry]) -> None:
        """Note the problems that left after parsing."""
        for entry in entries:
            if entry.reason:
                fields = (entry.source, entry.file, entry.row, entry.problem_id, entry.reason, entry.detail)
                self.drop(Dropped(*fields))

    def total_dropped(self) -> int:
        """Rows that left, over all sources."""
        return sum(reasons.total() for reasons in self.reasons.values())

    def close(self) -> None:
        """No row leaves any more."""
        self._file.close()


@dataclass
class Written:
    """What the shards hold, for the manifest and the report."""

    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    kept: dict[str, Counter[str]] = field(default_factory=dict)
    """Split to rows a source."""
    numbers: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Split to the distribution of each number, one entry a row."""
    counts: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    """Split to the counts of each label."""
    sample: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """A few rows, picked by the seed, with the number that picked them."""

    def note(self, split: str, problem: Problem, seed: int, prompt_tokens: int | None = None) -> None:
        """Count one row that is written."""
        self.kept.setdefault(split, Counter())[problem.source] += 1
        numbers = self.numbers.setdefault(split, {})
        lengths = {
            "tests": len(problem.tests),
            "question_chars": len(problem.question),
            "test_chars": sum(len(test.input) + len(test.output) for test in problem.tests),
        }
        if prompt_tokens is not None:
            lengths["prompt_tokens"] = prompt_tokens
        for name, value in lengths.items():
            numbers.setdefault(name, []).append(value)
        counts = self.counts.setdefault(split, {})
        for name, label in {
            "kind": problem.tests[0].kind,
            "comparator": problem.comparator,
            "difficulty": problem.difficulty,
            "verified": "yes" if problem.metadata.get("verified") else "no",
        }.items():
            counts.setdefault(name, Counter())[label] += 1
        draw = derive_seed(seed, "report", problem.problem_id)
        row = {**asdict(replace(problem, tests=problem.tests[:1], question=problem.question[:2000])), "split": split}
        self.sample = sorted([*self.sample, (draw, row)], key=lambda item: item[0])[:_SAMPLED]


def finished(entry: Entry, problem: Problem) -> Problem:
    """The row as it is written: the reading of the tests and the reference that verification confirmed."""
    problem = read_as(problem, entry.variant)
    if entry.solution is not None:
        problem = replace(problem, reference_solutions=[problem.reference_solutions[entry.solution]])
    return replace(problem, metadata={**problem.metadata, "verified": entry.solution is not None})


def write_shards(
    entries: list[Entry], split: str, spool: Path, store: Store, where: str, scratch: Path, seed: int, written: Written
) -> None:
    """Write one split as `SPLIT/part-NNNNN.parquet`; at most about SHARD_BYTES of text are in memory."""
    for number, rows in enumerate(_shards(entries, split, spool, seed, written)):
        name = f"{split}/part-{number:05d}.parquet"
        local = scratch / "part.parquet"
        count = write_parquet(local, rows, PROBLEM_SCHEMA)
        written.files[name] = {"rows": count, "sha256": file_sha256(local)}
        store.put(local, f"{where}/{name}")


def _shards(
    entries: list[Entry], split: str, spool: Path, seed: int, written: Written
) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    size = 0
    for entry, problem in spooled(entries, spool):
        problem = finished(entry, problem)
        written.note(split, problem, seed, entry.prompt_tokens)
        rows.append(problem.to_row())
        size += len(problem.question) + sum(len(test.input) + len(test.output) for test in problem.tests)
        if size >= SHARD_BYTES or len(rows) >= SHARD_ROWS:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def quantiles(values: list[int]) -> dict[str, float]:
    """Least, quartiles, greatest and mean, so that the manifest stays small."""
    ordered = sorted(values)
    last = len(ordered) - 1
    picked = {name: ordered[round(last * q)] for name, q in _QUANTILES.items()}
    return {**picked, "mean": round(sum(ordered) / len(ordered), 2)}


_QUANTILES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "max": 1.0}


def manifest(
    ledger: Ledger, written: Written, sources: list[dict[str, Any]], settings: dict[str, Any]
) -> dict[str, Any]:
    """Everything that a reader needs to judge the dataset; holds no time and no machine's name.

    Raises:
        RuntimeError: the counts do not add up.
    """
    counts: dict[str, Any] = {}
    for label, reasons in ledger.reasons.items():
        kept = {split: written.kept.get(split, Counter())[label] for split in ("train", "test")}
        counts[label] = {"rows": ledger.rows[label], **kept, "dropped": dict(sorted(reasons.items()))}
        if ledger.rows[label] != sum(kept.values()) + reasons.total():
            raise RuntimeError(f"{label}: {ledger.rows[label]} rows in, but {counts[label]} accounted for")
    return {
        "counts": counts,
        "sources": sources,
        "settings": settings,
        "files": written.files,
        "distributions": {
            split: {name: quantiles(values) for name, values in numbers.items()}
            for split, numbers in sorted(written.numbers.items())
        },
        "labels": {
            split: {name: dict(sorted(counter.items())) for name, counter in labels.items()}
            for split, labels in sorted(written.counts.items())
        },
        "examples": dict(sorted(ledger.examples.items())),
    }
