"""A tiny policy, a store, and rollouts made by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForTokenClassification

from components.core.config import Config, parse_config
from components.core.paths import iteration_path
from components.core.schema import REWARD_SCHEMA, ROLLOUT_SCHEMA, write_parquet
from components.core.store import Pointer, Store, open_store
from components.policy_update.rollout_io import Sample
from components.policy_update.update import run

VOCAB = 48


def make_config(store: Path | str, *, iterations: int = 8, **changes: Any) -> Config:
    """A valid configuration for the tiny policy; `changes` go to `policy_update`, or to the top if known there."""
    top = {key: changes.pop(key) for key in list(changes) if key in Config.model_fields}
    update = {
        "ppo_mini_batch_size": 4,
        "ppo_max_token_len_per_gpu": 256,
        "dtype": "float32",
        "gradient_checkpointing": False,
        **changes,
    }
    return parse_config(
        {
            "profile": "test",
            "run_name": "run",
            "model_name": "tiny",
            "learning_rate": 1e-2,
            "batch_size": update["ppo_mini_batch_size"],
            "context_length": 256,
            "store": str(store),
            "seed": 3,
            "data": {"sources": [{"format": "taco", "path": "none"}], "max_prompt_length": 64},
            "stages": [{"name": "8", "max_response_length": 8, "iterations": iterations}],
            "evaluation": {"max_response_length": 8},
            "policy_update": update,
            **top,
        },
        "test",
    )


def tiny_model(*, tied: bool = True, layers: int = 2, seed: int = 0, attention: str | None = None) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCAB,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=256,
            tie_word_embeddings=tied,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            attn_implementation=attention,
        )
    )


def save_policy(store: Store, model: LlamaForCausalLM, name: str = "base") -> Pointer:
    with store.scratch() as scratch:
        model.save_pretrained(scratch / "hf")
        (scratch / "hf" / "chat_template.jinja").write_text("{{ messages }}")
        store.put_dir(scratch / "hf", f"policies/{name}/hf")
    return store.commit(
        f"policies/{name}", kind="policy", step="prepare_data", rows=0, key=name, version=name, global_step=0
    )


def make_samples(
    *,
    problems: int = 4,
    n: int = 4,
    seed: int = 0,
    longest: int = 8,
    reward: Callable[[Sample], float | None] | None = None,
) -> list[Sample]:
    """Samples of random tokens; by default with random binary rewards, never all equal within a problem."""
    rng = random.Random(seed)
    samples = []
    for problem in range(problems):
        prompt_ids = [rng.randrange(3, VOCAB) for _ in range(rng.randint(3, 12))]
        for number in range(n):
            length = rng.randint(1, longest)
            sample = Sample(
                problem_id=f"p{problem}",
                role="solver",
                sample_id=number,
                turn=0,
                prompt_ids=prompt_ids,
                response_ids=[rng.randrange(3, VOCAB) for _ in range(length)],
                rollout_logprobs=[-3.9 + rng.uniform(-0.3, 0.3) for _ in range(length)],
                temperature=0.8,
                finish_reason="stop",
                reward=float(number == 0 or (number > 1 and rng.random() < 0.5)),
                policy_version="base",
            )
            samples.append(replace(sample, reward=reward(sample)) if reward else sample)
    return samples


def save_rewards(
    store: Store, config: Config, samples: Sequence[Sample], *, stage: int = 1, iteration: int = 0, shards: int = 1
) -> list[Pointer]:
    pointers = []
    base = iteration_path(config, stage, iteration)
    for shard in range(shards):
        mine = [sample for sample in samples if int(sample.problem_id[1:]) % shards == shard]
        rollouts = _save(store, f"{base}/rollout/shard-{shard:02d}", [_rollout_row(s) for s in mine], ROLLOUT_SCHEMA)
        rewards = [_reward_row(s) for s in mine]
        pointers.append(
            _save(store, f"{base}/reward/shard-{shard:02d}", rewards, REWARD_SCHEMA, rollouts=asdict(rollouts))
        )
    return pointers


def _save(store: Store, rel: str, rows: list[dict[str, Any]], schema: Any, **extra: Any) -> Pointer:
    with store.scratch() as scratch:
        write_parquet(scratch / "part.parquet", rows, schema)
        store.put(scratch / "part.parquet", f"{rel}/part-000.parquet")
    return store.commit(rel, kind="rollouts", step="test", rows=len(rows), key="test", **extra)


def _rollout_row(sample: Sample) -> dict[str, Any]:
    names = ("policy_version", "problem_id", "sample_id", "turn", "role", "prompt_ids", "response_ids")
    row = {name: getattr(sample, name) for name in (*names, "rollout_logprobs", "temperature", "loss_mask")}
    return row | {"finish_reason": sample.finish_reason, "top_p": 1.0, "text": "", "seconds": 0.0}


def _reward_row(sample: Sample) -> dict[str, Any]:
    row = {name: getattr(sample, name) for name in ("problem_id", "sample_id", "turn", "role", "reward")}
    return row | {"verdict": "INFRA" if sample.reward is None else "AC"}


@dataclass
class Curves:
    """Stands for MLflow."""

    points: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    parent_id: str = "parent"

    def __call__(self, config: Config) -> Curves:
        return self

    def nested(self, step: str) -> str:
        return step

    def log(self, run_id: str, metrics: dict[str, float], step: int) -> None:
        if run_id == self.parent_id:
            self.points.append((step, metrics))

    def end(self, run_id: str, status: str) -> None:
        pass


@dataclass
class World:
    """A store with a base policy, and the step to call."""

    folder: Path
    curves: Curves
    store: Store = field(init=False)
    base: Pointer = field(init=False)

    def __post_init__(self) -> None:
        self.store = open_store(str(self.folder / "store"))
        self.base = save_policy(self.store, tiny_model())

    def config(self, **changes: Any) -> Config:
        return make_config(self.store.root, **changes)

    def update(
        self,
        config: Config,
        samples: Sequence[Sample],
        *,
        policy: Pointer | None = None,
        iteration: int = 0,
        shards: int = 1,
    ) -> Pointer:
        rewards = save_rewards(self.store, config, samples, iteration=iteration, shards=shards)
        return run(
            config=config,
            policy=policy or self.base,
            rewards=rewards,
            stage=1,
            iteration=iteration,
            output=str(self.folder / f"policy-{iteration}.json"),
        )

    def critic(self, pointer: Pointer) -> dict[str, torch.Tensor]:
        model = LlamaForTokenClassification.from_pretrained(self.store.fetch(Pointer(**pointer.extra["critic"])) / "hf")
        return {name: parameter.detach() for name, parameter in model.named_parameters()}

    def weights(self, pointer: Pointer) -> dict[str, torch.Tensor]:
        model = LlamaForCausalLM.from_pretrained(self.store.fetch(pointer) / "hf")
        return {name: parameter.detach() for name, parameter in model.named_parameters()}
