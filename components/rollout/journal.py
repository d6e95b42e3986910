"""The rows of a batch that is under way, in the store before the batch is done."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from components.core.schema import ROLLOUT_SCHEMA
from components.core.store import Store

_ROWS = 256
_SECONDS = 10.0
"""Rows are written once there are so many, or the last were written so long ago."""
_COUNT = b"turns_too_long"
"""In a file's metadata, so that what an earlier try had counted is not forgotten."""


class Journal:
    """Finished samples of one batch. What an earlier try had written is there again."""

    def __init__(self, store: Store, where: str, *, keep: bool) -> None:
        """Read what is there.

        Args:
            store: the store.
            where: the journal's own folder.
            keep: False holds the rows in memory only.
        """
        self._store, self._where, self._keep = store, where, keep
        self._names = sorted(store.list(where)) if keep else []
        self._tables = [pq.read_table(store.local_file(f"{where}/{name}")) for name in self._names]
        self._rows: list[dict[str, Any]] = []
        self._too_long = 0
        self._written = time.monotonic()

    def samples(self) -> set[tuple[str, int]]:
        """The (problem_id, sample_id) that are there."""
        return {
            (problem, sample)
            for table in self._tables
            for problem, sample in zip(table["problem_id"].to_pylist(), table["sample_id"].to_pylist(), strict=True)
        }

    def add(self, rows: list[dict[str, Any]], too_long: int = 0) -> None:
        """Take all rows of one sample, and how many turns it was not asked for."""
        self._rows += rows
        self._too_long += too_long
        if len(self._rows) >= _ROWS or time.monotonic() - self._written >= _SECONDS:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        table = _with_count(pa.Table.from_pylist(self._rows, schema=ROLLOUT_SCHEMA), self._too_long)
        self._tables.append(table)
        self._rows, self._too_long = [], 0
        if self._keep:
            with self._store.scratch() as scratch:
                pq.write_table(table, scratch / "rows")
                name = f"rows-{len(self._names):06d}.parquet"
                self._store.put(scratch / "rows", f"{self._where}/{name}")
                self._names.append(name)
        self._written = time.monotonic()

    def table(self) -> pa.Table:
        """All rows, in an order that does not depend on which sample was finished first."""
        self._flush()
        whole = pa.concat_tables([ROLLOUT_SCHEMA.empty_table(), *self._tables])
        ordered = whole.sort_by([("problem_id", "ascending"), ("sample_id", "ascending"), ("turn", "ascending")])
        return _with_count(ordered, self._too_long + sum(map(turns_too_long, self._tables)))

    def drop(self) -> None:
        """Remove the folder: the rows are elsewhere now."""
        self._store.delete(self._where)


def turns_too_long(table: pa.Table) -> int:
    """How many turns the samples of a file were not asked for, since their conversation left no room for an answer."""
    return int((table.schema.metadata or {}).get(_COUNT, 0))


def _with_count(table: pa.Table, too_long: int) -> pa.Table:
    return table.replace_schema_metadata({_COUNT: str(too_long)})
