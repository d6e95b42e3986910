"""Drives the trajectories of many samples over one engine, so that whatever they want at a time is one batch."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from components.core.errors import UserError
from components.core.schema import Problem
from components.rollout.engine import Completion, Engine, Message, Request, Sampling
from components.rollout.public_tests import PublicTests
from components.rollout.trajectory import Ask, RunTests, Steps, Turn


@dataclass
class Record:
    """An answer that was asked for, and what came of it."""

    role: str
    prompt_ids: list[int]
    asked: float
    """Of time.monotonic()."""
    completion: Completion | None = None
    text: str = ""
    """The whole answer, with what it was made to begin with."""
    turn: Turn | None = None
    seconds: float = 0.0


@dataclass
class Trajectory:
    """One sample in the making."""

    problem: Problem
    """Its public part."""
    sample_id: int
    steps: Steps
    records: list[Record] = field(default_factory=list)
    """In the order of asking; the index is the turn's number."""
    too_long: int = 0
    """Answers not asked for, since the conversation would not have left room for one."""
    finished: bool = False
    _slots: dict[int, int] = field(default_factory=dict)
    _results: list[Turn | None] = field(default_factory=list)
    _several: bool = False


SeedOf = Callable[[str, int, int], int]
"""The seed of (problem_id, sample_id, turn)."""


class Driver:
    """One batch of trajectories."""

    def __init__(
        self,
        engine: Engine,
        tests: PublicTests,
        sampling: Sampling,
        *,
        seed_of: SeedOf,
        longest_prompt: int,
        deadline: float,
    ) -> None:
        """Nothing is started yet.

        Args:
            engine: answers.
            tests: runs programs.
            sampling: of all answers.
            seed_of: see SeedOf.
            longest_prompt: tokens beyond which an answer is not asked for.
            deadline: of time.monotonic(); what is not finished then is given up.
        """
        self._engine, self._tests, self._sampling = engine, tests, sampling
        self._seed_of, self._longest_prompt, self._deadline = seed_of, longest_prompt, deadline
        self.prefix_ids = engine.encode(sampling.prefix) if sampling.prefix else []
        self._queue: deque[Request] = deque()
        self._done: deque[Trajectory] = deque()
        self._trajectories: list[Trajectory] = []
        self._encoded: tuple[list[Message], list[int]] = ([], [])

    def run(self, trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
        """Each trajectory as it is finished, then those that the deadline cut off."""
        for trajectory in trajectories:
            self._trajectories.append(trajectory)
            self._advance(len(self._trajectories) - 1, None)
        yield from self._take_done()
        while self._queue or self._tests.busy:
            for request, completion in self._engine.stream(self._queue, self._sampling, self._deadline):
                self._answered(request, completion)
                if self._engine.continuous:  # a follow-up can join what is under way
                    self._hear_tests(wait=False)
                yield from self._take_done()
            if time.monotonic() >= self._deadline:
                break
            self._hear_tests(wait=True)
            yield from self._take_done()
        yield from (trajectory for trajectory in self._trajectories if not trajectory.finished)

    def _take_done(self) -> Iterator[Trajectory]:
        while self._done:
            yield self._done.popleft()

    def _advance(self, number: int, value: Any) -> None:
        """Send a result to a trajectory; go on until it waits for something, or is finished."""
        trajectory = self._trajectories[number]
        while True:
            try:
                want = trajectory.steps.send(value)
            except StopIteration:
                trajectory.finished = True
                self._done.append(trajectory)
                return
            except Exception as error:  # of a user's own mode it can be any
                raise UserError(
                    f"rollout.mode: {type(error).__name__}: {error}, in sample {trajectory.sample_id} of problem "
                    f"{trajectory.problem.problem_id}, after turn {len(trajectory.records)}"
                ) from error
            if isinstance(want, RunTests):
                if trajectory.problem.tests:
                    self._tests.submit(number, trajectory.problem, want.code)
                    return
                value = None
                continue
            trajectory._several = isinstance(want, list)
            asks = want if isinstance(want, list) else [want]
            if not all(isinstance(ask, Ask) for ask in asks):
                raise UserError(f"rollout.mode: yielded {want!r:.200}; it may yield Ask, [Ask, ...] or RunTests")
            trajectory._results = [None] * len(asks)
            for slot, ask in enumerate(asks):
                self._ask(number, slot, ask)
            if trajectory._slots:
                return
            value = self._value(trajectory)

    def _ask(self, number: int, slot: int, ask: Ask) -> None:
        trajectory = self._trajectories[number]
        messages = [dict(message) for message in ask.messages]  # a mode may go on writing in its own list
        prompt = self._encode(messages)
        if len(prompt) + len(self.prefix_ids) > self._longest_prompt:
            trajectory.too_long += 1
            return
        turn = len(trajectory.records)
        trajectory.records.append(Record(ask.role, prompt, time.monotonic()))
        trajectory._slots[turn] = slot
        seed = self._seed_of(trajectory.problem.problem_id, trajectory.sample_id, turn)
        self._queue.append(Request((number, turn), prompt + self.prefix_ids, seed, messages))

    def _encode(self, messages: list[Message]) -> list[int]:
        """Samples of one problem begin alike and come one after another, so the last conversation is remembered."""
        if self._encoded[0] != messages:
            self._encoded = (messages, self._engine.encode_chat(messages))
        return self._encoded[1]

    def _answered(self, request: Request, completion: Completion) -> None:
        number, turn = request.key
        trajectory = self._trajectories[number]
        record = trajectory.records[turn]
        record.completion, record.seconds = completion, time.monotonic() - record.asked
        record.text = self._engine.opening + self._sampling.prefix + completion.text
        record.turn = Turn(record.text, completion.finish_reason)
        trajectory._results[trajectory._slots.pop(turn)] = record.turn
        if not trajectory._slots:
            self._advance(number, self._value(trajectory))

    def _value(self, trajectory: Trajectory) -> Any:
        return trajectory._results if trajectory._several else trajectory._results[0]

    def _hear_tests(self, *, wait: bool) -> None:
        for number, feedback in self._tests.results(wait=wait):
            self._advance(number, feedback)
