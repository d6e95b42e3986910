"""The store on S3."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from components.core.errors import UserError
from components.core.s3 import Bucket
from components.core.store import MARKER, Store, config_hash, file_sha256


class S3Store(Store):
    """A bucket and a prefix; an object appears whole, so `put` needs no rename. See `components.core.s3`.

    What is read lies below this process's own temporary folder, TMPDIR, until the process ends.
    """

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        name, _, self._prefix = self.root.removeprefix("s3://").partition("/")
        self._bucket = Bucket(name)
        self._cache = _downloads() / config_hash(self.root)
        self._written: dict[str, str] = {}

    def _key(self, rel: str) -> str:
        return "/".join(part for part in (self._prefix, rel) if part not in ("", "."))

    def put(self, local: Path, rel: str) -> None:
        """See Store."""
        self._written[rel] = self._bucket.upload(local, self._key(rel))

    def read_bytes(self, rel: str) -> bytes | None:
        """See Store."""
        return self._bucket.read(self._key(rel))

    def local_file(self, rel: str, sha256: str | None = None) -> Path:
        """Downloads the file, each time anew unless its hash is known."""
        local = self._cache / rel
        if sha256 is None or not local.is_file() or file_sha256(local) != sha256:
            self._bucket.download(self._key(rel), local, sha256)
        return local

    def list(self, rel: str) -> dict[str, int]:
        """See Store."""
        return {name: entry["Size"] for name, entry in self._entries(rel)}

    def etags(self, rel: str) -> dict[str, str]:
        """As `list`, with what changes when a file does in place of its size."""
        return {name: entry["ETag"] for name, entry in self._entries(rel)}

    def _entries(self, rel: str) -> Iterator[tuple[str, dict[str, Any]]]:
        base = f"{key}/" if (key := self._key(rel)) else ""
        for entry in self._bucket.entries(base):
            yield entry["Key"][len(base) :], entry

    def local_dir(self, rel: str, hashes: Mapping[str, str] | None = None) -> Path:
        """Downloads the files, in parallel."""
        wanted: Mapping[str, str | None] = hashes if hashes is not None else dict.fromkeys(self.list(rel))
        folder = self._cache / rel
        if hashes is None:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(8) as pool:
            list(
                pool.map(lambda item: self.local_file("/".join(filter(None, [rel, item[0]])), item[1]), wanted.items())
            )
        return folder

    def delete(self, rel: str) -> None:
        """See Store."""
        self._bucket.delete(self._key(f"{rel}/{MARKER}"))
        for name in self.list(rel):
            self._bucket.delete(self._key(f"{rel}/{name}"))

    def free_bytes(self) -> int | None:
        """See Store."""
        return None

    def _sha256(self, rel: str) -> str:
        return self._written.get(rel) or self._bucket.sha256(self._key(rel)) or file_sha256(self.local_file(rel))

    def _write_marker(self, data: bytes, rel: str) -> bytes:
        if self._bucket.create(data, self._key(rel)):
            return data
        # Another process finished the same folder first, a pod that was taken for dead: its readers have its pointer.
        there = self.read_bytes(rel) or b"{}"
        if json.loads(there).get("config_hash") != json.loads(data)["config_hash"]:
            raise UserError(f"{self.uri(rel)}: another run wrote this meanwhile; run one at a time, then rerun.")
        return there


@cache
def _downloads() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="deepcoder-store-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
