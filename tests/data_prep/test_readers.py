from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.core.config import SourceConfig
from components.core.errors import UserError
from components.data_prep import readers, remote
from components.data_prep.readers import read_file
from components.data_prep.rows import RawBatch
from components.data_prep.sources import open_sources
from tests.chaos.s3_server import S3Server

ROWS = [{"id": i, "text": "é" * (i % 7), "big": str(10**30)} for i in range(1000)]


def decoded(batches: Any) -> list[Any]:
    rows: list[Any] = []
    for batch in batches:
        assert isinstance(batch, RawBatch)
        assert not batch.error
        assert batch.first_row == len(rows)
        if isinstance(batch.payload, list):
            rows += [json.loads(row) if isinstance(row, bytes) else row for row in batch.payload]
        else:
            rows += batch.payload.to_pylist()
    return rows


def write(path: Path, kind: str) -> Path:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    table = pa.Table.from_pylist(ROWS)
    if kind in ("jsonl", "json lines"):
        path.write_text(lines)
    elif kind == "gz":
        path.write_bytes(gzip.compress(lines.encode()))
    elif kind == "array":
        path.write_text(json.dumps(ROWS, indent=1))
    elif kind == "parquet":
        pq.write_table(table, path, row_group_size=300)
    else:
        opener = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with opener(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=300)
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", "jsonl"),
        ("a.json", "json lines"),
        ("a.jsonl.gz", "gz"),
        ("a.json", "array"),
        ("a.parquet", "parquet"),
        ("a.arrow", "stream"),
        ("a.arrow", "file"),
    ],
)
def test_every_form_of_file_gives_the_same_rows(tmp_path: Path, name: str, kind: str) -> None:
    assert decoded(read_file(write(tmp_path / name, kind), name, 0)) == ROWS


def test_array_elements_cut_by_the_read_size_come_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_READ", 5)
    path = tmp_path / "a.json"
    values = [1234567, -1.5e10, "a, ]b", [[1], {"k": "]"}], None, 123456]
    path.write_text(" " + json.dumps(values))
    assert decoded(read_file(path, "a", 0)) == values


@pytest.mark.parametrize(("name", "kind"), [("a.jsonl.gz", "gz"), ("a.json", "array"), ("a.arrow", "stream")])
def test_rows_before_a_break_survive_and_the_break_is_named(tmp_path: Path, name: str, kind: str) -> None:
    path = write(tmp_path / name, kind)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * 0.9)])
    *good, last = list(read_file(path, "raw/a", 50))
    kept = len(decoded(good))
    assert kept > 200
    assert last.error.startswith(f"unreadable from row {kept} on:")
    assert (last.file, last.first_row, last.first_ordinal, last.payload) == ("raw/a", kept, 50 + kept, [])


def test_a_truncated_parquet_is_one_unreadable_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", "parquet")
    path.write_bytes(path.read_bytes()[:-100])
    (only,) = read_file(path, "a.parquet", 0)
    assert only.error.startswith("unreadable from row 0 on:")


def test_batches_are_bounded_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"t": "x" * (1 << 20)}) + "\n" for _ in range(9)))
    sizes = [sum(map(len, batch.payload)) for batch in read_file(path, "a", 0)]
    assert len(sizes) > 1
    assert max(sizes) < readers.BATCH_BYTES + (2 << 20)


def source(path: Any, **fields: Any) -> SourceConfig:
    return SourceConfig(format="taco", path=str(path), **fields)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{tmp}/none.jsonl", "data.sources.0.path={tmp}/none.jsonl: no such file or directory"),
        ("{tmp}", "data.sources.0.path={tmp}: no data file; known endings are .jsonl"),
    ],
)
def test_an_absent_source_is_named_with_its_key(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UserError) as caught:
        open_sources([source(path.format(tmp=tmp_path))])
    assert str(caught.value).startswith(message.format(tmp=tmp_path))


