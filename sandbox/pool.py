"""The grader: slots over zygotes, fed from a stream of programs, in one event loop in the judging process."""

from __future__ import annotations

import re
import selectors
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

from . import compare
from .case import Case, Outcome
from .checker import CheckerHost
from .host import PACKAGES, Host, HostConfig, HostError
from .inside.lockdown import set_dumpable, set_not_dumpable
from .model import BadProgram, HarnessError, Mode, Program, Verdict, allow_long_integers, parse_program
from .slot import Slot, State

_MAX_RETRIES = 2
_REMEMBERED_VERDICTS = 4096
_REMEMBERED_PROBLEMS = 4096
_ALONE_BATCH = 8
"""How many cases may wait for their run alone before the other lanes are stopped for them."""
_CLAUSE = re.compile(r"[\w., \t]+")
_KEYWORD = re.compile(r"\b(?:import|from)\s")
_PACKAGE = re.compile(r"\b(?:" + "|".join(PACKAGES) + r")\b")


def uses_packages(code: str) -> bool:
    """Whether a program seems to import one of PACKAGES; if it does all the same, unseen, the import fails.

    In one pass: the program is untrusted, and a pattern that backtracks would let it hold up the judge.
    """
    for clause in _CLAUSE.finditer(code):
        keyword = _KEYWORD.search(clause[0])
        if keyword and _PACKAGE.search(clause[0], keyword.end()):
            return True
    return False


@dataclass(frozen=True)
class Settings:
    """How a pool grades."""

    mode: Mode = "real"
    workers: int = 1
    """Lanes."""
    early_exit: bool = True
    """Stop at a program's first failing test; without it `passed` counts all of them."""
    landlock: bool = True


NOTHING_YET = object()
"""What an iterator of programs may answer instead of blocking."""


