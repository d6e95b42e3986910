"""Several judging processes for many cores: one event loop keeps about four lanes busy, more lanes need more judges.

Programs go to a judge by the hash of their code, so that equal ones meet and are graded once. A judge is exec'ed, runs
no candidate itself and holds no more programs than it can soon grade. One that is lost is replaced, and what it held is
graded again.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from .model import Verdict
from .pool import Settings
from .selftest import Report

LANES_PER_JUDGE = 4
_AHEAD = 3
"""Programs that a judge holds, as a multiple of its lanes."""
_MAX_RETRIES = 2
_BOOT = "import sys; sys.path.insert(0, {!r}); from sandbox.judge import main; main(sys.argv[1])"


class _Judge:
    """One judging process and the programs that it holds."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.held: dict[int, tuple[Any, int]] = {}
        """Program and number of retries by sequence number."""
        self.outbox = bytearray()
        self._inbox = bytearray()
        boot = _BOOT.format(str(Path(__file__).resolve().parent.parent))
        command = [sys.executable, "-c", boot, json.dumps(asdict(settings))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin: IO[bytes] = self.process.stdin
        self.stdout: IO[bytes] = self.process.stdout

    def read_report(self) -> Report:
        """The judge's first line, waited for."""
        line = bytearray()
        while not line.endswith(b"\n"):
            chunk = self.stdout.read(1)
            if not chunk:
                raise RuntimeError(f"a judging process ended at its start, with status {self.process.wait()}")
            line += chunk
        os.set_blocking(self.stdin.fileno(), False)
        os.set_blocking(self.stdout.fileno(), False)
        return Report(**json.loads(line))

    def has_room(self) -> bool:
        """Whether another program may be handed over."""
        return len(self.held) < _AHEAD * self.settings.workers

    def give(self, number: int, program: Any, retries: int) -> None:
        """Queue a program; `flush` sends it."""
        self.held[number] = (program, retries)
        sent = program | {"id": number} if isinstance(program, dict) else program
        self.outbox += json.dumps([number, sent]).encode("ascii") + b"\n"

    def flush(self) -> bool:
        """Send what the pipe takes; whether something is left."""
        try:
            while self.outbox:
                del self.outbox[: os.write(self.stdin.fileno(), self.outbox[: 1 << 16])]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self.outbox.clear()  # its end of file says the rest
        return bool(self.outbox)

    def read(self) -> list[dict[str, Any]] | None:
        """Verdicts that have arrived; None when the judge is gone."""
        chunk = self.stdout.read(1 << 18)
        if chunk is None:
            return []
        if not chunk:
            return None
        self._inbox += chunk
        *lines, rest = self._inbox.split(b"\n")
        self._inbox = bytearray(rest)
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """End the judge, and by that its zygotes."""
        self.stdin.close()
        self.stdout.close()
        self.process.kill()
        self.process.wait()


class Fanout:
    """The same interface as a Pool, over several judging processes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        count = -(-settings.workers // LANES_PER_JUDGE)
        shares = [settings.workers // count + (i < settings.workers % count) for i in range(count)]
        self._selector = selectors.DefaultSelector()
        self._judges: list[_Judge] = []
        self._ids: dict[int, Any] = {}
        self._next = 0
        self._finished: deque[dict[str, Any]] = deque()
        try:
            for share in shares:
                self._judges.append(_Judge(replace(settings, workers=share)))
            reports = [judge.read_report() for judge in self._judges]
        except BaseException:
            self.close()
            raise
        # The weakest counts: its verdicts are in the stream as well.
        self.report = max(reports, key=lambda report: (len(report.wrong), len(report.weak)))
        for judge in self._judges:
            self._watch(judge)

    def _watch(self, judge: _Judge) -> None:
        self._selector.register(judge.stdout, selectors.EVENT_READ, judge)

    def close(self) -> None:
        """End every process."""
        for judge in self._judges:
            judge.close()
        self._judges = []
        self._selector.close()

    def grade(self, programs: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """Verdicts in any order, as programs are consumed."""
        source, waiting, more = iter(programs), None, True
        try:
            while more or waiting is not None or self._ids:
                if waiting is None and more:
                    try:
                        waiting = (next(source),)  # in a tuple, since a program may be anything, None too
                    except StopIteration:
                        more = False
                if waiting is not None and self._hand_over(waiting[0]):
                    waiting = None
                self._turn(wait=waiting is not None or not more)
                while self._finished:
                    yield self._finished.popleft()
        finally:
            if self._ids:  # the consumer has left in the middle
                self._start_anew()

    def _judge_of(self, program: Any) -> _Judge:
        code = str(program.get("code")) if isinstance(program, dict) else ""
        return self._judges[zlib.crc32(code.encode("utf-8", "surrogatepass")) % len(self._judges)]

    def _hand_over(self, program: Any) -> bool:
        judge = self._judge_of(program)
        if not judge.has_room():
            return False
        self._ids[self._next] = program.get("id") if isinstance(program, dict) else None
        try:
            judge.give(self._next, program, 0)
        except (TypeError, ValueError) as error:
            self._finish(self._next, Verdict(None, "INFRA", reason=f"not JSON: {error}").as_dict())
            judge.held.pop(self._next, None)
        self._next += 1
        return True

    def _finish(self, number: int, verdict: dict[str, Any]) -> None:
        verdict["id"] = self._ids.pop(number)
        self._finished.append(verdict)

    def _turn(self, *, wait: bool) -> None:
        for judge in self._judges:
            mask = selectors.EVENT_WRITE if judge.flush() else 0
            registered = judge.stdin.fileno() in self._selector.get_map()
            if mask and not registered:
                self._selector.register(judge.stdin, mask, judge)
            elif registered and not mask:
                self._selector.unregister(judge.stdin)
        if not self._ids:
            return
        for key, mask in self._selector.select(None if wait else 0):
            if mask & selectors.EVENT_READ:
                self._receive(key.data)

    def _receive(self, judge: _Judge) -> None:
        if judge not in self._judges:
            return
        verdicts = judge.read()
        if verdicts is None:
            self._replace(judge)
            return
        for verdict in verdicts:
            number = verdict["number"]
            del verdict["number"], judge.held[number]
            self._finish(number, verdict)

    def _replace(self, lost: _Judge) -> None:
        self._forget(lost)
        judge = _Judge(lost.settings)
        judge.read_report()
        self._judges[self._judges.index(lost)] = judge
        self._watch(judge)
        for number, (program, retries) in lost.held.items():
            if retries < _MAX_RETRIES:
                judge.give(number, program, retries + 1)
            else:
                self._finish(number, Verdict(None, "INFRA", reason="its judging process was lost").as_dict())

    def _forget(self, judge: _Judge) -> None:
        for stream in (judge.stdin, judge.stdout):
            if stream.fileno() in self._selector.get_map():
                self._selector.unregister(stream)
        judge.close()

    def _start_anew(self) -> None:
        """Drop all that is held, so that the next stream gets its own verdicts only."""
        self._ids.clear()
        self._finished.clear()
        for judge in list(self._judges):
            if judge.held:
                judge.held.clear()
                self._replace(judge)
