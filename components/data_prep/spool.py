"""Parsing: raw batches in, checked problems in spool files and small entries in memory out.

A batch is one unit of work, done here or in another process. Problems themselves never gather in memory.
"""

from __future__ import annotations

import io
import json
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa

from components.core.config import Config
from components.core.schema import Problem
from components.data_prep import sketch
from components.data_prep.checks import check
from components.data_prep.literals import allow_long_integers
from components.data_prep.parsers import PARSERS
from components.data_prep.rows import Dropped, Entry, RawBatch, Reject, Source

CountTokens = Callable[[Problem], int]
_POOL_FROM = 8
"""Batches of a source from which worker processes pay for their start."""
MAX_REFERENCES = 8
"""Reference solutions kept of a problem; TACO has hundreds for some."""


@dataclass(frozen=True)
class Parsed:
    """The outcome of one batch."""

    entries: list[Entry]
    dropped: list[Dropped]
    rows: int


def parse_batch(
    batch: RawBatch, source: Source, config: Config, count_tokens: CountTokens | None, chunk: int, spool: Path
) -> Parsed:
    """Parse, check and spool the rows of one batch; every row becomes an entry or a dropped row.

    Args:
        batch: the rows.
        source: where they come from.
        config: the run's.
        count_tokens: tokens of a problem's prompt as the policy sees it; None skips that filter.
        chunk: the number of the spool file to write.
        spool: the folder for it.
    """
    allow_long_integers()
    entries: list[Entry] = []
    dropped: list[Dropped] = []
    problems: list[Problem] = []
    if batch.error:
        dropped.append(Dropped(source.label, batch.file, batch.first_row, "", "unreadable_file", batch.error))
    for i, raw in enumerate(rows_of(batch)):
        row, ordinal = batch.first_row + i, batch.first_ordinal + i
        problem_id = ""
        try:
            problem = PARSERS[source.config.format](decoded(raw), source, ordinal)
            problem_id = problem.problem_id
            problem, split = check(problem, source, config.data)
            _check_references(problem, split, source, config)
            tokens = count_tokens(problem) if count_tokens is not None else None
            _check_length(tokens, config.data.max_prompt_length)
            problem = replace(
                problem,
                content_hash=sketch.content_hash(problem),
                reference_solutions=problem.reference_solutions[:MAX_REFERENCES],
            )
            entry = _entry(problem, source, split, batch.file, row, chunk, len(problems))
            entries.append(replace(entry, prompt_tokens=tokens))
            problems.append(problem)
        except Reject as error:
            dropped.append(Dropped(source.label, batch.file, row, problem_id, error.reason, error.detail))
    if problems:
        _dump(problems, spool / f"{chunk:06d}")
    return Parsed(entries, dropped, len(entries) + len(dropped))


def rows_of(batch: RawBatch) -> Iterator[Any]:
    """The rows of a batch, one at a time; see `decoded`."""
    if isinstance(batch.payload, list):
        yield from batch.payload
    else:
        for i in range(batch.payload.num_rows):  # one at a time: as Python objects a batch takes many times its size
            yield batch.payload.slice(i, 1).to_pylist()[0]


def decoded(raw: Any) -> dict[str, Any]:
    """A row as a mapping, whatever its file handed out.

    Raises:
        Reject: `not_json`.
    """
    if isinstance(raw, bytes):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise Reject("not_json", f"row: {error}"[:200]) from None
    if not isinstance(raw, dict):
        raise Reject("not_json", f"row: {type(raw).__name__}, not an object")
    return raw


def _check_references(problem: Problem, split: str, source: Source, config: Config) -> None:
    if problem.reference_solutions or not config.data.verify:
        return
    if not (config.data.keep_unverified_test if split == "test" else source.config.trusted):
        raise Reject("no_reference", "no Python reference solution, so that nothing shows its tests to be right")


def _check_length(tokens: int | None, limit: int) -> None:
    if tokens is not None and tokens > limit:
        raise Reject("prompt_too_long", f"question: {tokens} tokens, data.max_prompt_length={limit}")


def _entry(problem: Problem, source: Source, split: str, file: str, row: int, chunk: int, offset: int) -> Entry:
    return Entry(
        problem_id=problem.problem_id,
        source=source.label,
        split=split,
        file=file,
        row=row,
        chunk=chunk,
        offset=offset,
        content_hash=problem.content_hash,
        statement=sketch.statement_hash(sketch.words(problem.question)),
        tests_hash=sketch.tests_hash(problem),
        shingles=sketch.shingles(sketch.words(sketch.body(problem.question))),
        version=sketch.version_of(problem.question),
        references=len(problem.reference_solutions),
        variants=2 if problem.metadata.get("wrapped_outputs") else 1,
    )


def parse_source(
    batches: Iterator[RawBatch],
    source: Source,
    config: Config,
    count_tokens: CountTokens | None,
    first_chunk: int,
    spool: Path,
) -> Iterator[Parsed]:
    """Parse all batches of a source, in order; large sources in parallel over the cores."""
    head = list(islice(batches, _POOL_FROM))
    numbered = enumerate(chain(head, batches), first_chunk)
    cores = len(os.sched_getaffinity(0))
    if len(head) < _POOL_FROM or cores == 1:
        for chunk, batch in numbered:
            yield parse_batch(batch, source, config, count_tokens, chunk, spool)
        return
    # Spawned, since forking a process with threads can dead-lock.
    start = (source, config, count_tokens, spool)
    with ProcessPoolExecutor(cores, get_context("spawn"), initializer=_start_worker, initargs=start) as pool:
        waiting: deque[Future[Parsed]] = deque()
        for chunk, batch in numbered:
            waiting.append(pool.submit(_work, batch, chunk))
            if len(waiting) > 2 * cores:  # bounds what is in flight
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


_worker: tuple[Source, Config, CountTokens | None, Path] | None = None


def _start_worker(source: Source, config: Config, count_tokens: CountTokens | None, spool: Path) -> None:
    """What all batches of a source need, sent to a worker once."""
    global _worker
    _worker = source, config, count_tokens, spool


def _work(batch: RawBatch, chunk: int) -> Parsed:
    assert _worker is not None
    source, config, count_tokens, spool = _worker
    return parse_batch(batch, source, config, count_tokens, chunk, spool)


def _dump(problems: list[Problem], path: Path) -> None:
    # Pickled one after the other: several times faster than parquet, and a reader holds one problem at a time. Only
    # this step's own scratch folder is ever read so.
    with pa.CompressedOutputStream(str(path), "lz4") as file:
        for problem in problems:
            pickle.dump(problem, file, protocol=5)


def spooled(entries: Iterable[Entry], spool: Path) -> Iterator[tuple[Entry, Problem]]:
    """The problems of entries that come in the order they were parsed in."""
    for chunk, group in groupby(entries, key=lambda entry: entry.chunk):
        with pa.CompressedInputStream(str(spool / f"{chunk:06d}"), "lz4") as raw, io.BufferedReader(raw) as file:
            at = 0
            for entry in group:
                for _ in range(entry.offset - at):
                    pickle.load(file)
                at = entry.offset + 1
                yield entry, pickle.load(file)