class Pool:
    """Lanes that live until `close`; grade as many streams as you like, one after another.

    While a pool lives its process is not dumpable: a candidate of the same uid could otherwise read expected outputs
    out of it. Parts of its own /proc are then closed to it as well, unless it is root.
    """

    _alive = 0

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._open = True
        Pool._alive += 1
        set_not_dumpable()
        allow_long_integers()
        self._selector = selectors.DefaultSelector()
        self._started = 0
        self._finished: deque[Verdict] = deque()
        self._ready: deque[Case] = deque()
        self._alone: deque[Case] = deque()
        self._running: dict[str, Case] = {}
        self._known: OrderedDict[str, Verdict] = OrderedDict()
        self._kills: OrderedDict[str, Counter[int]] = OrderedDict()
        self._checker = CheckerHost(self._new_host)
        self.slots: list[Slot] = []
        self._package_slots: list[Slot] = []
        try:
            self.slots += [self._slot(self._new_host(with_packages=False)) for _ in range(settings.workers)]
            for slot in self.slots:
                slot.host.wait_ready()
        except BaseException:
            self.close()
            raise

    def _new_host(self, *, with_packages: bool) -> Host:
        self._started += 1
        return Host(HostConfig(landlock=self.settings.landlock, with_packages=with_packages), self._started)

    def _slot(self, host: Host) -> Slot:
        return Slot(host, self._selector, self._checker.check, self._handed_back)

    def close(self) -> None:
        """End every process and close every descriptor."""
        for slot in [*self.slots, *self._package_slots]:
            slot.close()
        self.slots, self._package_slots = [], []
        self._checker.close()
        self._selector.close()
        if self._open:
            self._open = False
            Pool._alive -= 1
            if not Pool._alive:
                set_dumpable()

    @property
    def layers(self) -> dict[str, Any]:
        """The layers in force in the lanes."""
        return self.slots[0].host.layers

    # --- the stream -------------------------------------------------------------------------------------------------

    def grade(self, programs: Iterable[Any], *, wake: int | None = None) -> Iterator[dict[str, Any]]:
        """Verdicts in any order, as programs are consumed; at most a lane's worth is held at a time.

        wake: a descriptor that becomes readable when an iterator that said NOTHING_YET has more.
        """
        if wake is not None:
            self._selector.register(wake, selectors.EVENT_READ, None)
        try:
            yield from self._grade(iter(programs))
        finally:
            if wake is not None:
                self._selector.unregister(wake)
            if self._running:  # the consumer has left in the middle
                self._start_anew()

    def _start_anew(self) -> None:
        """Drop all that is held, so that the next stream gets its own verdicts only."""
        self._finished.clear()
        self._ready.clear()
        self._alone.clear()
        self._running.clear()
        for slot in self._busy():
            slot.case = None
            self._replace(slot, HostError("abandoned"))

    def _grade(self, source: Iterator[Any]) -> Iterator[dict[str, Any]]:
        more = True
        while True:
            while more and self._wants_more():
                try:
                    raw = next(source)
                except StopIteration:
                    more = False
                    break
                if raw is NOTHING_YET:
                    break
                self._admit(raw)
                yield from self._drain()
            self._assign(more)
            if not self._busy() and not self._ready and not self._alone and not more:
                break
            if self._busy() or not (
                self._ready or self._alone
            ):  # else a start has failed: there is nothing to wait for
                self._turn()
            yield from self._drain()
        yield from self._drain()

    def _drain(self) -> Iterator[dict[str, Any]]:
        while self._finished:
            yield self._finished.popleft().as_dict()

    def _busy(self) -> list[Slot]:
        return [slot for slot in (*self.slots, *self._package_slots) if slot.state is not State.IDLE]

    def _wants_more(self) -> bool:
        return len(self._alone) < _ALONE_BATCH and len(self._busy()) + len(self._ready) < len(self.slots)

    def _admit(self, raw: Any) -> None:
        identity = raw.get("id") if isinstance(raw, dict) else None
        try:
            program = parse_program(raw, self.settings.mode)
            if program.comparator != compare.CUSTOM and program.comparator not in compare.COMPARATORS:
                raise BadProgram(f"unknown comparator {program.comparator!r}")
            if program.comparator == compare.CUSTOM and not isinstance(program.options.get("checker"), str):
                raise BadProgram("comparator checker needs the checker's source in `checker`")
        except HarnessError as error:
            self._finished.append(Verdict(identity, "RE", total=len(raw["tests"]), reason=str(error)))
            return
        except BadProgram as error:
            self._finished.append(Verdict(identity, "INFRA", reason=str(error)))
            return
        if program.code is None or not program.code.strip():
            self._finished.append(Verdict(program.id, "NF", total=len(program.tests), reason="no code"))
        elif program.key in self._known:
            self._known.move_to_end(program.key)
            self._repeat(self._known[program.key], program.id)
        elif program.key in self._running:
            self._running[program.key].followers.append(program.id)
        else:
            case = Case(program, self.settings.mode, self._kills_of(program), early_exit=self.settings.early_exit)
            self._running[program.key] = case
            self._ready.append(case)

    def _repeat(self, verdict: Verdict, identity: Any) -> None:
        repeated = copy(verdict)
        repeated.id, repeated.extra = identity, verdict.extra | {"duplicate": True}
        repeated.cpu_ms = repeated.wall_ms = 0.0
        self._finished.append(repeated)

    def _kills_of(self, program: Program) -> Counter[int]:
        kills = self._kills.setdefault(program.problem_key, Counter())
        self._kills.move_to_end(program.problem_key)
        if len(self._kills) > _REMEMBERED_PROBLEMS:
            self._kills.popitem(last=False)
        return kills

    # --- lanes ------------------------------------------------------------------------------------------------------

    def _assign(self, more: bool) -> None:
        """Give waiting cases to idle lanes; cases to be run alone wait for all lanes to be idle."""
        busy = self._busy()
        if self._alone and (len(self._alone) >= _ALONE_BATCH or not (more or self._ready)):
            if not busy:
                self._start(self._alone.popleft())
            return
        if any(slot.case and slot.case.alone for slot in busy):
            return
        for _ in range(len(self.slots) - len(busy)):
            if self._ready:
                self._start(self._ready.popleft())

    def _start(self, case: Case) -> None:
        needs_packages = uses_packages(case.program.code or "")
        slots = self._package_slots if needs_packages else self.slots
        slot = next((slot for slot in slots if slot.state is State.IDLE), None)
        try:
            if slot is None:
                host = self._new_host(with_packages=needs_packages)
                slots.append(slot := self._slot(host))
                host.wait_ready()
            slot.start(case)
        except HostError as error:
            assert slot is not None
            slot.case = case
            self._replace(slot, error)

    def _replace(self, slot: Slot, error: HostError) -> None:
        """A zygote is lost: its case goes back to the queue, a new one takes the lane."""
        slots = self._package_slots if slot in self._package_slots else self.slots
        slots.remove(slot)
        case = slot.close()
        if case is not None and case.finished:  # only its child was still to be reaped
            self._publish(case)
        elif case is not None:
            self._retry_or_give_up(case, str(error))
        if slots is self.slots:
            host = self._new_host(with_packages=False)
            self.slots.append(self._slot(host))
            host.wait_ready()

    def _retry_or_give_up(self, case: Case, reason: str) -> None:
        case.infra_failures += 1
        case.alone = False
        if case.infra_failures > _MAX_RETRIES:
            case.fail_all(Outcome("INFRA", reason))
            self._publish(case)
        else:
            self._ready.append(case)

    def _handed_back(self, case: Case) -> None:
        if case.alone and not case.finished:
            self._alone.append(case)
        elif case.failure is not None and case.failure.verdict == "INFRA":
            reason = case.failure.reason
            fresh = Case(case.program, case.mode, self._kills_of(case.program), early_exit=case.early_exit)
            fresh.followers, fresh.infra_failures = case.followers, case.infra_failures
            fresh.cpu_s, fresh.started = case.cpu_s, case.started
            self._running[case.program.key] = fresh
            self._retry_or_give_up(fresh, reason)
        else:
            self._publish(case)

    def _publish(self, case: Case) -> None:
        verdict = case.verdict()
        program = case.program
        del self._running[program.key]
        self._finished.append(verdict)
        for identity in case.followers:
            self._repeat(verdict, identity)
        if verdict.verdict == "INFRA":
            return
        if verdict.first_failure is not None:
            self._kills_of(program)[verdict.first_failure] += 1
        self._known[program.key] = verdict
        if len(self._known) > _REMEMBERED_VERDICTS:
            self._known.popitem(last=False)

    def _turn(self) -> None:
        """Wait for the next event or due check, and handle all that are there."""
        slots = [*self.slots, *self._package_slots]
        due = min((slot.next_check for slot in slots), default=float("inf"))
        timeout = None if due == float("inf") else max(0.0, due - time.monotonic())
        for key, mask in self._selector.select(timeout):
            if key.data is None:  # only to wake up
                continue
            handler = key.data
            slot: Slot = handler.__self__
            if slot.closed:  # by an earlier event of this turn
                continue
            try:
                handler(mask)
            except HostError as error:
                self._replace(slot, error)
        now = time.monotonic()
        for slot in slots:
            # After the events: an answer that is there already is judged by the time it used, not by when it is read.
            if not slot.closed and slot.next_check <= now:
                try:
                    slot.tick(now)
                except HostError as error:
                    self._replace(slot, error)
