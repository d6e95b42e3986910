"""What moves between the parts of data preparation: raw batches, rejected rows, parsed entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from components.core.config import SourceConfig


class Reject(Exception):
    """A row leaves; `reason` is counted, `detail` names the key and what is wrong with it."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True)
class RawBatch:
    """Consecutive rows of one file, not decoded yet, so that decoding can happen in another process."""

    file: str
    """As a person would name it."""
    first_row: int
    """Row number in the file of the first one; from 0."""
    first_ordinal: int
    """Row number in the whole source of the first one; from 0."""
    payload: list[bytes] | list[dict[str, Any]] | Any
    """Lines of JSON, decoded rows, or an Arrow record batch."""
    error: str = ""
    """Set when the rest of the file could not be read; such a batch counts as one row and holds none."""


@dataclass(frozen=True)
class Source:
    """A configured source with everything a parser needs; small enough to send to a process."""

    label: str
    """Its name in problem ids and counts."""
    config: SourceConfig
    solutions: dict[str, list[str]] = field(default_factory=dict)
    """Reference solutions from elsewhere, by question id."""
    special_judge: dict[str, int] = field(default_factory=dict)
    """TACO's labels by row number: 1 many answers, 2 letter case, 3 float tolerance."""
    excluded: frozenset[str] = frozenset()
    """Row numbers or question ids that are left out."""


@dataclass
class Entry:
    """What stays in memory of a parsed problem: where it lies, and what tells it from others."""

    problem_id: str
    source: str
    split: str
    """train | test"""
    file: str
    row: int
    chunk: int
    """Number of the spool file that holds the problem."""
    offset: int
    """Row in that spool file."""
    content_hash: str
    statement: str
    """Hash of the statement's words."""
    tests_hash: str
    shingles: np.ndarray
    """Sorted hashes (uint64) of the statement's word shingles."""
    version: str
    """Which version of a problem its statement says it is; see `sketch.version_of`."""
    references: int
    """How many reference solutions it came with."""
    prompt_tokens: int | None = None
    """Length of its prompt as the policy sees it; None where no tokenizer was given."""
    variants: int = 1
    """How many readings its tests have; see `verify.read_as`."""
    reason: str = ""
    """Why it left; empty while it is in."""
    detail: str = ""
    variant: int = 0
    """Which reading of its tests the reference confirmed; see `verify.read_as`."""
    solution: int | None = None
    """Which reference passed."""

    def drop(self, reason: str, detail: str = "") -> None:
        """Take the problem out, with its reason."""
        self.reason, self.detail = reason, detail


@dataclass(frozen=True)
class Dropped:
    """A raw row that never became a problem, or a problem that left later."""

    source: str
    file: str
    row: int
    problem_id: str
    reason: str
    detail: str


def alive(entries: list[Entry], split: str | None = None) -> Iterator[Entry]:
    """The entries still in, in order."""
    return (entry for entry in entries if not entry.reason and split in (None, entry.split))
