"""Ranks in other pods end when the step that started them is gone without having been able to delete them."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ALIVE = "alive"
"""The file's name, in the job's folder."""
BEAT_S = 10.0
PATIENCE_S = 600.0
"""Long enough for a stalled network file system; short enough not to hold idle GPUs for long."""


@contextmanager
def beating(path: Path) -> Iterator[None]:
    """Rewrite a file every few seconds for as long as the context lasts."""
    stop = threading.Event()
    path.write_text("0")

    def beat() -> None:
        for count in itertools.count(1):
            if stop.wait(BEAT_S):
                return
            try:
                path.write_text(str(count))
            except OSError:
                continue  # a shared disk that is away comes back, or the ranks end as they should

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def end_without(path: Path, patience_s: float = PATIENCE_S) -> None:
    """From now on, end this process once the file has not changed for so long.

    By content and by this machine's own clock: modification times come from another one.
    """

    def watch() -> None:
        last, since = "", time.monotonic()
        while time.monotonic() - since < patience_s:
            time.sleep(min(BEAT_S, patience_s / 4))
            try:
                text = path.read_text()
            except OSError:
                continue
            if text != last:
                last, since = text, time.monotonic()
        print(f"the step that started this rank has been silent for {patience_s:.0f} s; ending", flush=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
