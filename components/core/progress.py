"""What a step says while it runs: plain lines, which survive a pod's log, a pipe and a terminal alike."""

from __future__ import annotations

import time

MARK = "▸ "
"""Begins every line that is meant for a person, so that a local run can show these alone."""

_TELLING_SHARE = 0.05
"""Of a batch in which answers go on side by side, the first to be finished says nothing about the rest."""


def say(label: str, text: str) -> None:
    """Print one line about a step; `label` is its place in the run."""
    print(f"{MARK}{label}: {text}", flush=True)


class Progress:
    """Prints how far a step is, at most every few seconds and once at the end."""

    def __init__(self, label: str, total: int, unit: str, every_s: float = 10.0) -> None:
        self._label, self._total, self._unit, self._every = label, total, unit, every_s
        self._start = self._last = time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        """Report `done` of the total; `note` is printed behind it."""
        now = time.monotonic()
        if done < self._total and now - self._last < self._every:
            return
        self._last = now
        elapsed = now - self._start
        rate = ""
        if done and done >= _TELLING_SHARE * self._total:
            left = f", about {elapsed / done * (self._total - done):.0f} s left" if done < self._total else ""
            rate = f"{left} · {note}" if note else left
        say(self._label, f"{done}/{self._total} {self._unit} in {elapsed:.0f} s{rate}")
