"""What a rollout mode says and hears. A mode is a generator: it yields what it wants and is sent what came of it.

    Ask(role, messages)   an answer of the policy        -> Turn, or None if the conversation has become too long
    [Ask, Ask, ...]       several at the same time       -> a list of these
    RunTests(code)        the problem's public tests     -> Feedback, or None if it has none

Each answer becomes a row. A mode sees the public tests only: the others, and the reference solutions, are taken out
of the problem before it gets there, so that no prompt can hold them.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

from components.core.errors import UserError
from components.core.plugin import load_function
from components.core.schema import Problem, Test
from components.rollout.engine import Message


@dataclass(frozen=True)
class Case:
    """One sample that a mode has to produce."""

    problem: Problem
    """With its public tests only, and without reference solutions and metadata."""
    messages: list[Message]
    """The problem as the configured templates put it: the conversation that a first answer is asked with."""
    random: random.Random
    """Seeded by the run's seed, the place in the run, the problem and the sample. Use no other randomness."""


@dataclass(frozen=True)
class Ask:
    """Wants an answer of the policy."""

    role: str
    """Names what the answer is for. Rewards are compared among the answers to one problem in one role."""
    messages: list[Message]
    """The conversation so far; its last message is not the assistant's."""


@dataclass
class Turn:
    """An answer of the policy."""

    text: str
    finish_reason: str
    """`stop` or `length`."""
    answer: str | None = None
    """Set it to the text that the turn is to be graded by, if that is not its own: a judge's choice, say. The last
    turn's is what the whole sample is worth in an evaluation."""


@dataclass(frozen=True)
class RunTests:
    """Wants a program run on the problem's public tests."""

    code: str | None


@dataclass(frozen=True)
class Feedback:
    """What came of that."""

    verdict: str
    """AC if all passed, else what the first failing test says; see sandbox/model.py."""
    passed: int
    total: int
    failing: Test | None
    """The first failing test, where it is one test that fails."""
    reason: str
    """The error's last line, or nothing."""


Want = Ask | RunTests | list[Ask]
Steps = Generator[Want, Any, None]
Mode = Callable[[Case], Steps]

_MODES = {name: f"components.rollout.modes.{name}:{name}" for name in ("single", "refine", "solver_judge", "debate")}


def load_mode(name: str, options: dict[str, Any]) -> Mode:
    """A mode of ours by its name, or a user's as `package.module:function`, with its options.

    Raises:
        UserError: there is no such mode, it has no such option, or one is missing.
    """
    if name not in _MODES and ":" not in name:
        raise UserError(f"rollout.mode={name}: neither one of {', '.join(_MODES)} nor package.module:function")
    function = load_function(_MODES.get(name, name), "rollout.mode")
    if not inspect.isgeneratorfunction(function):
        raise UserError(f"rollout.mode={name}: not a generator function; it has to yield Ask, [Ask, ...] or RunTests")
    known = list(inspect.signature(function).parameters.values())[1:]
    named = [parameter for parameter in known if parameter.kind is not parameter.VAR_KEYWORD]
    names = {parameter.name for parameter in named}
    for option in sorted(options.keys() - names):
        if len(names) == len(known):
            listed = ", ".join(sorted(names)) or "none"
            raise UserError(f"rollout.mode_options.{option}: the mode {name} has no such option; it has {listed}")
    for parameter in named:
        if parameter.default is parameter.empty and parameter.name not in options:
            raise UserError(f"rollout.mode_options: the mode {name} needs the option {parameter.name}")
    return lambda case: function(case, **options)


def code_block(program: str | None) -> str:
    """A program as a prompt shows it: fenced, by more marks than stand together in the program."""
    marks = max(map(len, re.findall("`+", program or "")), default=0) + 1
    fence = "`" * max(3, marks)
    return f"{fence}python\n{program or '# no program was found'}\n{fence}"


def public_part(problem: Problem) -> Problem:
    """The problem as a mode may see it."""
    shown = [test for test in problem.tests if test.public]
    return replace(problem, tests=shown, reference_solutions=[], metadata={})
