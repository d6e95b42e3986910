"""Rollout, reward, update and evaluation of the real tiny policy in each mode, step by step as in the pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from components.core.plugin import load_function
from components.core.schema import REWARD_SCHEMA, read_parquet_dir
from components.core.store import Pointer
from components.evaluation import evaluate
from components.policy_update import update
from components.policy_update.rollout_io import read_samples
from components.reward import score
from components.rollout.generate import run_evaluation
from tests.rollout.conftest import Configure
from tests.rollout.scripted import World

ROLES = {
    "single": ["solver"],
    "refine": ["solver", "refiner"],
    "solver_judge": ["solver", "solver", "judge"],
    "debate": ["solver", "solver", "debater_a", "debater_b", "final"],
}
OPTIONS = {"single": "{}", "refine": "{turns: 2}", "solver_judge": "{candidates: 2}", "debate": "{}"}


def reward_of(world: World, rollouts: Pointer) -> Pointer:
    return score.run(
        config=world.config, dataset=world.dataset, rollouts=rollouts, output=f"{world.store.root}/rewards.json"
    )


def updated(world: World, rollouts: Pointer, policy: Pointer, *, iteration: int = 0) -> Pointer:
    return update.run(
        config=world.config,
        policy=policy,
        rewards=[reward_of(world, rollouts)],
        stage=1,
        iteration=iteration,
        output=f"{world.store.root}/policy.json",
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ROLES)
def test_every_turn_is_graded_trained_on_and_evaluated(configure: Configure, mode: str) -> None:
    world = World(
        configure(
            f"rollout.mode={mode}",
            f"rollout.mode_options={OPTIONS[mode]}",
            'rollout.answer_prefix="So: "',
            "context_length=2000",
            "policy_update.old_logprobs=recompute",
            "policy_update.rollout_is_threshold=2.0",
            "evaluation.n=2",
        )
    )
    rollouts = world.rollout()
    rows = world.rows(rollouts)
    for problem, sample in {(row["problem_id"], row["sample_id"]) for row in rows}:
        roles = [row["role"] for row in rows if (row["problem_id"], row["sample_id"]) == (problem, sample)]
        assert roles == ROLES[mode]
    rewards = reward_of(world, rollouts)
    folders = [(world.store.fetch(rollouts), world.store.fetch(rewards))]
    samples = read_samples(folders)
    assert len(samples) == len(rows) == rewards.rows
    # Groups are by problem and role, and every role has one in which there is something to learn.
    groups: dict[tuple[str, str], set[float | None]] = {}
    for sample in samples:
        groups.setdefault(sample.group, set()).add(sample.reward)
    assert {role for (_, role), rewards in groups.items() if len(rewards) > 1} == set(ROLES[mode])

    after = updated(world, rollouts, world.policy)
    metrics = after.extra["metrics"]
    assert metrics["sampling/mismatch_k3_kl"] < 1e-3
    assert metrics["actor/grad_norm"] > 0
    assert not same_weights(world, world.policy, after)

    verdicts = {row["verdict"] for row in read_parquet_dir(world.store.fetch(rewards), REWARD_SCHEMA)}
    assert verdicts <= {"NF", "CE", "RE", "WA"}
    result = evaluation(world, after)
    assert result.rows == 4 * 2  # a sample is one row, however many turns it took


def same_weights(world: World, one: Pointer, other: Pointer) -> bool:
    models = [AutoModelForCausalLM.from_pretrained(world.store.fetch(policy) / "hf") for policy in (one, other)]
    first, second = (dict(model.named_parameters()) for model in models)
    return all(torch.equal(first[name], second[name]) for name in first)


def evaluation(world: World, policy: Pointer) -> Pointer:
    common: dict[str, Any] = {"config": world.config, "dataset": world.dataset, "policy": policy, "label": "stage-1"}
    answers = run_evaluation(**common, shard=0, output=f"{world.store.root}/e.json")
    return evaluate.run(**common, rewards=[reward_of(world, answers)], output=f"{world.store.root}/r.json")


@pytest.mark.slow
def test_with_a_stale_sampler_the_weights_are_the_trainer_over_the_sampler(configure: Configure) -> None:
    """staleness=1: the answers are those of the policy before the one that is updated."""
    world = World(
        configure(
            "staleness=1",
            "rollout.n=4",
            "policy_update.old_logprobs=recompute",
            "policy_update.rollout_is_threshold=2.0",
            "policy_update.ppo_epochs=1",
        )
    )
    newer = updated(world, world.rollout(), world.policy)
    stale = world.rollout(iteration=1)  # still of the first policy
    metrics = updated(world, stale, newer, iteration=1).extra["metrics"]
    assert metrics["sampling/stale_share"] == 1.0

    model = AutoModelForCausalLM.from_pretrained(world.store.fetch(newer) / "hf", dtype=torch.float32)
    rewards = reward_of(world, stale)
    scores: dict[tuple[str, str], set[float | None]] = {}
    samples = read_samples([(world.store.fetch(stale), world.store.fetch(rewards))])
    for sample in samples:
        scores.setdefault(sample.group, set()).add(sample.reward)
    ratios: list[float] = []
    for sample in samples:
        if len(scores[sample.group]) > 1:  # others have no advantage, and are not computed
            ids = torch.tensor([sample.prompt_ids + sample.response_ids])
            logits_TV = model(ids).logits[0, len(sample.prompt_ids) - 1 : -1] / sample.temperature
            logp_T = logits_TV.log_softmax(-1).gather(-1, torch.tensor(sample.response_ids)[:, None])[:, 0]
            ratios += (logp_T - torch.tensor(sample.rollout_logprobs)).exp().tolist()
    assert max(abs(ratio - 1) for ratio in ratios) > 0.01  # the policies do differ
    mean = sum(ratios) / len(ratios)
    weight = sum(min(ratio, 2.0) for ratio in ratios) / len(ratios)
    assert metrics["sampling/importance_sampling_ratio/mean"] == pytest.approx(mean, rel=1e-3)
    assert metrics["sampling/importance_weight_mean"] == pytest.approx(weight, rel=1e-3)


def test_a_stale_sampler_without_a_correction_is_refused(configure: Configure) -> None:
    with pytest.raises(Exception, match="staleness=1 samples from another policy"):
        configure("staleness=1", "policy_update.old_logprobs=recompute", "policy_update.rollout_is_threshold=null")


@pytest.mark.slow
def test_the_readmes_own_mode_and_reward_train(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import re

    readme = Path(__file__).parents[2] / "components/rollout/README.md"
    blocks = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", readme.read_text(), re.DOTALL))
    assert blocks.keys() == {"my_mode", "my_reward"}
    for name, code in blocks.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    world = World(
        configure(
            "rollout.mode=my_mode:plan_first",
            "rollout.mode_options={words: 20}",
            "reward.function=my_reward:passing_and_short",
            "context_length=2000",
        )
    )
    rollouts = world.rollout()
    rows = world.rows(rollouts)
    assert {row["role"] for row in rows} == {"planner", "solver"}
    assert len(rows) == 2 * 4 * 2
    rewards = read_parquet_dir(world.store.fetch(reward_of(world, rollouts)), REWARD_SCHEMA)
    assert {row["reward"] for row in rewards} == {0.0}  # an untrained policy passes nothing
    function = load_function("my_reward:passing_and_short", "reward.function")
    assert function({"verdict": "AC"}, {"response_ids": [1] * 100}) == pytest.approx(0.99)
