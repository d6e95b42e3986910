"""How a demo problem is written down, and the inputs that many of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["function", "stdin"]


@dataclass(frozen=True)
class Problem:
    """One task: its statement, a reference solution, and the inputs it is tested on."""

    name: str
    """Unique; for a function problem also the function's name."""
    kind: Kind
    statement: str
    solution: str
    """Python source; the expected outputs come from running it."""
    inputs: tuple[Any, ...]
    """Lists of positional arguments (function) or texts on standard input (stdin)."""

    @property
    def starter_code(self) -> str:
        """The first line of a function's reference, its signature; empty for a program."""
        return self.solution.split("\n", 1)[0] if self.kind == "function" else ""


def fn(signature: str, what: str, body: str, cases: Sequence[Any]) -> Problem:
    """A function problem: `what` completes "Write a Python function SIGNATURE that ...".

    `body` is one expression to return, or several lines. With a single parameter a case is its value,
    with several it is their tuple.
    """
    name, _, rest = signature.partition("(")
    single = "," not in rest
    if "\n" not in body:
        body = f"return {body}"
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    inputs = tuple([case] if single else list(case) for case in cases)
    statement = f"Write a Python function {signature} that {what}"
    return Problem(name, "function", statement, f"def {signature}:\n{lines}", inputs)


def program(name: str, what: str, code: str, cases: Sequence[str]) -> Problem:
    """A stdin problem: `what` completes "Write a Python program that ...", a case is the text it reads."""
    inputs = tuple(f"{case}\n" for case in cases)
    return Problem(name, "stdin", f"Write a Python program that {what}", f"{code}\n", inputs)
