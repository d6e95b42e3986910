import hashlib
import io
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.core import s3
from components.core.errors import UserError
from components.core.s3_store import S3Store
from components.core.store import open_store
from tests.chaos.proxy import Faults, Proxy
from tests.chaos.s3_server import S3Server

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    impatient(monkeypatch)
    return s3_server


@pytest.fixture
def careless_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """Stores what it is sent, whatever its headers say."""
    impatient(monkeypatch)
    with S3Server(strict=False) as running:
        running.use(monkeypatch)
        yield running


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "_LONGEST_PAUSE_S", 0.2)
    monkeypatch.setattr(s3, "TRIES", 40)  # the proxies here are worse than any network


def files(folder: Path, sizes: list[int]) -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    for i, size in enumerate(sizes):
        data = random.Random(i).randbytes(size)
        (folder / f"part{i % 3}").mkdir(parents=True, exist_ok=True)
        (folder / f"part{i % 3}/{i}.bin").write_bytes(data)
        made[f"part{i % 3}/{i}.bin"] = data
    return made


def below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("seed", [0, 1])
def test_through_a_network_that_drops_delays_and_corrupts_nothing_is_lost_and_nothing_wrong_is_read(
    seed: int, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "PART_BYTES", 5 << 20)  # the least that S3 takes: the last file travels in parts
    made = files(tmp_path / "in", [0, 1, *[3000] * 20, 70_000, 11 << 20])
    faults = Faults(drop=0.05, delay=0.1, corrupt_requests=0.05, corrupt_answers=0.05, delay_s=0.05)
    with Proxy(server.port, faults, seed) as proxy:
        monkeypatch.setenv("S3_ENDPOINT_URL", proxy.url)
        store = open_store("s3://bucket/some/prefix")
        store.put_dir(tmp_path / "in", "runs/r")
        pointer = store.commit("runs/r", kind="dataset", step="s", rows=2, key="k")
        another = open_store("s3://bucket/some/prefix")
        assert another.complete("runs/r", "k") == pointer
        assert below(another.fetch(pointer)) == made
        assert another.read_bytes("runs/r/part1/1.bin") == made["part1/1.bin"]
        assert another.read_bytes("runs/none") is None
        assert len(proxy.happened) >= 3  # of the four; which requests they meet depends on the threads
        stored = server.objects()
        assert {key.removeprefix("some/prefix/runs/r/"): data for key, data in stored.items()} == {
            **made,
            "_COMPLETE": stored["some/prefix/runs/r/_COMPLETE"],
        }
        store.delete("runs/r")
        assert server.objects() == {}


def test_an_upload_that_a_careless_server_stored_corrupted_is_repeated(
    careless_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "PART_BYTES", 5 << 20)
    made = files(tmp_path / "in", [*[2000] * 40, 6 << 20])
    with Proxy(careless_server.port, Faults(corrupt_requests=0.2)) as proxy:
        monkeypatch.setenv("S3_ENDPOINT_URL", proxy.url)
        store = open_store("s3://bucket")
        store.put_dir(tmp_path / "in", "r")
        pointer = store.commit("r", kind="dataset", step="s", rows=2, key="k")
        assert proxy.happened["corrupt request"]
    monkeypatch.setenv("S3_ENDPOINT_URL", careless_server.url)
    assert below(open_store("s3://bucket").fetch(pointer)) == made


def test_a_server_that_stalls_is_asked_again(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "READ_TIMEOUT_S", 0.3)
    with Proxy(server.port, Faults(delay=0.2, delay_s=3)) as proxy:
        monkeypatch.setenv("S3_ENDPOINT_URL", proxy.url)
        store = open_store("s3://bucket/x")
        for i in range(8):
            store.write_bytes(b"%d" % i, f"r/{i}")
        assert proxy.happened["delay"]
        assert [store.read_bytes(f"r/{i}") for i in range(8)] == [b"%d" % i for i in range(8)]


def test_an_object_that_changed_after_the_commit_is_refused(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "TRIES", 2)
    store = open_store("s3://bucket/x")
    store.write_bytes(b"one", "runs/r/a")
    pointer = store.commit("runs/r", kind="dataset", step="s", rows=1, key="k")
    other = {"Metadata": {"sha256": hashlib.sha256(b"two").hexdigest()}}
    server.client.put_object(Bucket="bucket", Key="x/runs/r/a", Body=b"two", **other)
    with pytest.raises(UserError, match=r"s3://bucket/x/runs/r/a: .*not those that were uploaded"):
        open_store("s3://bucket/x").fetch(pointer)


def test_the_first_of_two_writers_of_one_folder_is_the_one_that_readers_see(server: S3Server) -> None:
    first, second = open_store("s3://bucket"), open_store("s3://bucket")
    first.write_bytes(b"one", "runs/r/a")
    pointer = first.commit("runs/r", kind="dataset", step="s", rows=1, key="k", who="first")
    assert second.commit("runs/r", kind="dataset", step="s", rows=1, key="k", who="second") == pointer
    assert second.complete("runs/r") == pointer
    with pytest.raises(UserError, match="another run wrote this meanwhile"):
        second.commit("runs/r", kind="dataset", step="s", rows=1, key="of another run")


def test_a_marker_is_created_once_however_often_its_answer_was_lost(server: S3Server) -> None:
    bucket = s3.Bucket("bucket")
    assert bucket.create(b"mine", "m")
    assert bucket.create(b"mine", "m")
    assert not bucket.create(b"another's", "m")
    assert bucket.read("m") == b"mine"


