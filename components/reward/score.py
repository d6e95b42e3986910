"""The reward step: every answer of one rollout shard is run in the sandbox and gets a verdict and a reward."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from components.core.config import Config
from components.core.plugin import load_function
from components.core.progress import Progress
from components.core.schema import (
    REWARD_SCHEMA,
    ROLLOUT_SCHEMA,
    SECOND_MODE,
    Problem,
    graded_text,
    read_parquet_dir,
    read_problems,
    write_parquet,
)
from components.core.seeds import derive_seed
from components.core.step import Step
from components.core.store import Pointer, open_store
from sandbox import extract_code, grade
from sandbox.model import Mode

RewardFunction = Callable[[dict[str, Any], dict[str, Any]], float | None]
_OPENING = re.compile(r"```(?:python3?|py)?[ \t]*$", re.IGNORECASE)
_PART_ROWS = 256
"""Rows committed together: what a killed step loses at most."""

_NOT_RUN = {"verdict": "INFRA", "passed": 0, "total": 0, "cpu_ms": 0.0, "wall_ms": 0.0}
"""Of an answer that the rollout's wall limit cut off: says nothing of the policy, so it gets no reward."""


def is_well_formed(text: str) -> bool:
    """Whether the answer has a closed fenced block that is Python or carries no language.

    Line by line: a regular expression over the whole answer takes time that grows with the square of its length.
    """
    opened = False
    for line in text.split("\n"):
        if opened and line.lstrip(" \t").startswith("```"):
            return True
        opened = opened or _OPENING.search(line) is not None
    return False


def run(*, config: Config, dataset: Pointer, rollouts: Pointer, output: str) -> Pointer:
    """Grade one rollout shard; the pointer is written to `output` and carries the rollouts' pointer.

    Held-out answers are judged in the other mode too (`evaluation.both_modes`), in the folder SECOND_MODE.
    """
    where = re.sub(r"/rollout/(shard-\d+)$", r"/reward/\1", open_store(config.store).rel(rollouts.uri))
    train = rollouts.extra["phase"] == "train"
    settings = config.reward.model_dump(
        mode="json", exclude={"workers"} if train else {"workers", "shuffle", "function"}
    )
    second = other_mode(config) if not train and config.evaluation.both_modes else None
    with Step(
        config,
        "reward",
        where,
        settings=[settings, config.seed, second],
        inputs={"dataset": dataset, "rollouts": rollouts},
        output=output,
    ) as step:
        if step.pointer is not None:
            return step.pointer
        function: RewardFunction = load_function(config.reward.function, "reward.function")
        split = "train" if train else "test"
        problems = {problem.problem_id: problem for problem in read_problems(step.store.fetch(dataset) / split)}
        answers = {_key(row): row for row in read_parquet_dir(step.store.fetch(rollouts), ROLLOUT_SCHEMA)}
        step.ready()
        rows = _grade(step, problems, answers, function, config.reward.mode)
        if config.reward.shuffle and train:
            rows = shuffle_rewards(rows, derive_seed(config.seed, "shuffle", where))
        _put(step, rows, "rewards.parquet")
        metrics = summarize(rows)
        metrics["reward/unfinished"] = float(sum(row["finish_reason"] == "unfinished" for row in answers.values()))
        if second:
            _put(step, _grade(step, problems, answers, lambda *_: None, second), f"{SECOND_MODE}/verdicts.parquet")
        return step.commit(kind="rewards", rows=len(rows), metrics=metrics, rollouts=vars(rollouts))


def other_mode(config: Config) -> Mode:
    """The mode of judging that `reward.mode` is not."""
    return "lcb" if config.reward.mode == "real" else "real"


def _key(row: dict[str, Any]) -> str:
    return f"{row['problem_id']}/{row['sample_id']}/{row['turn']}/{row['role']}"


