"""One sandboxed process for one program: loads it once, then runs the tests that the judge sends."""

from __future__ import annotations

import gc
import json
import os
from typing import Protocol

from . import encode, lcb, real, wire
from .lockdown import ChildLock, close_from

DATA_FD = 3
CAPTURE_FAILED = 70


class _Program(Protocol):
    def load(self, source: str, fn_name: str) -> bytes: ...
    def run(self, payload: bytes, max_bytes: int) -> bytes: ...


def place_fds(stdin: int, stdout: int, null: int, data: int) -> None:
    """fds 0 to 2 and the data socket; nothing else survives."""
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(null, 2)
    os.dup2(data, DATA_FD)
    close_from(DATA_FD + 1)


def describe(error: BaseException) -> bytes:
    """[type, message] as JSON; the program's own __str__ may fail or lie, and only its own report suffers."""
    try:
        return json.dumps([str(type(error).__name__)[:100], str(error)[:300]]).encode("ascii")
    except BaseException:
        return b'["Exception", "not printable"]'


def _load(program: _Program, source: bytes, fn_name: str) -> tuple[bytes, bytes]:
    try:
        text = source.decode("utf-8")
        return program.load(text, fn_name), b""
    except (SyntaxError, ValueError, RecursionError, OverflowError, MemoryError) as error:
        # A compile error only if it did not come out of the running program.
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        ran = frame is not None and frame.tb_frame.f_code.co_filename in ("sol.py", lcb.FILE_NAME)
        return (wire.RAISED if ran else wire.COMPILE_ERROR), describe(error)
    except BaseException as error:
        return wire.RAISED, describe(error)


def _run(program: _Program, payload: bytes, max_bytes: int) -> tuple[bytes, bytes]:
    try:
        result = program.run(payload, max_bytes)
        if len(result) > max_bytes:
            return wire.TOO_LARGE, b""
        return wire.DONE, result
    except encode.TooLarge:
        return wire.TOO_LARGE, b""
    except BaseException as error:
        return wire.RAISED, describe(error)


def child_main(job: wire.Job, interpreter: real.Interpreter, lock: ChildLock, zygote: int) -> None:
    """Serve one program until the judge closes the socket; never returns."""
    # Bound here: a program may replace what it finds in modules and built-ins.
    leave, read, write, dirty = os._exit, wire.read_frame, wire.write_frame, interpreter.is_dirty
    try:
        lock.enter(zygote, job.memory_bytes, job.cpu_seconds, job.max_bytes)
        program: _Program
        if job.mode == "lcb":
            program = lcb.StdinProgram() if job.kind == "stdin" else lcb.FunctionProgram()
        else:
            program = real.StdinProgram(interpreter) if job.kind == "stdin" else real.FunctionProgram(interpreter)
        interpreter.note_fds()
        gc.enable()
        _, source = read(DATA_FD)
        kind, payload = _load(program, source, job.fn_name)
        del source
        write(DATA_FD, kind, payload)
        while True:
            _, payload = read(DATA_FD)
            kind, result = _run(program, payload, job.max_bytes)
            if kind == wire.DONE and dirty():
                kind = wire.DONE_DIRTY
            write(DATA_FD, kind, result)
    except BaseException:
        leave(CAPTURE_FAILED)
    finally:
        leave(0)
