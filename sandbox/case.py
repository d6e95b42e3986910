"""The judging of one program: which test is next, what an answer means, and when the verdict is known.

No process is touched here; `slot` drives the child and reports what happened.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import compare, values
from .model import INT_DIGITS, Mode, Program, Test, Verdict


@dataclass
class Outcome:
    """What one run of one test came to."""

    verdict: str
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether it counts as passed."""
        return self.verdict == "AC"


Checker = Callable[[Program, Test, Any], Outcome]
"""Decides by a problem's own checker; the last argument is the output."""


def readings(program: Program) -> frozenset[str]:
    """How expected values of function tests may be read: bare, or as a one-element list around the value.

    Decided from all tests together: wrapping is possible only if every test has it. The option `wrapping` (`auto`,
    `bare`, `wrapped`) settles it where the source is known.
    """
    option = program.options.get("wrapping", "auto")
    all_wrapped = all(isinstance(test.expected, list) and len(test.expected) == 1 for test in program.tests)
    if option == "bare" or not all_wrapped:
        return frozenset({"bare"})
    return frozenset({"wrapped"}) if option == "wrapped" else frozenset({"bare", "wrapped"})


class Case:
    """The state of one program's judging."""

    def __init__(self, program: Program, mode: Mode, kills: Counter[int], *, early_exit: bool) -> None:
        self.program = program
        self.mode = mode
        self.early_exit = early_exit
        self.passed = 0
        self.cpu_s = 0.0
        self.started = time.monotonic()
        self.infra_failures = 0
        self.isolate = False
        """Each remaining test in a process of its own: this program does not keep its tests apart."""
        self.alone = False
        """To be run with nothing beside it, after a time limit was hit under load."""
        self.followers: list[Any] = []
        """Ids of equal programs, which get the same verdict."""
        self.failure: Outcome | None = None
        self.first_failure: int | None = None
        self._readings = readings(program) if mode == "real" else frozenset({"bare"})
        order = list(range(len(program.tests)))
        if mode == "real":
            order.sort(key=lambda i: (-kills[i], len(program.tests[i].input)))
        self._queue = order[::-1]

    @property
    def current(self) -> int:
        """Index of the test to run now."""
        return self._queue[-1]

    @property
    def test(self) -> Test:
        """The test to run now."""
        return self.program.tests[self.current]

    @property
    def finished(self) -> bool:
        """Whether the verdict is known."""
        return not self._queue or (self.failure is not None and self.early_exit)

    def record(self, outcome: Outcome) -> None:
        """Count the current test's final outcome and go on to the next."""
        index = self._queue.pop()
        self.alone = False
        if outcome.passed:
            self.passed += 1
        elif self.failure is None:
            self.failure, self.first_failure = outcome, index

    def fail_all(self, outcome: Outcome) -> None:
        """The program as a whole has failed: it does not compile, load or define the function."""
        self.failure = outcome
        self._queue.clear()

    def judge_text(self, output: bytes, checker: Checker) -> Outcome:
        """Compare what the current test printed."""
        text = output.decode("utf-8", "surrogateescape")
        program, test = self.program, self.test
        if program.comparator == compare.CUSTOM:
            return checker(program, test, text)
        try:
            matches = compare.match_text(program.comparator, text, test.expected, program.options)
        except compare.GraderError as error:
            return Outcome("RE", str(error))
        return Outcome("AC") if matches else Outcome("WA")

    def judge_value(self, payload: bytes, checker: Checker) -> Outcome:
        """Compare what the current test's call returned."""
        program, test = self.program, self.test
        longest = INT_DIGITS
        if program.comparator != compare.CUSTOM:
            if values.is_longer_than_any_equal(payload, test.expected):
                return Outcome("WA")
            longest = values.longest_integer(payload, test.expected)
        try:
            result = values.decode(payload, longest)
        except values.Undecodable as error:
            return Outcome("RE", f"not a result: {error}")
        if isinstance(result, values.Opaque) and result.type_name == "ndarray":
            return Outcome("RE", "an array has no single truth value")
        if program.comparator == compare.CUSTOM:
            return checker(program, test, values.to_plain(result))
        matching = {
            reading
            for reading in self._readings
            if values.match_value(
                program.comparator,
                result,
                test.expected[0] if reading == "wrapped" else test.expected,
                program.options,
            )
        }
        if not matching:
            return Outcome("WA")
        # One reading must explain all tests, never each its own.
        self._readings = frozenset(matching)
        return Outcome("AC")

    def verdict(self) -> Verdict:
        """The verdict, once finished."""
        outcome = self.failure
        if outcome is None:
            missing = self.passed != len(self.program.tests)
            outcome = Outcome("INFRA", "not every test was judged") if missing else Outcome("AC")
        return Verdict(
            self.program.id,
            outcome.verdict,
            self.passed,
            len(self.program.tests),
            self.first_failure,
            self.cpu_s * 1e3,
            (time.monotonic() - self.started) * 1e3,
            outcome.reason,
        )
