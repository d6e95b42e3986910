"""The rollout step: answers of one policy to the problems of one shard, committed chunk by chunk."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from components.core.config import Config
from components.core.errors import UserError
from components.core.paths import evaluation_path, iteration_path, shard_path
from components.core.progress import Progress
from components.core.schema import ROLLOUT_SCHEMA, Problem, read_parquet, read_problems, write_parquet
from components.core.seeds import derive_seed
from components.core.step import Step
from components.core.store import Pointer
from components.rollout.engine import Completion, Engine, Sampling, load_engine
from components.rollout.select import shard_members, training_batch


@dataclass(frozen=True)
class Task:
    """What one rollout step samples."""

    phase: Literal["train", "eval"]
    where: str
    """The folder of the iteration or evaluation."""
    seed_path: tuple[str | int, ...]
    """Sets the random numbers of this task apart. Evaluations of different policies share theirs, which makes
    their difference more precise."""
    n: int
    sampling: Sampling


def training_task(config: Config, stage: int, iteration: int) -> Task:
    """Sampling for one training iteration. Stages count from 1, iterations from 0."""
    limit = config.stages[stage - 1].max_response_length
    sampling = Sampling(limit, config.rollout.temperature, config.rollout.top_p, config.rollout.stop_at_code_end)
    return Task(
        "train", iteration_path(config, stage, iteration), ("rollout", stage, iteration), config.rollout.n, sampling
    )


def evaluation_task(config: Config, label: str) -> Task:
    """Sampling for one evaluation on the held-out problems."""
    evaluation = config.evaluation
    sampling = Sampling(
        evaluation.max_response_length, evaluation.temperature, evaluation.top_p, config.rollout.stop_at_code_end
    )
    return Task("eval", evaluation_path(config, label), ("eval",), evaluation.n, sampling)


def run_training(
    *, config: Config, dataset: Pointer, policy: Pointer, stage: int, iteration: int, shard: int, output: str
) -> Pointer:
    """One shard of a training iteration; the pointer is written to `output`."""
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
    config: Config, task: Task, dataset: Pointer, policy: Pointer, shard: int, output: str, choose: Any
) -> Pointer:
    settings = [config.rollout.model_dump(mode="json"), vars(task.sampling), task.n, task.seed_path, config.seed]
    settings += [config.sampled_problems, config.data.max_prompt_length, config.context_length]
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
        problems: list[Problem] = choose(sorted(read_problems(step.store.fetch(dataset) / split), key=_id))
        mine = shard_members([problem.problem_id for problem in problems], shard, config.rollout.shards)
        problems = [problem for problem in problems if problem.problem_id in mine]
        folder = step.store.fetch(policy) / "hf"
        engine = load_engine(config.rollout, folder, config.context_length, derive_seed(config.seed, *task.seed_path))
        prompts = [prompt_ids(engine, config, problem) for problem in problems]
        kept = [
            (problem, ids)
            for problem, ids in zip(problems, prompts, strict=True)
            if len(ids) <= config.data.max_prompt_length
        ]
        step.ready()
        totals = _sample_chunks(step, engine, config, task, kept, str(policy.extra["version"]))
        totals["prompts/too_long"] = float(len(problems) - len(kept))
        return step.commit(
            kind="rollouts",
            rows=int(totals["rollout/samples"]),
            metrics=totals,
            policy=str(policy.extra["version"]),
            phase=task.phase,
        )


def _id(problem: Problem) -> str:
    return problem.problem_id


def prompt_ids(engine: Engine, config: Config, problem: Problem) -> list[int]:
    """The token ids of a problem's prompt.

    Raises:
        UserError: a template uses a name that does not exist.
    """
    rollout = config.rollout
    template = rollout.function_template if problem.fn_name else rollout.stdin_template
    try:
        user = template.format(question=problem.question, starter_code=problem.starter_code, fn_name=problem.fn_name)
    except (KeyError, IndexError, ValueError) as error:
        raise UserError(
            f"rollout templates may use {{question}}, {{starter_code}} and {{fn_name}} and write other braces twice; "
            f"{template!r} fails with {error!r}"
        ) from error
    return engine.encode_chat(rollout.system_prompt, user)


def _sample_chunks(
    step: Step, engine: Engine, config: Config, task: Task, kept: list[tuple[Problem, list[int]]], version: str
) -> dict[str, float]:
    """Generate chunk by chunk; a chunk whose file is there already is only counted."""
    size = config.rollout.chunk_prompts
    progress = Progress(step.label, len(kept), "prompts")
    have = step.store.list(step.where)
    samples = tokens = truncated = fresh = 0
    spent = 0.0
    for start in range(0, len(kept), size):
        name = f"chunk-{start // size:05d}.parquet"
        if name in have:
            rows = read_parquet(step.store.local_file(f"{step.where}/{name}"), ROLLOUT_SCHEMA)
        else:
            before = time.monotonic()
            rows = _sample_chunk(engine, config, task, kept[start : start + size], version)
            spent += time.monotonic() - before
            fresh += sum(len(row["response_ids"]) for row in rows)
            with step.store.scratch() as scratch:
                write_parquet(scratch / name, rows, ROLLOUT_SCHEMA)
                step.store.put(scratch / name, f"{step.where}/{name}")
        samples += len(rows)
        tokens += sum(len(row["response_ids"]) for row in rows)
        truncated += sum(row["finish_reason"] == "length" for row in rows)
        rate = f"{fresh / spent:.0f} tokens/s" if spent else ""
        progress.update(min(start + size, len(kept)), rate)
    return {
        "rollout/samples": float(samples),
        "rollout/tokens": float(tokens),
        "rollout/tokens_per_s": fresh / spent if spent else 0.0,
        "response_length/mean": tokens / max(samples, 1),
        "response_length/clip_ratio": truncated / max(samples, 1),
        "timing_s/generate": spent,
    }


def _sample_chunk(
    engine: Engine, config: Config, task: Task, chunk: list[tuple[Problem, list[int]]], version: str
) -> list[dict[str, Any]]:
    seeds = [
        [derive_seed(config.seed, *task.seed_path, problem.problem_id, sample) for sample in range(task.n)]
        for problem, _ in chunk
    ]
    before = time.monotonic()
    groups = engine.generate([ids for _, ids in chunk], seeds, task.sampling)
    seconds = time.monotonic() - before
    return list(_rows(engine, task, chunk, groups, version, seconds))


def _rows(
    engine: Engine,
    task: Task,
    chunk: list[tuple[Problem, list[int]]],
    groups: list[list[Completion]],
    version: str,
    seconds: float,
) -> Iterable[dict[str, Any]]:
    for (problem, ids), group in zip(chunk, groups, strict=True):
        for sample, completion in enumerate(group):
            yield {
                "policy_version": version,
                "problem_id": problem.problem_id,
                "sample_id": sample,
                "turn": 0,
                "role": "solver",
                "prompt_ids": ids,
                "response_ids": completion.token_ids,
                "rollout_logprobs": completion.logprobs,
                "finish_reason": completion.finish_reason,
                "temperature": task.sampling.temperature,
                "top_p": task.sampling.top_p,
                "text": engine.decode(completion.token_ids),
                "seconds": seconds,
            }
