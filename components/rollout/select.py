"""Which problems an iteration samples, and which shard answers which: functions of the seed and the ids alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from components.core.config import Config
from components.core.seeds import derive_seed

T = TypeVar("T")


def global_iteration(config: Config, stage: int, iteration: int) -> int:
    """Iterations before this one, over all stages. Stages count from 1, iterations from 0."""
    return sum(part.iterations for part in config.stages[: stage - 1]) + iteration


def training_batch(config: Config, problems: Sequence[T], stage: int, iteration: int) -> list[T]:
    """The problems of one iteration: seeded epochs, each a permutation of all, cut into whole batches.

    What is left at the end of an epoch waits for another one, so that no batch holds a problem twice. With fewer
    problems than a batch takes every batch is all of them.
    """
    size = min(config.sampled_problems, len(problems))
    epoch, slot = divmod(global_iteration(config, stage, iteration), len(problems) // size)
    order = np.random.default_rng(derive_seed(config.seed, "epoch", epoch)).permutation(len(problems))
    return [problems[int(index)] for index in order[slot * size : (slot + 1) * size]]


def shard_members(problem_ids: Sequence[str], shard: int, shards: int) -> set[str]:
    """The ids that belong to a shard: every `shards`-th in the order of a hash of the id, so that shards are even."""
    ordered = sorted(problem_ids, key=lambda name: hashlib.sha256(name.encode()).digest())
    return set(ordered[shard::shards])
