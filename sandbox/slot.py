"""One lane of the grader: a zygote and the program that it runs now, as a state machine on readiness events.

A child's answers, its death, its silence and its noise all end in an Outcome; only the zygote's own failure is a
HostError, after which the slot is closed and its case goes to another.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from enum import Enum, auto

from .case import Case, Checker, Outcome
from .host import Host
from .inside import wire
from .inside.wire import Job

OUTPUT_BYTES = 16 << 20
"""Cap on what one test prints or returns; at it the verdict is OLE."""
_MESSAGE_BYTES = 8192
_LOAD_FLOOR_S = 10.0
"""CPU seconds that loading may take at the least: imports are no work of the program's."""
_FIRST_TICK_S, _TICK_S = 0.05, 0.1
_CLOSING_S = 0.2
_GREY_ZONE = 1.5
"""Under load a run may use this multiple of its CPU limit before it is killed; one that ends in between is repeated
alone, since cores and caches shared with others make the same work cost more CPU time."""
_STARVED_SHARE = 0.1
"""Share of the time spent ready but without a core above which the machine is too busy to trust a limit."""
_STARVED_LIMIT = 20
"""Multiple of the wall limit after which a run that never gets a core is given up, to be repeated alone."""
_LARGE_SHARE = 0.7
"""Share of its memory limit above which a child that the kernel killed has itself to blame."""
_NEVER = float("inf")

_FORGED = Outcome("RE", "the program wrote into the grader's channel")
_OUTPUT_LIMIT = Outcome("OLE", f"{OUTPUT_BYTES} bytes printed or returned, or more")


class State(Enum):
    """What the slot waits for."""

    IDLE = auto()
    LOADING = auto()
    RUNNING = auto()
    CLOSING = auto()
    """The child closed its socket; for its exit report, or a tick."""
    DYING = auto()
    """The child was killed; for its exit report."""


def wall_limit(case: Case) -> float:
    """Wall seconds for one test. CPU time is what counts; this ends programs that sleep."""
    limit = case.program.time_limit_s
    return limit if case.mode == "lcb" else 2 * limit + 1


def _message(payload: bytes) -> str:
    """A child's account of its exception, as one short printable line."""
    try:
        if len(payload) > _MESSAGE_BYTES:
            raise ValueError("too long")  # forged: the child's own is short
        kind, text = json.loads(payload)
        words = f"{kind}: {text}" if text else str(kind)
    except (ValueError, TypeError, RecursionError):
        words = "unreadable"
    return "".join(c if c.isprintable() else " " for c in words)[:300]


