"""Bulk data under one root, a directory or an S3 prefix, with a commit marker that comes last.

A folder is either complete, which its `_COMPLETE` marker says, or it does not exist for a reader. Files appear
under their final name only when whole, so that a step that was killed finds its finished files again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from components.core.errors import UserError
from components.core.scratch import scratch_folder

MARKER = "_COMPLETE"


@dataclass(frozen=True)
class Pointer:
    """A small JSON artifact that names a complete folder of the store."""

    uri: str
    sha256: str
    """Of the marker's file list: changes when any byte of any file changes."""
    bytes: int
    kind: str
    """dataset | rollouts | rewards | policy | evaluation | report."""
    step: str
    rows: int
    extra: dict[str, Any] = field(default_factory=dict)

    def write(self, path: str | Path) -> None:
        """Write the pointer as JSON; the parent folder is made."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n")

    @classmethod
    def read(cls, path: str | Path) -> Pointer:
        """Read a pointer.

        Raises:
            UserError: the file is absent or not a pointer.
        """
        try:
            return cls(**json.loads(Path(path).read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise UserError(
                f"{path}: not a pointer file ({error}); give the JSON that an earlier step wrote."
            ) from error


def file_sha256(path: Path) -> str:
    """The hex digest of one file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def config_hash(values: Any) -> str:
    """A short hash of anything JSON can hold; key order does not matter."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]


class Store(ABC):
    """The interface; `open_store` picks the implementation. A `rel` is a path relative to the root, with `/`."""

    root: str

    def uri(self, rel: str) -> str:
        """The absolute name of `rel`."""
        return f"{self.root}/{rel}"

    def rel(self, uri: str) -> str:
        """The inverse of `uri`.

        Raises:
            UserError: the URI lies outside this store.
        """
        if not uri.startswith(self.root + "/"):
            raise UserError(f"{uri} lies outside the store {self.root}: run with store= set to the store it came from.")
        return uri[len(self.root) + 1 :]

    @abstractmethod
    def put(self, local: Path, rel: str) -> None:
        """Bring one local file in under its final name, whole or not at all. The local file may be moved."""

    @abstractmethod
    def read_bytes(self, rel: str) -> bytes | None:
        """The bytes of one file, or None if there is none."""

    @abstractmethod
    def local_file(self, rel: str) -> Path:
        """One file as a local path, to be read only."""

    @abstractmethod
    def list(self, rel: str) -> dict[str, int]:
        """Every file below a folder: its path relative to that folder, and its size in bytes."""

    @abstractmethod
    def local_dir(self, rel: str, hashes: Mapping[str, str] | None = None) -> Path:
        """A folder as a local path, to be read only.

        Args:
            rel: the folder.
            hashes: the files that belong to it, with their SHA-256 in hex, against which a store that copies checks
                what it copies; None takes whatever is there.
        """

    @abstractmethod
    def delete(self, rel: str) -> None:
        """Remove a folder, marker first, so that a half-deleted one is never taken for complete."""

    @abstractmethod
    def free_bytes(self) -> int | None:
        """Free space, or None where there is no limit to ask for."""

    @contextmanager
    def scratch(self, owner: str = "") -> Iterator[Path]:
        """A local folder to build files in before `put`, removed at the end.

        Args:
            owner: the folder in the store that they are for, if they are too large to be left behind by a process that
                is killed: the next for the same removes them.
        """
        name = f"deepcoder-{config_hash(self.uri(owner))}" if owner else ""
        with scratch_folder(Path(tempfile.gettempdir()), name) as folder:
            yield folder

    # What follows is the same for every store.

    def write_bytes(self, data: bytes, rel: str) -> None:
        """Write one small file, whole or not at all."""
        with self.scratch() as folder:
            path = folder / "data"
            path.write_bytes(data)
            self.put(path, rel)

    def put_dir(self, local: Path, rel: str) -> None:
        """Bring in every file below a local folder, in parallel."""
        files = [path for path in sorted(local.rglob("*")) if path.is_file()]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda path: self.put(path, f"{rel}/{path.relative_to(local).as_posix()}"), files))

    def commit(
        self, rel: str, *, kind: str, step: str, rows: int, key: str, hashes: dict[str, str] | None = None, **extra: Any
    ) -> Pointer:
        """Mark a folder as complete and return its pointer.

        Args:
            rel: the folder; everything in it belongs to the output.
            kind: see `Pointer.kind`.
            step: the step's name.
            rows: how many rows the output holds.
            key: the hash of all that the output depends on; `complete` compares it.
            hashes: sha256 of files that the caller already knows; the rest are computed here.
            extra: small values that travel in the pointer.
        """
        known = hashes or {}
        sizes = {name: size for name, size in self.list(rel).items() if name != MARKER}
        files = {
            name: {"bytes": size, "sha256": known.get(name) or self._sha256(f"{rel}/{name}")}
            for name, size in sorted(sizes.items())
        }
        marker = {"kind": kind, "step": step, "rows": rows, "config_hash": key, "extra": extra, "files": files}
        written = self._write_marker(json.dumps(marker, indent=1, sort_keys=True).encode(), f"{rel}/{MARKER}")
        return self._pointer(rel, json.loads(written))

    def complete(self, rel: str, key: str | None = None) -> Pointer | None:
        """The pointer of a complete folder, or None if it is absent, cut off, or was made for another key."""
        marker = self._marker(rel)
        if marker is None or (key is not None and marker["config_hash"] != key):
            return None
        return self._pointer(rel, marker)

    def fetch(self, pointer: Pointer) -> Path:
        """The local folder that a pointer names, to be read only.

        Raises:
            UserError: the folder is gone, not complete, or no longer what the pointer says.
        """
        rel = self.rel(pointer.uri)
        marker = self._marker(rel)
        if marker is None:
            raise UserError(
                f"{pointer.uri}: no complete output here. Run the step `{pointer.step}` again; where KFP took "
                "it from its cache, with another store=."
            )
        if self._pointer(rel, marker).sha256 != pointer.sha256:
            raise UserError(f"{pointer.uri}: changed since the pointer was written. Run the steps after it again.")
        return self.local_dir(rel, {name: entry["sha256"] for name, entry in marker["files"].items()})

    def _marker(self, rel: str) -> dict[str, Any] | None:
        """A folder's marker, if every file that it lists is there in its size."""
        data = self.read_bytes(f"{rel}/{MARKER}")
        if data is None:
            return None
        marker: dict[str, Any] = json.loads(data)
        present = self.list(rel)
        if any(present.get(name) != entry["bytes"] for name, entry in marker["files"].items()):
            return None
        return marker

    def _sha256(self, rel: str) -> str:
        return file_sha256(self.local_file(rel))

    def _write_marker(self, data: bytes, rel: str) -> bytes:
        """Write a marker; returns the one that is then there, which another process may have written first."""
        self.write_bytes(data, rel)
        return data

    def _pointer(self, rel: str, marker: dict[str, Any]) -> Pointer:
        size = sum(entry["bytes"] for entry in marker["files"].values())
        return Pointer(
            self.uri(rel),
            config_hash(marker["files"]),
            size,
            marker["kind"],
            marker["step"],
            marker["rows"],
            marker["extra"],
        )


