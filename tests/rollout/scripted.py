"""Problems with public and private tests, a store that holds them, and an engine whose answers are written down."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from components.core.config import Config
from components.core.policy import ensure_base_policy
from components.core.schema import PROBLEM_SCHEMA, ROLLOUT_SCHEMA, Problem, Test, read_parquet_dir, write_parquet
from components.core.store import Pointer, Store, open_store
from components.rollout.engine import Completion, Message, Request, Sampling
from components.rollout.generate import run_training

CANARY = "c4n4ry"
"""Stands in everything that a prompt must not hold."""


def problem(name: str, *, public: int = 1) -> Problem:
    """Print the double of a number."""
    tests = [Test("stdin", f"{n}\n", f"{2 * n}\n", public=n < public) for n in range(public + 3)]
    hidden = Test("stdin", f"7 {CANARY}\n", f"14 {CANARY}\n")
    return Problem(
        name,
        "demo",
        f"Problem {name}: print the double of a number.",
        [*tests, hidden],
        reference_solutions=[f"print(2 * int(input()))  # {CANARY}"],
        metadata={"editorial": CANARY},
        time_limit_s=2.0,
    )


PROBLEMS = [problem(f"p{number}") for number in range(4)]


def save_dataset(store: Store, problems: list[Problem]) -> Pointer:
    """The same problems as both splits."""
    with store.scratch() as scratch:
        for split in ("train", "test"):
            (scratch / split).mkdir()
            write_parquet(scratch / split / "part-0.parquet", [p.to_row() for p in problems], PROBLEM_SCHEMA)
        store.put_dir(scratch, "datasets/d")
    return store.commit("datasets/d", kind="dataset", step="prepare_data", rows=len(problems), key="k")


Script = Callable[[list[Message]], str]
"""From the conversation to the answer."""


@dataclass
class ScriptedEngine:
    """See `Engine`: a token is a byte."""

    script: Script
    continuous: bool = True
    opening: str = ""
    seconds: float = 0.0
    """Per answer."""
    seen: list[Request] = field(default_factory=list)

    def stream(
        self, queue: deque[Request], sampling: Sampling, deadline: float = float("inf")
    ) -> Iterator[tuple[Request, Completion]]:
        while queue and time.monotonic() < deadline:
            taken = [queue.popleft()] if self.continuous else [queue.popleft() for _ in range(len(queue))]
            for request in taken:
                time.sleep(self.seconds)
                if time.monotonic() >= deadline:
                    return
                self.seen.append(request)
                whole = self.encode(self.script(request.messages))
                ids = whole[: sampling.max_new_tokens]
                reason = "stop" if ids == whole else "length"
                yield request, Completion(ids, [-1.0] * len(ids), reason, bytes(ids).decode(errors="replace"))

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def encode_chat(self, messages: list[Message]) -> list[int]:
        return self.encode("\n".join(f"{message['role']}: {message['content']}" for message in messages))

    def prompts(self) -> str:
        """Everything that was ever asked."""
        return "\n".join(bytes(request.prompt_ids).decode() + repr(request.messages) for request in self.seen)


@dataclass
class World:
    """A store with the problems and an untrained policy."""

    config: Config
    store: Store = field(init=False)
    dataset: Pointer = field(init=False)
    policy: Pointer = field(init=False)

    def __post_init__(self) -> None:
        self.store = open_store(self.config.store)
        self.dataset = save_dataset(self.store, PROBLEMS)
        self.policy = ensure_base_policy(self.config, self.store)

    def rollout(self, config: Config | None = None, *, iteration: int = 0) -> Pointer:
        return run_training(
            config=config or self.config,
            dataset=self.dataset,
            policy=self.policy,
            stage=1,
            iteration=iteration,
            shard=0,
            output=f"{self.store.root}/rollouts.json",
        )

    def rows(self, pointer: Pointer) -> list[dict[str, Any]]:
        return list(read_parquet_dir(self.store.fetch(pointer), ROLLOUT_SCHEMA))
