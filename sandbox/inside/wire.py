"""What the judge and the far side say to each other.

A job goes to the zygote; on the one data socket between the judge and a child go frames of a kind byte, a length and a
payload. The judge treats everything that arrives from a child as untrusted bytes.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

HEADER = struct.Struct("<cI")

# Judge to child.
SOURCE = b"C"
"""The program's text, UTF-8."""
STDIN = b"S"
"""Run once; in real mode the input is already on fd 0, in lcb mode it is the payload."""
CALL = b"F"
"""Call the function; the payload is the JSON list of its arguments."""

# Child to judge.
READY = b"R"
"""The program is loaded."""
COMPILE_ERROR = b"E"
"""It does not compile; the payload says why."""
NOT_FOUND = b"N"
"""It does not define the function."""
DONE = b"D"
"""It ran to its end; the payload is the result of a function or the captured output of lcb mode."""
DONE_DIRTY = b"d"
"""As DONE, but the process is not fit for another test (a thread left running, a standard fd closed)."""
RAISED = b"X"
"""It raised, or exited with a status; the payload is JSON [exception type, message]."""
TOO_LARGE = b"O"
"""Its result or output is over the cap."""

REPLIES = frozenset({READY, COMPILE_ERROR, NOT_FOUND, DONE, DONE_DIRTY, RAISED, TOO_LARGE})


@dataclass(frozen=True)
class Job:
    """What the zygote is told of a program; the source itself comes over the data socket."""

    mode: str
    kind: str
    fn_name: str
    memory_bytes: int
    cpu_seconds: int
    max_bytes: int


def read_exactly(fd: int, count: int) -> bytes:
    """`count` bytes from a blocking descriptor; EOFError if it ends before."""
    chunks: list[bytes] = []
    while count:
        chunk = os.read(fd, min(count, 1 << 20))
        if not chunk:
            raise EOFError
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def read_frame(fd: int) -> tuple[bytes, bytes]:
    """The next (kind, payload); EOFError when the other side is gone."""
    kind, length = HEADER.unpack(read_exactly(fd, HEADER.size))
    return kind, read_exactly(fd, length)


def write_frame(fd: int, kind: bytes, payload: bytes = b"") -> None:
    """Send a frame whole over a blocking descriptor."""
    data = memoryview(HEADER.pack(kind, len(payload)) + payload)
    while data:
        data = data[os.write(fd, data) :]
