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
        """AC or WA by the checker's answer; INFRA if it gives none."""
        given = json.loads(test.input) if test.kind == "function" else test.input.decode("utf-8", "replace")
        arguments = json.dumps([given, output, test.expected]).encode("ascii")
        # The answer is compared with True as any function's result is.
        call = Test("function", arguments, True)
        source = program.options["checker"] + "\n\ndef __checked(*a):\n    return bool(check(*a))\n"
        judged = Program(
            None, source, (call,), "__checked", "lcb", {"wrapping": "bare"}, CHECKER_TIME_S, CHECKER_MEMORY_MB, "", ""
        )
        case = Case(judged, "real", Counter(), early_exit=True)
        try:
            self._run(case)
        except HostError as error:
            self.close()
            return Outcome("INFRA", f"checker: {error}")
        if case.failure is None:
            return Outcome("AC")
        if case.failure.verdict == "WA":
            return Outcome("WA", "rejected by the checker")
        return Outcome("INFRA", f"the checker failed: {case.failure.verdict} {case.failure.reason}")

    def _run(self, case: Case) -> None:
        from .slot import Slot, State

        if self._host is None:
            self._host = self._new_host(with_packages=False)
            self._host.wait_ready()
        with selectors.DefaultSelector() as selector:
            slot = Slot(self._host, selector, self.check, lambda _: None)
            slot.start(case)
            while slot.state is not State.IDLE:
                timeout = max(0.0, slot.next_check - time.monotonic()) if slot.next_check != float("inf") else None
                for key, mask in selector.select(timeout):
                    key.data(mask)
                if slot.next_check <= time.monotonic():
                    slot.tick(time.monotonic())
