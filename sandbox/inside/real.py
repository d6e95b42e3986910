"""Real process semantics: a program runs as `python sol.py < input > output` would, in the process's own fds.

Names that contest programs use without importing them are added to the built-ins, so that the module's globals hold
only what a real process would have.
"""

from __future__ import annotations

import atexit
import builtins
import io
import json
import os
import random
import sys
import threading
import types
from contextlib import nullcontext, suppress
from typing import Any

from . import encode, wire

RECURSION_LIMIT = 50_000
INT_DIGITS = 50_000
# fmt: off
PREAMBLE_MODULES = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools",
    "functools", "operator", "io", "sys", "json",
)
# fmt: on
PREAMBLE_STARS = (*PREAMBLE_MODULES, "builtins", "typing")


def preamble() -> dict[str, Any]:
    """The names that the official harness's preamble gives to every program."""
    names: dict[str, Any] = {}
    for module in PREAMBLE_STARS:
        exec(f"from {module} import *", names)
    for module in PREAMBLE_MODULES:
        exec(f"import {module}", names)
    del names["__builtins__"]
    return names


class Interpreter:
    """The state of the interpreter that is put back before every test.

    What is missed here can make a later test fail, never pass wrongly; the judge repeats a failing test in a fresh
    process before it counts.
    """

    def __init__(self) -> None:
        names = preamble()
        for name in ("stdin", "stdout", "stderr"):
            names.pop(name, None)
        for name, value in names.items():
            if not hasattr(builtins, name):
                setattr(builtins, name, value)
        for name in ("exit", "quit"):
            setattr(builtins, name, sys.exit)
        self._builtins = dict(vars(builtins))
        self._touches_builtins = False
        self._inodes: list[int] = []

    def note_fds(self) -> None:
        """Remember what fds 0 to 2 are, to notice a program that closed or replaced one."""
        self._inodes = [os.fstat(fd).st_ino for fd in range(3)]

    def note_source(self, source: str) -> None:
        """Whether the program may change the built-ins; putting them back for every one would copy many pages."""
        self._touches_builtins = "builtins" in source

    def reset(self) -> None:
        """Before a test: built-ins, limits, the random state and fresh text layers over fds 0 to 2."""
        self.restore_builtins()
        sys.setrecursionlimit(RECURSION_LIMIT)
        random.seed(0)
        sys.argv = ["sol.py"]
        stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8", "surrogateescape")
        stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8", "surrogateescape")
        stderr = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8", "backslashreplace", line_buffering=True
        )
        for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
            setattr(builtins, name, stream)

    def restore_builtins(self) -> None:
        """Undo what a program did to the built-ins."""
        if self._touches_builtins:
            vars(builtins).update(self._builtins)

    def is_dirty(self) -> bool:
        """Whether this process cannot serve another test."""
        self.restore_builtins()
        if threading.active_count() > 1:
            return True
        try:
            return [os.fstat(fd).st_ino for fd in range(3)] != self._inodes
        except OSError:
            return True


def new_main() -> types.ModuleType:
    """A fresh __main__, registered, so that pickle and threads find the program's classes."""
    main = types.ModuleType("__main__")
    vars(main).update(__builtins__=builtins, __file__="sol.py")
    sys.modules["__main__"] = main
    return main


def finish() -> None:
    """What the interpreter does at exit: wait for non-daemon threads, run exit functions, flush."""
    current = threading.current_thread()
    while waiting := [t for t in threading.enumerate() if t is not current and not t.daemon]:
        for thread in waiting:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None and not stream.closed:
            stream.flush()


class ExitStatus(Exception):
    """The program ended itself with a status other than 0."""


def raise_unless_success(exit_: SystemExit) -> None:
    """Turn a SystemExit that a shell would see as failure into ExitStatus."""
    code = exit_.code
    if code is None or (isinstance(code, int) and code & 0xFF == 0):
        return
    raise ExitStatus(str(code)[:200])


class StdinProgram:
    """A program that reads standard input; every run has a fresh __main__."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._code: types.CodeType | None = None

    def load(self, source: str, _fn_name: str) -> bytes:
        """Compile only; running is what the tests do."""
        self._interpreter.note_source(source)
        self._code = compile(source, "sol.py", "exec", dont_inherit=True)
        return wire.READY

    def run(self, _payload: bytes, _max_bytes: int) -> bytes:
        """One run over fd 0 and fd 1; the output stays on fd 1."""
        assert self._code is not None
        self._interpreter.reset()
        main = new_main()
        failed = True
        try:
            try:
                exec(self._code, vars(main))
            except SystemExit as exit_:
                raise_unless_success(exit_)
            failed = False
        finally:
            # A process does this after an exception as well, which then remains what is reported.
            with suppress(Exception) if failed else nullcontext():
                finish()
                # Buffers that the program itself put over fd 1 are flushed when its globals go.
                vars(main).clear()
                sys.stdout = sys.__stdout__
        return b""


class FunctionProgram:
    """A program that defines a function, or a class Solution with a method; called once a test."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._main: types.ModuleType | None = None
        self._fn_name = ""

    def load(self, source: str, fn_name: str) -> bytes:
        """Run the module once and look the function up."""
        self._interpreter.note_source(source)
        code = compile(source, "sol.py", "exec", dont_inherit=True)
        self._fn_name = fn_name
        self._interpreter.reset()
        self._main = new_main()
        # Not "__main__": what a program does under its main guard is no part of the function.
        vars(self._main)["__name__"] = "sol"
        sys.modules["sol"] = self._main
        try:
            exec(code, vars(self._main))
        except SystemExit as exit_:
            raise ExitStatus(f"exit while the module was loaded: {exit_.code!r:.100}") from None
        return wire.READY if self._find() is not None else wire.NOT_FOUND

    def _find(self) -> Any:
        names = vars(self._main)
        solution = names.get("Solution")
        if isinstance(solution, type) and hasattr(solution, self._fn_name):
            return getattr(solution(), self._fn_name)
        found = names.get(self._fn_name)
        return found if callable(found) else None

    def run(self, payload: bytes, max_bytes: int) -> bytes:
        """Call with the arguments of one test; the encoded result."""
        arguments = json.loads(payload)
        self._interpreter.reset()
        try:
            result = self._find()(*arguments)
        except SystemExit as exit_:
            raise ExitStatus(f"exit inside the function: {exit_.code!r:.100}") from None
        return encode.encode(result, max_bytes)
