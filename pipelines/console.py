"""Keeps the terminal readable: all output of a local run goes to a log file, what the steps say to the terminal too."""

from __future__ import annotations

import builtins
import io
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from components.core.errors import UserError
from components.core.progress import MARK

_ERROR = f"{UserError.__module__}.{UserError.__qualname__}: "
"""How a traceback's last line begins where a step has said in words what is wrong."""


class _Filter(io.TextIOBase):
    """A text stream that forwards marked lines, with the time since the start."""

    def __init__(self, log: io.TextIOBase, terminal: io.TextIOBase) -> None:
        self._log, self._terminal = log, terminal
        self._line = ""
        self._start = time.monotonic()
        self.tail: deque[str] = deque(maxlen=40)
        self.error = ""

    def write(self, text: str) -> int:
        """Take any piece of text; lines are looked at when they are whole."""
        self._log.write(text)
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self.tail.append(line)
            self.error = line.partition(_ERROR)[2] or self.error
            _, mark, said = line.partition(MARK)
            if mark:
                seconds = int(time.monotonic() - self._start)
                self._terminal.write(f"{seconds // 60:3d}:{seconds % 60:02d}  {said}\n")
        self._terminal.flush()
        self._log.flush()
        return len(text)


@contextmanager
def quiet(log_path: Path) -> Iterator[None]:
    """Redirect standard output; if the body raises, its last lines are shown after all.

    Args:
        log_path: is appended to.

    Raises:
        UserError: the body failed, and a step had said why in a UserError of its own: this is it.
    """
    log_path.parent.mkdir(parents=True, exist_ok=True)
    terminal, plain_print = sys.stdout, builtins.print
    with open(log_path, "a") as log:
        stream = _Filter(log, terminal)  # type: ignore[arg-type]
        try:
            with redirect_stdout(stream):
                yield
        except Exception as error:
            if stream.error:
                raise UserError(f"{stream.error}\nthe whole log: {log_path}") from error
            terminal.write("\n".join(["", *stream.tail, "", f"the whole log: {log_path}", ""]))
            raise
        finally:
            builtins.print = plain_print  # kfp's local runner indents by replacing it, and loses count among threads