class LocalStore(Store):
    """A directory; also a mounted volume that several pods share."""

    def __init__(self, root: str) -> None:
        self._path = Path(root).expanduser().resolve()
        self.root = str(self._path)
        self._make(self._path)

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"store={self.root}: user {os.getuid()} cannot write there ({error}). Give the directory, or the "
                "volume's root, to that user, or change store=."
            ) from error

    def put(self, local: Path, rel: str) -> None:
        """Copy next to the final name if need be, fsync, rename."""
        final = self._path / rel
        final.parent.mkdir(parents=True, exist_ok=True)
        temporary = final.with_name(f".{final.name}.{uuid.uuid4().hex}.tmp")
        try:
            shutil.move(local, temporary)
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
            temporary.chmod(0o644)  # save_pretrained writes 0600, which another uid could not read
            os.replace(temporary, final)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise UserError(
                f"{final}: could not be written ({error}). Free some space or change store=, then rerun."
            ) from error
        directory = os.open(final.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def read_bytes(self, rel: str) -> bytes | None:
        """See Store."""
        try:
            return (self._path / rel).read_bytes()
        except FileNotFoundError:
            return None

    def local_file(self, rel: str) -> Path:
        """See Store."""
        return self._path / rel

    def list(self, rel: str) -> dict[str, int]:
        """See Store; temporary files of writers that were killed are not listed."""
        base = self._path / rel
        return {
            path.relative_to(base).as_posix(): path.stat().st_size
            for path in sorted(base.rglob("*"))
            if path.is_file() and not (path.name.startswith(".") and path.name.endswith(".tmp"))
        }

    def local_dir(self, rel: str, hashes: Mapping[str, str] | None = None) -> Path:
        """See Store."""
        return self._path / rel

    def delete(self, rel: str) -> None:
        """See Store."""
        (self._path / rel / MARKER).unlink(missing_ok=True)
        shutil.rmtree(self._path / rel, ignore_errors=True)

    def free_bytes(self) -> int | None:
        """See Store."""
        return shutil.disk_usage(self._path).free

    @contextmanager
    def scratch(self, owner: str = "") -> Iterator[Path]:
        """On the store's own disk, so that `put` is a rename; see Store."""
        base = self._path / ".scratch"
        self._make(base)
        with scratch_folder(base, owner.replace("/", "-")) as folder:
            yield folder


def open_store(root: str) -> Store:
    """The store at a directory or an `s3://bucket/prefix`."""
    if not root.startswith("s3://"):
        return LocalStore(root)
    from components.core.s3_store import S3Store  # only where it is used: the local demo needs no S3 client

    return S3Store(root)
