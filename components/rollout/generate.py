"""The rollout step: answers of one policy to the problems of one shard, written as they are finished."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from components.core.config import Config
from components.core.errors import UserError
from components.core.paths import shard_path
from components.core.schema import Problem, read_problems
from components.core.seeds import derive_seed
from components.core.step import Step
from components.core.store import Pointer
from components.rollout.engine import load_engine
from components.rollout.select import shard_members, training_batch
from components.rollout.shard import Shard
from components.rollout.task import Task, evaluation_task, training_task

_HOW_FAST = {"wall_limit_s", "exact_resume", "threads"}
"""Settings on which no finished sample depends."""


def run_training(
    *, config: Config, dataset: Pointer, policy: Pointer, stage: int, iteration: int, shard: int, output: str
) -> Pointer:
    """One shard of a training iteration; the pointer is written to `output`.

    Raises:
        UserError: the engine is a server, whose weights no update would reach.
    """
    if config.rollout.engine == "openai":
        raise UserError(
            "rollout.engine=openai is for evaluation: a server does not get the updated weights. Train with vllm or "
            "transformers."
        )
    task = training_task(config, stage, iteration)
    return _run(
        config, task, dataset, policy, shard, output, lambda rows: training_batch(config, rows, stage, iteration)
    )


def run_evaluation(
    *, config: Config, dataset: Pointer, policy: Pointer, label: str, shard: int, output: str
) -> Pointer:
    """One shard of an evaluation; the pointer is written to `output`."""
    return _run(config, evaluation_task(config, label), dataset, policy, shard, output, list)


def _run(
    config: Config,
    task: Task,
    dataset: Pointer,
    policy: Pointer,
    shard: int,
    output: str,
    choose: Callable[[list[Problem]], list[Problem]],
) -> Pointer:
    settings: list[Any] = [config.rollout.model_dump(mode="json", exclude=_HOW_FAST)]
    settings += [
        asdict(task),
        config.seed,
        config.sampled_problems,
        config.data.max_prompt_length,
        config.context_length,
    ]
    if task.mode != "single":
        settings.append(config.reward.model_dump(mode="json", include={"mode", "time_limit_s"}))
    with Step(
        config,
        "rollout",
        shard_path(task.where, "rollout", shard),
        settings=settings,
        inputs={"dataset": dataset, "policy": policy},
        output=output,
    ) as step:
        if step.pointer is not None:
            return step.pointer
        split = "train" if task.phase == "train" else "test"
        problems = choose(sorted(read_problems(step.store.fetch(dataset) / split), key=_id))
        mine = shard_members([problem.problem_id for problem in problems], shard, config.rollout.shards)
        folder = step.store.fetch(policy) / "hf"
        engine = load_engine(config.rollout, folder, config.context_length, derive_seed(config.seed, *task.seed_path))
        with Shard(step, engine, task, str(policy.extra["version"])) as sampler:
            kept = sampler.fitting([problem for problem in problems if problem.problem_id in mine])
            step.ready()
            totals = sampler.sample(kept)
        return step.commit(
            kind="rollouts",
            rows=int(totals["rollout/turns"]),
            metrics=totals,
            policy=str(policy.extra["version"]),
            phase=task.phase,
        )


def _id(problem: Problem) -> str:
    return problem.problem_id
