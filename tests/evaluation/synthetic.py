"""A made-up run in a store: dataset, policies, answers, verdicts and the markers of all steps, without any model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from components.core.config import Config, parse_config
from components.core.paths import base_policy_path, dataset_path, evaluation_path, iteration_path, shard_path
from components.core.schema import (
    PROBLEM_SCHEMA,
    REWARD_SCHEMA,
    ROLLOUT_SCHEMA,
    Problem,
    Test,
    read_parquet,
    write_parquet,
)
from components.core.store import Pointer, Store, open_store

PLATFORMS = ("atcoder", "leetcode", "codeforces")


def make_config(store: Path, **changes: Any) -> Config:
    """Two stages of two iterations on made-up data; `changes` replace top-level values."""
    values: dict[str, Any] = {
        "profile": "made-up",
        "run_name": "made-up-1",
        "model_name": "random:2x16",
        "learning_rate": 2e-5,
        "batch_size": 8,
        "context_length": 512,
        "store": str(store),
        "data": {"sources": [{"format": "taco", "path": "nowhere.jsonl"}], "max_prompt_length": 300},
        "rollout": {"engine": "transformers", "shards": 2},
        "stages": [
            {"name": "48", "max_response_length": 48, "iterations": 2},
            {"name": "64", "max_response_length": 64, "iterations": 2},
        ],
        "policy_update": {"ppo_mini_batch_size": 4},
        "evaluation": {"n": 4, "max_response_length": 64, "pass_k": [1, 2, 4, 8]},
    }
    return parse_config(values | changes, "made up")


def make_problems(count: int) -> list[Problem]:
    """Held-out problems of three platforms, three difficulties and eight months."""
    return [
        Problem(
            problem_id=f"made-up/{index:03d}",
            source="livecodebench" if index % 2 else "taco",
            question=f"Read {index % 5 + 2} integers <from one line> & print their sum modulo {index + 7}.",
            tests=[Test("stdin", f"{i} {i + 1}\n", f"{2 * i + 1}\n") for i in range(5)],
            difficulty=("easy", "medium", "hard")[index % 3],
            platform=PLATFORMS[index % 3],
            contest_date=f"{2024 + (index % 8 + 5) // 12}-{(index % 8 + 5) % 12 + 1:02d}-15",
        )
        for index in range(count)
    ]


def make_dataset(store: Store, problems: list[Problem]) -> Pointer:
    """`train/` and `test/` as prepare_data leaves them."""
    where = dataset_path("made-up")
    with store.scratch() as folder:
        for split in ("train", "test"):
            (folder / split).mkdir()
            write_parquet(folder / split / "problems.parquet", [p.to_row() for p in problems], PROBLEM_SCHEMA)
        (folder / "manifest.json").write_text("{}")
        store.put_dir(folder, where)
    return store.commit(
        where, kind="dataset", step="prepare_data", rows=len(problems), key="made-up",
        metrics={"timing_s/startup": 1.9, "timing_s/total": 16.0},
    )  # fmt: skip


def make_policy(store: Store, config: Config, stage: int, iteration: int) -> Pointer:
    """A policy with a curve of two optimizer steps, or the base policy for stage 0."""
    where = f"{iteration_path(config, stage, iteration)}/policy" if stage else base_policy_path("made-up")
    first = 2 * (2 * (stage - 1) + iteration)
    rng = np.random.default_rng(first + 100)
    curve = [
        {
            "global_step": first + 1 + index,
            "critic/score/mean": 0.3 + 0.03 * (first + index) + float(rng.normal(0, 0.03)),
            "actor/entropy": 0.9 - 0.05 * (first + index),
            "actor/grad_norm": 1.0 + float(rng.normal(0, 0.2)),
            "response_length/mean": 40.0 - (first + index),
        }
        for index in range(2)
    ]
    extra: dict[str, Any] = {"curve": curve} if stage else {}
    store.write_bytes(where.encode(), f"{where}/model.safetensors")
    return store.commit(
        where, kind="policy", step="policy_update" if stage else "prepare_data", rows=1, key=where,
        metrics={"timing_s/startup": 4.0, "timing_s/total": 48.0} if stage else {"timing_s/total": 6.0},
        **extra,
    )  # fmt: skip


def _answer(rng: np.random.Generator, problem: Problem, formed: bool, verdict: str) -> dict[str, Any]:
    program = f"numbers = list(map(int, input().split()))\nprint(sum(numbers) + {rng.integers(3)})"
    text = f"Here is <the> program.\n```python\n{program}\n```" if formed else f"I would just print {program[:30]}"
    tokens = int(rng.integers(20, 64))
    return {
        "policy_version": "made-up", "problem_id": problem.problem_id, "turn": 0, "role": "solver",
        "prompt_ids": [1, 2], "response_ids": list(range(tokens)), "rollout_logprobs": [-0.5] * tokens,
        "finish_reason": "length" if tokens > 58 else "stop", "temperature": 0.6, "top_p": 0.95, "text": text,
        "seconds": 0.1, "verdict": verdict,
    }  # fmt: skip


def make_rewards(
    store: Store, base: str, problems: list[Problem], policy: Pointer, *, skill: float, form: float, n: int, seed: int
) -> list[Pointer]:
    """Two shards of answers and verdicts; one sample in about eighty is INFRA.

    Args:
        store: where to.
        base: the iteration's or the evaluation's folder.
        problems: of the split.
        policy: that is made to have answered.
        skill: mean success of a well-formed answer.
        form: share of well-formed answers.
        n: samples a problem.
        seed: of all choices; what is hard stays hard under any seed.
    """
    rng = np.random.default_rng(seed)
    hardness = np.random.default_rng(99).normal(0, 0.25, len(problems))
    pointers = []
    for shard in range(2):
        answers, rewards = [], []
        for problem, hard in list(zip(problems, hardness, strict=True))[shard::2]:
            for sample_id in range(n):
                formed = bool(rng.random() < form)
                correct = formed and bool(rng.random() < min(1.0, max(0.0, skill + hard)))
                verdict = "AC" if correct else str(rng.choice(["WA", "WA", "RE", "TLE", "CE"])) if formed else "NF"
                verdict = "INFRA" if rng.random() < 0.0125 else verdict
                answers.append(_answer(rng, problem, formed, verdict) | {"sample_id": sample_id})
                rewards.append(
                    {
                        "problem_id": problem.problem_id, "sample_id": sample_id, "turn": 0, "role": "solver",
                        "verdict": verdict, "reward": None if verdict == "INFRA" else float(correct),
                        "well_formed": formed, "tests_passed": 5 if correct else 1, "tests_total": 5,
                        "first_failure": None if correct else "1", "cpu_ms": 12.0, "wall_ms": 20.0,
                    }
                )  # fmt: skip
        pointers.append(_commit_shard(store, base, shard, answers, rewards, policy))
    return pointers


def _commit_shard(
    store: Store, base: str, shard: int, answers: list[dict[str, Any]], rewards: list[dict[str, Any]], policy: Pointer
) -> Pointer:
    timing = {"timing_s/startup": 2.5, "timing_s/total": 24.0 + shard}
    rollout_path, reward_path = shard_path(base, "rollout", shard), shard_path(base, "reward", shard)
    with store.scratch() as folder:
        write_parquet(folder / "answers.parquet", answers, ROLLOUT_SCHEMA)
        store.put_dir(folder, rollout_path)
    rollouts = store.commit(
        rollout_path, kind="rollouts", step="rollout", rows=len(answers), key=rollout_path, metrics=timing
    )
    well_formed = float(np.mean([row["well_formed"] for row in rewards]))
    with store.scratch() as folder:
        write_parquet(folder / "verdicts.parquet", rewards, REWARD_SCHEMA)
        store.put_dir(folder, reward_path)
    return store.commit(
        reward_path, kind="rewards", step="reward", rows=len(rewards), key=reward_path,
        metrics={"timing_s/startup": 0.6, "timing_s/total": 5.0, "reward/well_formed": well_formed},
        rollouts=asdict(rollouts), policy=policy.uri,
    )  # fmt: skip


class MadeUpRun:
    """The inputs of the evaluate and report steps of one run."""

    def __init__(
        self, config: Config, problems: int = 40, *, seed: int = 0, gain: float = 0.25, form: float = 0.65
    ) -> None:
        self.config = config
        self.store = open_store(config.store)
        self.problems = make_problems(problems)
        self.dataset = make_dataset(self.store, self.problems)
        self.policies = [make_policy(self.store, config, 0, 0)]
        for stage in (1, 2):
            for iteration in range(2):
                policy = self.policies[-1]
                base = iteration_path(config, stage, iteration)
                make_rewards(self.store, base, self.problems[:8], policy, skill=0.5, form=0.7, n=4, seed=stage)
                self.policies.append(make_policy(self.store, config, stage, iteration))
        self.rewards: dict[str, list[Pointer]] = {}
        for step, label in enumerate(("base", "stage-1", "stage-2")):
            self.rewards[label] = make_rewards(
                self.store, evaluation_path(config, label), self.problems, self.policies[2 * step],
                skill=0.5 + gain * step / 2, form=form * (1 + 0.18 * step), n=config.evaluation.n,
                seed=seed * 10 + step,
            )  # fmt: skip

    def policy_of(self, label: str) -> Pointer:
        """The policy that an evaluation is of."""
        return self.policies[2 * list(self.rewards).index(label)]

    def verdicts(self, label: str) -> list[dict[str, Any]]:
        """All reward rows of an evaluation, read back without the code under test."""
        rows = []
        for pointer in self.rewards[label]:
            rows += read_parquet(Path(pointer.uri) / "verdicts.parquet", REWARD_SCHEMA)
        return rows
