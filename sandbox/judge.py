"""A judging process of a Fanout: programs come on standard input, verdicts go to standard output, a JSON line each."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from .model import allow_long_integers
from .pool import NOTHING_YET, Pool, Settings
from .selftest import self_test


class _Numbered(Iterator[Any]):
    """Programs from a descriptor that does not block: NOTHING_YET when no whole line is there."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""
        self._lines: deque[bytes] = deque()
        os.set_blocking(fd, False)

    def __next__(self) -> Any:
        if not self._lines and not self._read():
            raise StopIteration
        if not self._lines:
            return NOTHING_YET
        number, program = json.loads(self._lines.popleft())
        if isinstance(program, dict):  # its id is the number
            return program
        return {"id": number, "unreadable": f"not an object: {program!r:.100}"}

    def _read(self) -> bool:
        try:
            chunk = os.read(self._fd, 1 << 20)
        except BlockingIOError:
            return True
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._lines.extend(lines)
        return bool(chunk)


def main(settings: str) -> None:
    """Report the self-test, then grade until standard input ends."""
    allow_long_integers()
    output = os.dup(1)
    os.dup2(2, 1)  # nothing but verdicts may reach the pipe
    pool = Pool(Settings(**json.loads(settings)))
    try:
        _write(output, asdict(self_test(pool)))
        for verdict in pool.grade(_Numbered(0), wake=0):
            verdict["number"] = verdict["id"]
            _write(output, verdict)
    except BrokenPipeError:
        sys.exit(1)  # the fan-out is gone
    finally:
        pool.close()


def _write(fd: int, line: dict[str, Any]) -> None:
    rest = memoryview(json.dumps(line).encode("ascii") + b"\n")
    while rest:
        rest = rest[os.write(fd, rest) :]
