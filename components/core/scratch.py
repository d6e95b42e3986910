"""Folders to build files in, which do not outlive whoever builds there for long."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


@contextmanager
def scratch_folder(base: Path, owner: str = "") -> Iterator[Path]:
    """A new folder below `base`, removed at the end.

    Args:
        base: is made if need be.
        owner: a name for whoever builds there. What one of the same name left when it was killed is removed first; one
            that is alive keeps its own.
    """
    folder = base / owner
    folder.mkdir(parents=True, exist_ok=True)
    if not owner:
        with tempfile.TemporaryDirectory(dir=folder) as made:
            yield Path(made)
        return
    path = folder / "lock"
    with open(path, "w") as lock:
        alone = _locked(lock)
        if alone:
            for left in folder.iterdir():
                if left != path:
                    shutil.rmtree(left, ignore_errors=True)
        try:
            with tempfile.TemporaryDirectory(dir=folder) as made:
                yield Path(made)
        finally:
            with suppress(OSError):  # another is there
                if alone:
                    path.unlink()
                folder.rmdir()


def _locked(file: TextIO) -> bool:
    """Take the lock that the system drops when its holder dies; False if another has it, or there are no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
