"""Sources that are not local: S3 prefixes and data sets of the Hugging Face hub."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.core.config import SourceConfig
from components.core.errors import UserError
from components.data_prep.readers import BATCH_ROWS, SUFFIXES, read_file, read_json_stream
from components.data_prep.rows import RawBatch

if TYPE_CHECKING:
    from components.core.s3 import Bucket

LCB_RELEASES = {f"release_v{n}": ["test.jsonl", *(f"test{k}.jsonl" for k in range(2, n + 1))] for n in range(1, 7)}
"""The data set is a loading script, which `datasets` no longer runs: its releases are these files together."""


def s3_objects(uri: str, key: str) -> list[dict[str, Any]]:
    """The data objects below a prefix, sorted by name, with their ETags.

    Raises:
        UserError: none there, or no access.
    """
    bucket, prefix = _bucket(uri)
    try:
        entries = bucket.entries(prefix)
    except UserError as error:
        raise UserError(f"{key}={uri}: cannot be listed ({error})") from error
    # "train" must not match "training/…": the prefix is a folder or a whole name.
    folder = prefix.rstrip("/") + "/" if prefix else ""
    found = [entry for entry in entries if entry["Key"] == prefix or entry["Key"].startswith(folder)]
    found = [entry for entry in found if entry["Key"].endswith(SUFFIXES)]
    if not found:
        raise UserError(f"{key}={uri}: no data file; known endings are {', '.join(SUFFIXES)}")
    return sorted(found, key=lambda entry: str(entry["Key"]))


def read_s3(uri: str, objects: list[dict[str, Any]]) -> Iterator[RawBatch]:
    """All rows, one object on disk at a time."""
    bucket, _ = _bucket(uri)
    ordinal = 0
    with tempfile.TemporaryDirectory() as folder:
        for entry in objects:
            local = Path(folder) / Path(entry["Key"]).name
            bucket.download(entry["Key"], local)
            for batch in read_file(local, f"s3://{bucket.name}/{entry['Key']}", ordinal):
                yield batch
                ordinal = batch.first_ordinal + len(batch.payload)
            local.unlink()


def _bucket(uri: str) -> tuple[Bucket, str]:
    from components.core.s3 import Bucket  # only where it is used

    name, _, prefix = uri.removeprefix("s3://").partition("/")
    return Bucket(name), prefix


def hub_revision(source: SourceConfig, key: str) -> str:
    """The commit that a hub data set is at.

    Raises:
        UserError: there is no such data set, or the hub cannot be reached.
    """
    import httpx2
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return str(HfApi().dataset_info(source.path).sha)
    except (HfHubHTTPError, HFValidationError, httpx2.HTTPError, OSError) as error:
        raise UserError(
            f"{key}={source.path}: neither a local path nor a data set that the hub hands out ({error})"
        ) from error


def read_hub(source: SourceConfig, revision: str) -> Iterator[RawBatch]:
    """All rows of one split, streamed."""
    if source.format == "livecodebench" and source.path.endswith("code_generation_lite"):
        yield from _lcb_files(source, revision)
        return
    if source.path == "BAAI/TACO":
        yield from _taco_files(source, revision)
        return
    from datasets import load_dataset  # takes seconds: only where it is used

    try:
        rows = load_dataset(source.path, source.name, split=source.split, streaming=True, revision=revision)
    except (ValueError, OSError, RuntimeError) as error:
        wanted = f"{source.path}, name={source.name}, split={source.split}"
        raise UserError(f"data.sources path={wanted}: not to be had from the hub ({error})") from error
    yield from dataset_batches(rows, f"{source.path}[{source.split}]")


def dataset_batches(rows: Any, name: str) -> Iterator[RawBatch]:
    """Batches from a streaming `datasets` object; rows come decoded."""
    batch: list[dict[str, Any]] = []
    first = 0
    try:
        for row in rows:
            batch.append(dict(row))
            if len(batch) >= min(BATCH_ROWS, 32):
                yield RawBatch(name, first, first, batch)
                first, batch = first + len(batch), []
    except (OSError, ValueError) as error:
        if batch:
            yield RawBatch(name, first, first, batch)
        yield RawBatch(name, first + len(batch), first + len(batch), [], f"the stream broke: {error}"[:300])
        return
    if batch:
        yield RawBatch(name, first, first, batch)


def _lcb_files(source: SourceConfig, revision: str) -> Iterator[RawBatch]:
    from huggingface_hub import HfFileSystem

    release = source.name or "release_v5"
    if release not in LCB_RELEASES:
        raise UserError(f"data.sources name={release}: not a release; there are {', '.join(LCB_RELEASES)}")
    system = HfFileSystem()
    ordinal = 0
    for name in LCB_RELEASES[release]:
        row = 0
        with system.open(f"datasets/{source.path}@{revision}/{name}", "rb") as file:
            for lines in read_json_stream(file):
                yield RawBatch(f"{source.path}/{name}", row, ordinal, lines)
                row, ordinal = row + len(lines), ordinal + len(lines)


def _taco_files(source: SourceConfig, revision: str) -> Iterator[RawBatch]:
    """The Arrow files of one split; this data set is a loading script too."""
    from huggingface_hub import HfFileSystem

    system = HfFileSystem()
    names = sorted(system.glob(f"datasets/{source.path}@{revision}/{source.split}/*.arrow"))
    if not names:
        raise UserError(f"{source.path}: has no split {source.split}; there are train and test")
    ordinal = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            local = Path(folder) / Path(name).name
            system.get_file(name, str(local))
            for batch in read_file(local, f"{source.path}/{source.split}/{local.name}", ordinal):
                yield batch
                ordinal = batch.first_ordinal + len(batch.payload)
            local.unlink()
