"""Raw rows out of files of any common form, in bounded batches; a file that breaks off is reported, not fatal."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from components.core.errors import UserError
from components.core.store import file_sha256
from components.data_prep.rows import RawBatch

BATCH_BYTES = 4 << 20
BATCH_ROWS = 256
SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".ndjson", ".parquet", ".arrow")
_READ = 1 << 20
_MAX_ELEMENT = 1 << 29


def local_files(path: Path, key: str) -> list[Path]:
    """The data files at a path, sorted by name.

    Raises:
        UserError: nothing there, or nothing of a known form.
    """
    if path.is_file():
        files = [path]
    elif path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file() and file.name.endswith(SUFFIXES)]
    else:
        raise UserError(f"{key}={path}: no such file or directory")
    if not files or not all(file.name.endswith(SUFFIXES) for file in files):
        raise UserError(f"{key}={path}: no data file; known endings are {', '.join(SUFFIXES)}")
    return files


def fingerprint(files: list[Path]) -> str:
    """A hash of the names and bytes of files."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name} {file_sha256(file)}\n".encode())
    return digest.hexdigest()


def read_file(path: Path, name: str, ordinal: int) -> Iterator[RawBatch]:
    """All rows of one file.

    Args:
        path: where it is.
        name: what to call it in counts and errors.
        ordinal: number of the first row in the whole source.

    Yields:
        Batches of at most BATCH_ROWS rows and about BATCH_BYTES bytes; one with `error` set where reading stopped.
    """
    row = 0
    try:
        for payload in _payloads(path):
            yield RawBatch(name, row, ordinal + row, payload)
            row += len(payload)
    except (OSError, EOFError, ValueError, zlib.error, pa.ArrowException) as error:
        text = f"unreadable from row {row} on: {error}".replace("\n", " ")
        yield RawBatch(name, row, ordinal + row, [], text[:300])


def _payloads(path: Path) -> Iterator[Any]:
    if path.name.endswith(".parquet"):
        yield from _parquet(path)
    elif path.name.endswith(".arrow"):
        yield from _arrow(path)
    else:
        with gzip.open(path) if path.name.endswith(".gz") else open(path, "rb") as file:
            yield from read_json_stream(file)


def read_json_stream(file: Any) -> Iterator[list[bytes]]:
    """Batches of JSON rows, undecoded, from a binary file of lines, or of one array."""
    first = _first_character(file)
    yield from _grouped(_array(file) if first == b"[" else (line for line in file if line.strip()))


def _first_character(file: Any) -> bytes:
    while (char := file.read(1)) in (b" ", b"\n", b"\r", b"\t", b"\xef", b"\xbb", b"\xbf"):
        pass
    file.seek(0)
    return bytes(char)


def _grouped(rows: Iterator[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    try:
        for row in rows:
            batch.append(row)
            size += len(row)
            if size >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
                yield batch
                batch, size = [], 0
    except (OSError, EOFError, ValueError, zlib.error):
        # The rows before the break are good.
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _array(file: Any) -> Iterator[bytes]:
    """The elements of a JSON array, of which at most one and one read's worth of text are in memory."""
    reader = io.TextIOWrapper(file, encoding="utf-8-sig")
    decoder = json.JSONDecoder()
    buffer, at, at_end = reader.read(_READ), 0, False
    at = _skip(buffer, 0) + 1  # the opening bracket
    while True:
        at = _skip(buffer, at)
        if buffer.startswith(",", at):
            at = _skip(buffer, at + 1)
        if buffer.startswith("]", at):
            return
        try:
            _, end = decoder.raw_decode(buffer, at)
            cut = end == len(buffer) and not at_end  # perhaps a number of which more follows
            problem = ""
        except ValueError as error:
            cut, problem = not at_end, str(error)
        if not cut:
            if problem:
                raise ValueError(f"the array breaks off or is not JSON ({problem})")
            yield buffer[at:end].encode()
            at = end
            continue
        if len(buffer) - at > _MAX_ELEMENT:
            raise ValueError(
                f"an element of the array is longer than {_MAX_ELEMENT >> 20} MiB, or is not JSON ({problem})"
            )
        # Twice as much each time: an element is decoded anew only as often as its length doubles.
        piece = reader.read(max(_READ, len(buffer) - at))
        buffer, at, at_end = buffer[at:] + piece, 0, not piece


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    # A buffered stream reads pages as they are needed; pre-buffering would load whole row groups.
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=_READ) as file:
        for batch in file.iter_batches(batch_size=32):
            yield from _bounded(batch)


def _arrow(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source:
        try:
            stream = pa.ipc.open_stream(source)
        except pa.ArrowInvalid:
            whole = pa.ipc.open_file(source)
            stream = (whole.get_batch(i) for i in range(whole.num_record_batches))
        for batch in stream:
            yield from _bounded(batch)


def _bounded(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices of about BATCH_BYTES, so that what a worker gets stays small."""
    rows = max(1, min(BATCH_ROWS, batch.num_rows * BATCH_BYTES // max(1, batch.get_total_buffer_size())))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
