"""Custom checkers: a problem's own program decides, in a sandbox that never runs a candidate.

The checker defines `check(input, output, expected)` and returns a truth value. For function tests `input` is the list
of arguments and `output` the result. Since it is handed the expected output, it has a zygote of its own.
"""

from __future__ import annotations

import json
import selectors
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from .case import Case, Outcome
from .host import Host, HostError
from .model import Program, Test

CHECKER_TIME_S = 10.0
CHECKER_MEMORY_MB = 1024
"""Limits of one call of a checker; a checker over them is the problem's fault, and the verdict INFRA."""


class CheckerHost:
    """Runs checkers, one at a time; started at the first use."""

    def __init__(self, new_host: Callable[..., Host]) -> None:
        self._new_host = new_host
        self._host: Host | None = None

    def close(self) -> None:
        """End the checkers' zygote."""
        if self._host is not None:
            self._host.close()
            self._host = None

    def check(self, program: Program, test: Test, output: Any) -> Outcome:
        """AC or WA by the checker's answer; INFRA if it cannot judge even the expected output."""
        outcome = self._ask(program, test, output)
        if outcome.verdict in ("AC", "WA", "INFRA"):
            return outcome
        # It failed on this output. That is the output's fault if the checker does accept the expected one: a program
        # must not gain by writing what makes a checker raise.
        if self._ask(program, test, test.expected).passed:
            return Outcome("WA", f"the checker could not read the output: {outcome.verdict} {outcome.reason}")
        return Outcome("INFRA", f"the checker failed: {outcome.verdict} {outcome.reason}")

    def _ask(self, program: Program, test: Test, output: Any) -> Outcome:
        """What the checker came to, as the verdict of a function test whose right result is True."""
        given = json.loads(test.input) if test.kind == "function" else test.input.decode("utf-8", "replace")
        arguments = json.dumps([given, output, test.expected]).encode("ascii")
        source = program.options["checker"] + "\n\ndef __checked(*a):\n    return bool(check(*a))\n"
        call, options = Test("function", arguments, True), {"wrapping": "bare"}
        judged = Program(None, source, (call,), "__checked", "lcb", options, CHECKER_TIME_S, CHECKER_MEMORY_MB, "", "")
        case = Case(judged, "real", Counter(), early_exit=True)
        try:
            self._run(case)
        except HostError as error:
            self.close()
            return Outcome("INFRA", f"checker: {error}")
        verdict = case.verdict()
        return Outcome(verdict.verdict, "rejected by the checker" if verdict.verdict == "WA" else verdict.reason)

    def _run(self, case: Case) -> None:
        from .slot import Slot, State

        if self._host is None:
            self._host = self._new_host(with_packages=False)
            self._host.wait_ready()
        with selectors.DefaultSelector() as selector:
            slot = Slot(self._host, selector, self.check, lambda _: None)
            while not case.finished or slot.state is not State.IDLE:
                if slot.state is State.IDLE:  # at first, and to repeat what came to its limit under load
                    slot.start(case)
                timeout = max(0.0, slot.next_check - time.monotonic()) if slot.next_check != float("inf") else None
                for key, mask in selector.select(timeout):
                    key.data(mask)
                if slot.next_check <= time.monotonic():
                    slot.tick(time.monotonic())