def test_files_of_an_earlier_try_are_not_mixed_into_a_folder(server: S3Server) -> None:
    store = open_store("s3://bucket")
    store.write_bytes(b"one", "runs/r/graded/a")
    assert below(store.local_dir("runs/r/graded")) == {"a": b"one"}
    store.delete("runs/r")
    store.write_bytes(b"two", "runs/r/graded/b")
    assert below(store.local_dir("runs/r/graded")) == {"b": b"two"}


def test_files_that_someone_else_put_there_are_read_and_named_by_their_etags(server: S3Server) -> None:
    server.client.put_object(Bucket="bucket", Key="models/m/hf/config.json", Body=b"{}")
    store = S3Store("s3://bucket/models/m")
    assert below(store.local_dir("")) == {"hf/config.json": b"{}"}
    before = store.etags("")
    server.client.put_object(Bucket="bucket", Key="models/m/hf/config.json", Body=b"[]")
    assert store.etags("") != before


@pytest.mark.parametrize(("uri", "message"), [("s3://no-such-bucket/x", r"no-such-bucket/x/r/a: .*Check the bucket")])
def test_a_bucket_that_is_not_there_is_named_at_once(server: S3Server, uri: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        open_store(uri).write_bytes(b"x", "r/a")
    with pytest.raises(UserError, match=r"no-such-bucket/x/r/a: .*Check the bucket"):
        open_store(uri).read_bytes("r/a")


WRITER = """
import sys, random
from pathlib import Path
from typing import Any
from components.core.store import open_store
store, have = open_store("s3://bucket/x"), 0
if store.complete("runs/r", "k") is None:
    done = store.list("runs/r")
    for i in range(12):  # as a step does: parts that an earlier try had finished stay
        if f"part-{i}" in done:
            have += 1
            store.read_bytes(f"runs/r/part-{i}")
        else:
            store.write_bytes(random.Random(i).randbytes(3000 * i), f"runs/r/part-{i}")
    store.commit("runs/r", kind="dataset", step="s", rows=12, key="k")
"""


@pytest.mark.slow
def test_a_writer_that_is_killed_again_and_again_ends_with_the_same_bytes(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, kills = random.Random(0), 0
    with Proxy(server.port, Faults(drop=0.02, delay=0.5, corrupt_requests=0.02, corrupt_answers=0.02)) as proxy:
        environment = {**os.environ, "S3_ENDPOINT_URL": proxy.url}
        while (stored := len(server.objects())) < 13:
            writer = subprocess.Popen([sys.executable, "-c", WRITER], env=environment, cwd=ROOT)
            # Killed after it has got at least one object further, at a random moment; at the end left to finish.
            deadline = time.monotonic() + 60
            while len(server.objects()) == stored and writer.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(draw.random() * 0.5)
            kills += writer.poll() is None
            writer.kill()
            writer.wait()
    assert kills >= 2
    pointer = open_store("s3://bucket/x").complete("runs/r", "k")
    assert pointer is not None
    made = below(open_store("s3://bucket/x").fetch(pointer))
    assert made == {f"part-{i}": random.Random(i).randbytes(3000 * i) for i in range(12)}


def test_an_answer_that_lost_headers_is_no_answer(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = s3.Bucket("bucket")
    assert bucket.create(b"data", "r/marker")
    ask, cut = bucket._client.get_object, [{"ETag"}, {"Metadata"}, set[str]()]

    def get_object(**wanted: str) -> dict[str, Any]:
        answer = {**ask(**wanted), "Body": io.BytesIO(b"data" if len(cut) == 1 else b"")}
        lost = cut.pop(0)
        return {
            key: {} if key == "Metadata" and lost else value
            for key, value in answer.items()
            if key not in lost - {"Metadata"}
        }

    monkeypatch.setattr(bucket._client, "get_object", get_object)
    assert bucket.read("r/marker") == b"data"
    assert not cut


@pytest.mark.parametrize("metadata", [{}, {"sha256": "0" * 64}])
def test_a_marker_that_a_server_made_of_half_a_request_gives_way(
    server: S3Server, metadata: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "TRIES", 3)
    bucket = s3.Bucket("bucket")
    bucket._client.put_object(Bucket="bucket", Key="r/marker", Body=b"", Metadata=metadata)
    assert bucket.create(b"data", "r/marker")
    assert bucket.read("r/marker") == b"data"
    assert not bucket.create(b"other", "r/marker")


def test_an_object_that_another_tool_stored_in_one_piece_is_taken(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "PART_BYTES", 1000)
    monkeypatch.setattr(s3, "TRIES", 2)
    bucket = s3.Bucket("bucket")
    bucket._client.put_object(Bucket="bucket", Key="theirs", Body=bytes(5000))
    bucket.download("theirs", tmp_path / "theirs")
    assert (tmp_path / "theirs").read_bytes() == bytes(5000)


def test_a_server_that_capitalises_the_names_of_headers_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "PART_BYTES", 5 << 20)
    monkeypatch.setattr(s3, "TRIES", 1)
    made = files(tmp_path / "in", [100, 6 << 20])
    with S3Server(capitals=True) as server:
        server.use(monkeypatch)
        store = open_store("s3://bucket/x")
        store.put_dir(tmp_path / "in", "r")
        pointer = store.commit("r", kind="dataset", step="s", rows=1, key="k")
        assert below(open_store("s3://bucket/x").fetch(pointer)) == made
        assert list(server.client.head_object(Bucket="bucket", Key="x/r/_COMPLETE")["Metadata"]) == ["Sha256"]
