"""Runs candidates on public tests for the modes that ask for it, in the sandbox and beside the generation."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from components.core.config import RewardConfig
from components.core.schema import Problem
from components.rollout.trajectory import Feedback
from sandbox import Grader

_Job = tuple[int, Problem, str | None]


class PublicTests:
    """A sandbox that is started when the first program comes; a context manager.

    One thread starts it and uses it: the sandbox's processes die with the thread that started them.
    """

    def __init__(self, config: RewardConfig) -> None:
        """Nothing is started yet. `config`: mode, workers and time limit of the grading."""
        self._config = config
        self._thread = ThreadPoolExecutor(1)
        self._grader: Grader | None = None
        self._waiting: list[_Job] = []
        self._running: Future[list[tuple[int, Feedback]]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._grader is not None:
            self._thread.submit(self._grader.close).result()
        self._thread.shutdown()

    def submit(self, key: int, problem: Problem, code: str | None) -> None:
        """Have a program run on all tests of `problem`, which must be a public part."""
        self._waiting.append((key, problem, code))

    @property
    def busy(self) -> bool:
        """Whether results are to be expected."""
        return bool(self._waiting) or self._running is not None

    def results(self, *, wait: bool) -> list[tuple[int, Feedback]]:
        """What has been run since the last call, in the order of submission; without `wait` what is there."""
        if self._running is None and self._waiting:
            self._running = self._thread.submit(self._grade, self._waiting)
            self._waiting = []
        if self._running is None or not (wait or self._running.done()):
            return []
        done, self._running = self._running.result(), None
        return done

    def _grade(self, jobs: list[_Job]) -> list[tuple[int, Feedback]]:
        if self._grader is None:
            self._grader = Grader(mode=self._config.mode, workers=self._config.workers)
        limit = self._config.time_limit_s
        programs = [
            problem.sandbox_program(str(number), code, time_limit_s=limit)
            for number, (_, problem, code) in enumerate(jobs)
        ]
        verdicts = {int(verdict["id"]): verdict for verdict in self._grader.grade(programs)}
        return [(key, _feedback(problem, verdicts[number])) for number, (key, problem, _) in enumerate(jobs)]


def _feedback(problem: Problem, verdict: dict[str, Any]) -> Feedback:
    number = verdict["first_failure"]
    return Feedback(
        verdict=verdict["verdict"],
        passed=verdict["passed"],
        total=verdict["total"],
        failing=None if number is None or verdict["verdict"] in ("CE", "NF") else problem.tests[number],
        reason=verdict.get("reason", ""),
    )