def test_side_files_are_checked(tmp_path: Path) -> None:
    rows = write(tmp_path / "a.jsonl", "jsonl")
    with pytest.raises(UserError, match=r"data\.sources\.0\.solutions=gone: no such file"):
        open_sources([source(rows, solutions="gone")])
    bad = tmp_path / "bad.txt"
    bad.write_text('{"question_id": 1}\n')
    with pytest.raises(UserError, match="line 1 lacks question_id or solution"):
        open_sources([source(rows, solutions=str(bad))])
    with pytest.raises(UserError, match="not a JSON list"):
        open_sources([source(rows, exclude=str(bad))])


def test_the_fingerprint_follows_the_bytes_of_every_file(tmp_path: Path) -> None:
    rows = write(tmp_path / "a.jsonl", "jsonl")
    side = tmp_path / "s.txt"
    side.write_text('{"question_id": 1, "solution": "x"}\n')
    first = open_sources([source(rows, solutions=str(side))])[0].fingerprint
    assert open_sources([source(rows, solutions=str(side))])[0].fingerprint == first
    side.write_text('{"question_id": 1, "solution": "y"}\n')
    second = open_sources([source(rows, solutions=str(side))])[0].fingerprint
    rows.write_text(rows.read_text()[:-2] + " }")
    assert len({first, second, open_sources([source(rows, solutions=str(side))])[0].fingerprint}) == 3


def test_rows_are_numbered_over_all_files_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "b.jsonl", "jsonl")
    write(tmp_path / "a.parquet", "parquet")
    batches = list(open_sources([source(tmp_path)])[0].batches())
    starts = {batch.file: batch.first_ordinal for batch in reversed(batches)}
    assert starts == {f"{tmp_path.name}/a.parquet": 0, f"{tmp_path.name}/b.jsonl": 1000}


def test_an_s3_prefix_gives_the_rows_of_all_its_objects(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("raw/train/a.jsonl", "raw/train/b.parquet", "raw/training/c.jsonl", "raw/train/readme.md"):
        local = write(tmp_path / Path(name).name, "parquet" if name.endswith("parquet") else "jsonl")
        s3_server.client.upload_file(str(local), "bucket", name)
    opened = open_sources([source("s3://bucket/raw/train")])[0]
    batches = list(opened.batches())
    assert {batch.file for batch in batches} == {"s3://bucket/raw/train/a.jsonl", "s3://bucket/raw/train/b.parquet"}
    assert batches[-1].first_ordinal + len(batches[-1].payload) == 2000
    assert open_sources([source("s3://bucket/raw/train/a.jsonl")])[0].fingerprint != opened.fingerprint
    with pytest.raises(UserError, match=r"data\.sources\.0\.path=s3://bucket/none: no data file"):
        open_sources([source("s3://bucket/none")])


def test_a_hub_data_set_streams_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The library takes a local repository folder by the same calls as a hub name.
    folder = tmp_path / "owner" / "set"
    (folder / "data").mkdir(parents=True)
    write(folder / "data" / "train-00000.parquet", "parquet")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    assert decoded(remote.read_hub(source(folder), None)) == ROWS  # type: ignore[arg-type]


def test_livecodebench_releases_are_read_from_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class FileSystem:
        def open(self, path: str, _mode: str) -> Any:
            asked.append(path)
            return open(write(tmp_path / "x.jsonl", "jsonl"), "rb")

    monkeypatch.setattr("huggingface_hub.HfFileSystem", FileSystem)
    config = SourceConfig(format="livecodebench", path="livecodebench/code_generation_lite", name="release_v2")
    batches = list(remote.read_hub(config, "abc"))
    assert asked == [
        f"datasets/livecodebench/code_generation_lite@abc/{name}" for name in ("test.jsonl", "test2.jsonl")
    ]
    assert batches[-1].first_ordinal + len(batches[-1].payload) == 2000
    with pytest.raises(UserError, match="release_v99: not a release"):
        list(remote.read_hub(config.model_copy(update={"name": "release_v99"}), "abc"))
