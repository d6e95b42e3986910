import os
from pathlib import Path

import pytest

from components.core.errors import UserError
from components.core.store import LocalStore, Pointer


def filled(tmp_path: Path) -> tuple[LocalStore, Pointer]:
    store = LocalStore(str(tmp_path / "store"))
    store.write_bytes(b"one", "runs/r/a.txt")
    store.write_bytes(b"two", "runs/r/deep/b.txt")
    return store, store.commit("runs/r", kind="dataset", step="s", rows=2, key="k", note="x")


def test_a_folder_without_its_marker_does_not_exist_for_a_reader(tmp_path: Path) -> None:
    store, pointer = filled(tmp_path)
    assert store.fetch(pointer) == tmp_path / "store" / "runs/r"
    (tmp_path / "store/runs/r/_COMPLETE").unlink()
    assert store.complete("runs/r") is None
    with pytest.raises(UserError, match="no complete output"):
        store.fetch(pointer)


def test_output_made_for_another_configuration_is_not_taken(tmp_path: Path) -> None:
    store, pointer = filled(tmp_path)
    assert store.complete("runs/r", "k") == pointer
    assert store.complete("runs/r", "other") is None


def test_a_file_that_was_cut_off_after_the_commit_is_noticed(tmp_path: Path) -> None:
    store, pointer = filled(tmp_path)
    os.truncate(tmp_path / "store/runs/r/deep/b.txt", 1)
    with pytest.raises(UserError, match="no complete output"):
        store.fetch(pointer)


def test_the_pointer_changes_with_any_byte_and_survives_a_round_trip(tmp_path: Path) -> None:
    store, pointer = filled(tmp_path)
    pointer.write(tmp_path / "p.json")
    assert Pointer.read(tmp_path / "p.json") == pointer
    assert pointer.extra["note"] == "x"
    store.write_bytes(b"TWO", "runs/r/deep/b.txt")
    changed = store.commit("runs/r", kind="dataset", step="s", rows=2, key="k", note="x")
    assert changed.sha256 != pointer.sha256
    with pytest.raises(UserError, match="changed since"):
        store.fetch(pointer)


def test_a_full_disk_leaves_no_file_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(str(tmp_path / "store"))

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"big.bin: could not be written \(.*No space left on device\).*store="):
        store.write_bytes(b"x" * 100, "runs/r/big.bin")
    assert store.list("runs/r") == {}


def test_a_directory_that_cannot_be_written_is_named_with_the_user(tmp_path: Path) -> None:
    (tmp_path / ".scratch").write_text("in the way")
    with pytest.raises(UserError, match=rf"store={tmp_path}: user \d+ cannot write there \(.*File exists"):
        LocalStore(str(tmp_path)).write_bytes(b"data", "a")
    with pytest.raises(UserError, match=r"scratch/below: user \d+ cannot write there \(.*Not a directory"):
        LocalStore(str(tmp_path / ".scratch/below"))


def test_a_pointer_file_that_is_no_pointer_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(UserError, match=r"x\.json: not a pointer"):
        Pointer.read(tmp_path / "x.json")


def test_what_a_killed_owner_left_in_scratch_goes_and_what_a_live_one_has_stays(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    child = os.fork()
    if child == 0:
        with store.scratch("runs/a/policy") as folder:
            (folder / "weights").write_text("w")
            os._exit(0)  # no clean-up, as after a kill
    os.waitpid(child, 0)
    assert list(tmp_path.rglob("weights"))
    with store.scratch("runs/b/policy"):
        assert list(tmp_path.rglob("weights"))
    with store.scratch("runs/a/policy") as first:
        assert not list(tmp_path.rglob("weights"))
        with store.scratch("runs/a/policy") as second:
            assert first.exists()
            assert first != second
        assert first.exists()
    assert not list((tmp_path / ".scratch").iterdir())
