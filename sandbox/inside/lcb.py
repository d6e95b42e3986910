"""The semantics of LiveCodeBench's official harness, quirks included, without its comparator.

A stdin program is hoisted into one function and called once a test with a mocked stdin; a functional one is executed
after the preamble. Written from the harness's observed behaviour; see tests/sandbox for the agreement row by row.
"""

from __future__ import annotations

import ast
import builtins
import io
import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from . import encode, real, wire

FILE_NAME = "<string>"
_PREAMBLE = "".join(f"from {name} import *\n" for name in real.PREAMBLE_STARS) + "".join(
    f"import {name}\n" for name in real.PREAMBLE_MODULES
)
_PREAMBLE += f"sys.setrecursionlimit({real.RECURSION_LIMIT})\n"
_DISABLED_IN_OS = (
    "kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames truncate "
)
_DISABLED_IN_OS += "replace unlink fchmod fchown chmod chown chroot lchown getcwd chdir"


class _Buffer:
    """stdin.buffer: the whole input at every read, the first line at every readline."""

    def __init__(self, text: str) -> None:
        self.inputs = text.encode("utf-8")

    def read(self, *_: Any) -> bytes:
        return self.inputs

    def readline(self, *_: Any) -> bytes:
        return self.inputs.split(b"\n")[0] + b"\n"


class _Stdin:
    """sys.stdin: readline moves on, read and readlines always give everything."""

    def __init__(self, text: str) -> None:
        self.inputs = text
        self._lines = io.StringIO(text)
        self.buffer = _Buffer(text)

    def read(self, *_: Any) -> str:
        return self.inputs

    def readline(self, *args: Any) -> str:
        return self._lines.readline(*args)

    def readlines(self, *_: Any) -> list[str]:
        return self.inputs.split("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lines, name)


def _disarm() -> None:
    """The harness sets these to None; calling one is then a TypeError, not a PermissionError."""
    for name in _DISABLED_IN_OS:
        setattr(os, name, None)
    vars(builtins).update(quit=None, help=None)
    for name in ("ipdb", "joblib", "resource", "psutil", "tkinter"):
        sys.modules[name] = None  # type: ignore[assignment]


def _opener(text: str) -> Callable[..., Any]:
    """The mocked built-in open, which only code outside the program's own module sees."""

    def mocked(*args: Any, **kwargs: Any) -> Any:
        from unittest.mock import mock_open  # large, and next to never needed

        return mock_open(read_data=text)(*args, **kwargs)

    return mocked


@contextmanager
def _patched(target: object, **attributes: Any) -> Iterator[None]:
    """Attributes replaced for a while, and put back as they were."""
    own = vars(target)
    before = {name: own[name] for name in attributes if name in own}
    for name, value in attributes.items():
        setattr(target, name, value)
    try:
        yield
    finally:
        for name in attributes:
            if name in before:
                setattr(target, name, before[name])
            else:
                delattr(target, name)


def without_main_guard(source: str) -> str:
    """If the last statement is the main guard, its body takes its place; an else is dropped."""
    try:
        tree = ast.parse(source)
        last = tree.body[-1]
        if isinstance(last, ast.If) and ast.unparse(last.test).strip() == "__name__ == '__main__'":
            head = ast.unparse(ast.Module(tree.body[:-1], []))
            return head + "\n" + ast.unparse(ast.Module(last.body, []))
    except Exception:
        pass  # what does not parse fails when it is compiled
    return source


def as_function(source: str) -> str:
    """Imports first, everything else the body of wrapped_function."""
    try:
        tree = ast.parse(source)
        imports: list[ast.stmt] = [s for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
        rest = [s for s in tree.body if not isinstance(s, (ast.Import, ast.ImportFrom))]
        arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        function = ast.FunctionDef(name="wrapped_function", args=arguments, body=rest, decorator_list=[], lineno=-1)
        return _PREAMBLE + "\n" + ast.unparse(ast.Module(imports, [])) + "\n" + ast.unparse(function)
    except Exception:
        return source


def _load(text: str, source: str) -> Any:
    module = types.ModuleType("tmp_sol", "")
    # Compiled apart: exec of text would hand this file's future statements on.
    exec(compile(text, FILE_NAME, "exec", dont_inherit=True), vars(module))
    # The official rule looks at the text, comments included.
    return vars(module)["Solution"]() if "class Solution" in source else module


class StdinProgram:
    """A stdin program under the official harness; one namespace for all tests."""

    def __init__(self) -> None:
        self._function: Any = None

    def load(self, source: str, _fn_name: str) -> bytes:
        """Transform, compile and run the imports."""
        _disarm()
        text = as_function(without_main_guard(source))
        self._function = getattr(_load(text, text), "wrapped_function", None)
        return wire.READY if self._function is not None else wire.NOT_FOUND

    def run(self, payload: bytes, _max_bytes: int) -> bytes:
        """One call; what it printed through sys.stdout."""
        text = payload.decode("utf-8", "surrogatepass")
        lines = iter(text.split("\n"))
        captured = io.StringIO()
        captured.close = lambda *_: None  # type: ignore[method-assign]  # a program may close stdout
        # Quirk: read, readline and readlines are replaced on the real stdin object, which is then itself replaced.
        reading = {
            "read": lambda *_: text,
            "readlines": lambda *_: text.split("\n"),
            "readline": lambda *_: next(lines),
        }
        mocked = {"stdin": _Stdin(text), "stdout": captured}
        mocked_open = _patched(builtins, open=_opener(text))
        with _patched(sys.stdin, **reading), _patched(sys, **mocked), mocked_open, suppress(SystemExit):
            self._function()
        return captured.getvalue().encode("utf-8", "surrogatepass")


class FunctionProgram:
    """A functional program under the official harness; one instance for all tests."""

    def __init__(self) -> None:
        self._method: Any = None

    def load(self, source: str, fn_name: str) -> bytes:
        """Execute after the preamble and look the method up."""
        _disarm()
        self._method = getattr(_load(_PREAMBLE + "\n\n" + source, source), fn_name, None)
        return wire.READY if self._method is not None else wire.NOT_FOUND

    def run(self, payload: bytes, max_bytes: int) -> bytes:
        """Call with the arguments of one test; the encoded result."""
        try:
            result = self._method(*json.loads(payload))
        except SystemExit as exit_:
            raise real.ExitStatus(f"exit inside the function: {exit_.code!r:.100}") from None
        return encode.encode(result, max_bytes)