def _grade(
    step: Step,
    problems: dict[str, Problem],
    answers: dict[str, dict[str, Any]],
    function: RewardFunction,
    mode: Mode,
) -> list[dict[str, Any]]:
    """Rows in the order of their keys. What an earlier try had graded lies in `graded/` and is not graded again."""
    parts = "graded" if mode == step.config.reward.mode else "graded-second"
    folder = step.store.local_dir(f"{step.where}/{parts}")
    rows = {_key(row): row for row in read_parquet_dir(folder, REWARD_SCHEMA)}
    cut = {key: answer for key, answer in answers.items() if answer["finish_reason"] == "unfinished"}
    rows |= {key: _row(answer, _NOT_RUN, function) for key, answer in cut.items()}
    progress = Progress(f"{step.label} ({mode})", len(answers), "programs")
    pending: list[dict[str, Any]] = []
    limit = step.config.reward.time_limit_s

    def programs() -> Iterator[dict[str, Any]]:
        for key, answer in answers.items():
            if key not in rows:
                code = extract_code(graded_text(answer))
                yield problems[answer["problem_id"]].sandbox_program(key, code, time_limit_s=limit)

    def flush() -> None:
        _put(step, pending, f"{parts}/part-{len(rows):07d}.parquet")
        pending.clear()

    todo = len(answers) - len(rows)
    for verdict in grade(programs(), mode=mode, workers=step.config.reward.workers):
        row = _row(answers[verdict["id"]], verdict, function)
        rows[verdict["id"]] = row
        pending.append(row)
        todo -= 1
        if len(pending) == _PART_ROWS:
            flush()
        progress.update(len(answers) - todo)
    if pending:
        flush()
    return [rows[key] for key in sorted(rows)]


def _put(step: Step, rows: list[dict[str, Any]], name: str) -> None:
    with step.store.scratch() as scratch:
        write_parquet(scratch / "rows", rows, REWARD_SCHEMA)
        step.store.put(scratch / "rows", f"{step.where}/{name}")


def _row(answer: dict[str, Any], verdict: dict[str, Any], function: RewardFunction) -> dict[str, Any]:
    infra = verdict["verdict"] == "INFRA"
    failure = verdict.get("first_failure")
    return {
        "problem_id": answer["problem_id"],
        "sample_id": answer["sample_id"],
        "turn": answer["turn"],
        "role": answer["role"],
        "verdict": verdict["verdict"],
        "reward": None if infra else function(verdict, answer),
        "well_formed": is_well_formed(graded_text(answer)),
        "tests_passed": verdict["passed"],
        "tests_total": verdict["total"],
        "first_failure": None if failure is None else json.dumps(failure, default=str),
        "cpu_ms": verdict["cpu_ms"],
        "wall_ms": verdict["wall_ms"],
    }


def shuffle_rewards(rows: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """The negative control: the same rewards, dealt out at random. Null rewards stay where they are."""
    scored = [i for i, row in enumerate(rows) if row["reward"] is not None]
    order = np.random.default_rng(seed).permutation(len(scored))
    shuffled = [dict(row) for row in rows]
    for i, j in zip(scored, order, strict=True):
        shuffled[i]["reward"] = rows[scored[int(j)]]["reward"]
    return shuffled


def summarize(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Mean reward, the share of each verdict, and the grader's own cost."""
    rewards = [row["reward"] for row in rows if row["reward"] is not None]
    verdicts = Counter(row["verdict"] for row in rows)
    return {
        "reward/mean": float(np.mean(rewards)) if rewards else 0.0,
        "reward/unscored": float(len(rows) - len(rewards)),
        "reward/well_formed": float(np.mean([row["well_formed"] for row in rows])) if rows else 0.0,
        "reward/cpu_ms_a_program": float(np.mean([row["cpu_ms"] for row in rows])) if rows else 0.0,
        **{f"verdict/{name}": count / len(rows) for name, count in sorted(verdicts.items())},
    }
