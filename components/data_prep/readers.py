"""Raw rows out of files of any common form, in bounded batches; a file that breaks off is reported, not fatal."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
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
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
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
    except (OSError, EOFError, ValueError):
        # The rows before the break are good.
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _array(file: Any) -> Iterator[bytes]:
    """The elements of a JSON array without holding all of it: at most one element is in memory."""
    reader = io.TextIOWrapper(file, encoding="utf-8-sig")
    decoder = json.JSONDecoder()
    buffer, at_end, wanted = "", False, _READ
    started = False
    while True:
        if not at_end and len(buffer) < wanted:
            piece = reader.read(wanted)
            at_end = not piece
            buffer += piece
            continue
        buffer = buffer.lstrip()
        if not started:
            buffer, started = buffer[1:].lstrip(), True
        buffer = buffer.removeprefix(",").lstrip()
        if buffer.startswith("]"):
            return
        try:
            _, end = decoder.raw_decode(buffer)
        except ValueError as error:
            if at_end:
                raise ValueError(f"the array breaks off or is not JSON ({error})") from None
            wanted = 2 * len(buffer) + _READ
            continue
        # An element that ends with the buffer may be a number cut in two.
        if end == len(buffer) and not at_end:
            wanted = 2 * len(buffer) + _READ
            continue
        yield buffer[:end].encode()
        buffer = buffer[end:]
        wanted = 1


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