class Slot:
    """Runs cases one after another and hands them back, finished or marked to be repeated alone.

    Every event handler may raise HostError: the zygote is lost, and the caller replaces the slot.
    """

    def __init__(
        self, host: Host, selector: selectors.BaseSelector, checker: Checker, hand_back: Callable[[Case], None]
    ) -> None:
        self.host = host
        self.state = State.IDLE
        self.case: Case | None = None
        self.closed = False
        self.next_check = _NEVER
        """Monotonic time at which `tick` is due."""
        self._selector = selector
        self._checker = checker
        self._hand_back = hand_back
        self._after_exit: Callable[[], None] = self._died
        self._status = 0
        self._child_cpu = 0.0
        self._child_rss = 0
        self._data: socket.socket | None = None
        self._inbox = bytearray()
        self._outbox = memoryview(b"")
        self._writing = self._loading = self._suspect = False
        self._fresh = True
        self._cpu0 = self._wall0 = self._born = 0.0
        selector.register(host.control, selectors.EVENT_READ, self.on_control)

    # --- children: start, end, loss ---------------------------------------------------------------------------------

    def start(self, case: Case) -> None:
        """Take a case that is not finished."""
        self.case = case
        self._suspect = False
        self._launch()

    def _active(self) -> Case:
        assert self.case is not None
        return self.case

    def _launch(self) -> None:
        case, program = self._active(), self._active().program
        # A backstop should the judge be stopped: far above what the judge itself allows.
        backstop = int(_LOAD_FLOOR_S + 2 * _GREY_ZONE * program.time_limit_s * len(program.tests)) + 5
        memory = program.memory_limit_mb << 20
        self._data = self.host.launch(Job(case.mode, program.kind, program.fn_name, memory, backstop, OUTPUT_BYTES))
        self._inbox.clear()
        self._selector.register(self._data, selectors.EVENT_READ, self.on_data)
        self.state = State.LOADING
        self._loading = self._fresh = True
        self._writing = False
        self._after_exit = self._died
        self._start_clocks()
        self._born = self._wall0
        self._send(wire.SOURCE, (program.code or "").encode("utf-8", "surrogatepass"))

    def _start_clocks(self) -> None:
        self._cpu0 = self.host.cpu_seconds()
        self._wall0 = time.monotonic()
        self.next_check = self._wall0 + _FIRST_TICK_S

    def _kill_then(self, action: Callable[[], None]) -> None:
        """End the child, dead or alive, and act when the zygote has reaped it."""
        self._drop_data()
        self.state, self.next_check = State.DYING, _NEVER
        self._after_exit = action
        self.host.kill_child()

    def _drop_data(self) -> None:
        if self._data is not None:
            self._selector.unregister(self._data)
            self._data.close()
            self._data = None

    def close(self) -> Case | None:
        """Let go of everything; returns the case that was being run, for another slot."""
        self._drop_data()
        self._selector.unregister(self.host.control)
        self.host.close()
        case, self.case = self.case, None
        self.state, self.next_check, self.closed = State.IDLE, _NEVER, True
        return case

    def _release(self) -> None:
        case, self.case = self._active(), None
        self.state, self.next_check = State.IDLE, _NEVER
        self._hand_back(case)

    # --- sockets ----------------------------------------------------------------------------------------------------

    def _send(self, kind: bytes, payload: bytes) -> None:
        self._outbox = memoryview(wire.HEADER.pack(kind, len(payload)) + payload)
        self._flush()

    def _flush(self) -> None:
        assert self._data is not None
        blocked = False
        try:
            while self._outbox:
                self._outbox = self._outbox[self._data.send(self._outbox) :]
        except BlockingIOError:
            blocked = True
        except OSError:
            self._outbox = memoryview(b"")  # the child is gone; its end of file is on the way
        if blocked != self._writing:
            mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if blocked else 0)
            self._selector.modify(self._data, mask, self.on_data)
            self._writing = blocked

    def on_data(self, mask: int) -> None:
        """Readiness of the child's data socket."""
        if self._data is None:
            return
        if mask & selectors.EVENT_WRITE:
            self._flush()
        if not mask & selectors.EVENT_READ:
            return
        try:
            chunk = self._data.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._drop_data()
            self.state, self.next_check = State.CLOSING, time.monotonic() + _CLOSING_S
            return
        self._inbox += chunk
        if len(self._inbox) < wire.HEADER.size:
            return
        kind, length = wire.HEADER.unpack_from(self._inbox)
        end = wire.HEADER.size + length
        if kind not in wire.REPLIES or length > OUTPUT_BYTES or len(self._inbox) > end:
            self._conclude(_FORGED, alive=True)
        elif len(self._inbox) == end:
            payload = bytes(self._inbox[wire.HEADER.size :])
            self._inbox.clear()
            self._answered(kind, payload)

    def on_control(self, _mask: int) -> None:
        """Readiness of the control socket: the child's pid, or its end."""
        if not self.host.has_report():  # read by an earlier handler of the same turn
            return
        report = self.host.receive()
        if "exit" in report:
            self._reaped(report)

    def _reaped(self, report: dict[str, float]) -> None:
        self._drop_data()
        self._status = int(report["exit"])
        self._child_cpu = report["cpu_s"]
        self._child_rss = int(report["rss_kb"]) << 10
        self._active().cpu_s += self._child_cpu
        self.next_check = _NEVER
        self._after_exit()

    # --- answers ----------------------------------------------------------------------------------------------------

    def _answered(self, kind: bytes, payload: bytes) -> None:
        case = self._active()
        while self.host.pid is None:  # the zygote's report may be behind the child's answer
            if "exit" in (report := self.host.receive()):
                self._reaped(report)
                return
        if self._loading:
            self._loaded(kind, payload)
            return
        used = self.host.cpu_seconds() - self._cpu0
        if used > case.program.time_limit_s:
            self._over_limit(f"{used:.2f} s of CPU time", may_repeat=self._under_load())
        elif kind in (wire.DONE, wire.DONE_DIRTY):
            self._settle(self._judge(payload), reusable=kind == wire.DONE)
        else:
            self._settle(self._failed(kind, payload), reusable=False)

    def _loaded(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.READY:
            self._loading = False
            self._run_test()
        elif kind == wire.COMPILE_ERROR:
            self._conclude(Outcome("CE", _message(payload)), alive=True)
        elif kind == wire.NOT_FOUND:
            self._conclude(Outcome("NF", f"no function {self._active().program.fn_name}"), alive=True)
        else:
            self._conclude(self._failed(kind, payload), alive=True)

    def _run_test(self) -> None:
        case = self._active()
        test = case.test
        self.state = State.RUNNING
        on_fd_0 = test.kind == "stdin" and case.mode == "real"
        self.host.set_input(test.input if on_fd_0 else b"")
        self._start_clocks()
        if on_fd_0:
            self._send(wire.STDIN, b"")
        else:
            self._send(wire.STDIN if test.kind == "stdin" else wire.CALL, test.input)

    def _judge(self, payload: bytes) -> Outcome:
        case = self._active()
        if case.test.kind == "function":
            return case.judge_value(payload, self._checker)
        if case.mode == "lcb":
            return case.judge_text(payload, self._checker)
        if self.host.output_size() >= OUTPUT_BYTES:
            return _OUTPUT_LIMIT
        return case.judge_text(self.host.output(OUTPUT_BYTES), self._checker)

    def _failed(self, kind: bytes, payload: bytes) -> Outcome:
        if kind == wire.TOO_LARGE or self.host.output_size() >= OUTPUT_BYTES:
            return _OUTPUT_LIMIT
        if kind != wire.RAISED:
            return _FORGED
        message = _message(payload)
        return Outcome("MLE" if message.startswith("MemoryError") else "RE", message)

    def _died(self) -> None:
        """The child ended without an answer; its exit status says how."""
        case = self._active()
        status = os.WEXITSTATUS(self._status) if os.WIFEXITED(self._status) else -1
        if status == 0 and not self._loading and case.test.kind == "stdin" and case.mode == "real":
            # It left by os._exit; what it wrote until then is its output, and it will leave so every time.
            outcome = self._judge(b"")
            case.isolate = True
        elif status >= 0:
            outcome = Outcome("RE", f"exit status {status}")
        elif (number := os.WTERMSIG(self._status)) != signal.SIGKILL:
            outcome = Outcome("RE", f"killed by signal {number}")
        elif self._child_cpu > case.program.time_limit_s:
            outcome = Outcome("TLE", "killed at the CPU limit of the process")
        elif self._child_rss > _LARGE_SHARE * (case.program.memory_limit_mb << 20):
            outcome = Outcome("MLE", f"killed from outside with {self._child_rss >> 20} MiB in use")
        else:
            outcome = Outcome("INFRA", "killed from outside, perhaps for want of memory")
        self._conclude(outcome, alive=False)

    # --- limits -----------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Check the limits of a child that has not answered yet."""
        case = self._active()
        if self.state is State.CLOSING:
            self._kill_then(lambda: self._conclude(Outcome("RE", "closed the grader's channel"), alive=False))
            return
        limit, wall = case.program.time_limit_s, wall_limit(case)
        if self._loading:
            limit = max(limit, _LOAD_FLOOR_S)
            wall = 3 * limit
        used, elapsed = self.host.cpu_seconds() - self._cpu0, now - self._wall0
        if self.host.too_many_threads():
            self._kill_then(lambda: self._conclude(Outcome("RE", "too many threads"), alive=False))
        elif used > limit and (used > limit * _GREY_ZONE or case.alone or self._loading or not self._under_load()):
            self._over_limit(f"{used:.2f} s of CPU time", may_repeat=False)
        elif used <= limit and elapsed > wall:
            self._over_wall(elapsed, wall)
        else:
            left = limit - used if used < limit else _TICK_S
            self.next_check = now + min(max(left, 0.002), _TICK_S)

    def _over_wall(self, elapsed: float, wall: float) -> None:
        """More wall time than it may take: its own, or spent waiting for a core, which does not count."""
        # Waits of earlier tests in this child are in it, to the program's favour.
        waited = self.host.waited_seconds()
        if elapsed - waited > wall:
            self._over_limit(f"{elapsed - waited:.2f} s of wall time", may_repeat=False)
        elif elapsed < _STARVED_LIMIT * wall:
            self.next_check = time.monotonic() + _TICK_S
        elif self._active().alone or self._loading:
            busy = Outcome("INFRA", f"the machine is too busy: a core was missing for {waited:.1f} of {elapsed:.1f} s")
            self._kill_then(lambda: self._conclude(busy, alive=False))
        else:
            self._over_limit("", may_repeat=True)

    def _under_load(self) -> bool:
        """Whether the child had to wait for a core for a good part of its life."""
        return self.host.waited_seconds() > _STARVED_SHARE * (time.monotonic() - self._born)

    def _over_limit(self, what: str, *, may_repeat: bool) -> None:
        case = self._active()
        if may_repeat and not case.alone and not self._loading:
            case.alone = True
            self._kill_then(self._release)
            return
        self._kill_then(lambda: self._conclude(Outcome("TLE", what), alive=False))

    # --- conclusions ------------------------------------------------------------------------------------------------

    def _conclude(self, outcome: Outcome, *, alive: bool) -> None:
        """A run came to an end that the child cannot go on from."""
        if self._loading:
            self._active().fail_all(outcome)
        if alive:
            self._kill_then(lambda: self._settle_dead(outcome))
        else:
            self._settle_dead(outcome)

    def _settle(self, outcome: Outcome, *, reusable: bool) -> None:
        """A test was answered by a child that still lives."""
        case = self._active()
        if outcome.passed and reusable and not case.isolate:
            if self._suspect:  # failed after other tests, passes in a new process: it does not keep them apart
                case.isolate, self._suspect = True, False
            case.record(outcome)
            if not case.finished and not case.isolate:
                self._fresh = False
                self._run_test()
                return
            self._kill_then(self._release if case.finished else self._launch)
        else:
            self._kill_then(lambda: self._settle_dead(outcome))

    def _settle_dead(self, outcome: Outcome) -> None:
        """A test was answered, and the child is gone."""
        case = self._active()
        if not case.finished:
            if not outcome.passed and not self._fresh and case.mode == "real":
                self._suspect = True  # only a failure in a process of its own counts
                self._launch()
                return
            if outcome.passed and self._suspect:
                case.isolate, self._suspect = True, False
            case.record(outcome)
        if case.finished:
            self._release()
        else:
            self._launch()
