from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from components.core.update_config import PolicyUpdateConfig
from components.policy_update.advantages import ESTIMATORS
from components.policy_update.answers import Answers
from components.policy_update.rollout_io import Sample
from tests.policy_update.helpers import World, make_samples

LENGTH = 6


@torch.no_grad()
def sample(model: LlamaForCausalLM, prompts: list[Sample], seed: int) -> list[Sample]:
    """Answer each prompt with LENGTH tokens; the reward is the share of even ones."""
    generator = torch.Generator().manual_seed(seed)
    ids_BT = torch.tensor([prompt.prompt_ids for prompt in prompts])
    logps: list[Tensor] = []
    for _ in range(LENGTH):
        logp_BV = model(ids_BT).logits[:, -1].log_softmax(-1)
        next_B1 = torch.multinomial(logp_BV.exp(), 1, generator=generator)
        logps.append(logp_BV.gather(1, next_B1))
        ids_BT = torch.cat([ids_BT, next_B1], dim=1)
    answers, logp_BT = ids_BT[:, -LENGTH:].tolist(), torch.cat(logps, dim=1).tolist()
    return [
        replace(
            prompt,
            response_ids=answer,
            rollout_logprobs=logp_T,
            temperature=1.0,
            reward=sum(token % 2 == 0 for token in answer) / LENGTH,
        )
        for prompt, answer, logp_T in zip(prompts, answers, logp_BT, strict=True)
    ]


def mean_rewards(world: World, updates: int, **settings: Any) -> list[float]:
    """The mean reward before each update, and after the last."""
    config = world.config(learning_rate=2e-2, iterations=updates, **settings)
    prompts = [
        replace(prompt, prompt_ids=[random.Random(prompt.problem_id).randrange(3, 40) for _ in range(3)])
        for prompt in make_samples(problems=4, n=12)
    ]
    pointer, rewards = world.base, []
    for iteration in range(updates + 1):
        model = LlamaForCausalLM.from_pretrained(world.store.fetch(pointer) / "hf")
        samples = sample(model, prompts, seed=iteration)
        rewards.append(sum(float(s.reward or 0) for s in samples) / len(samples))
        if iteration < updates:
            pointer = world.update(config, samples, policy=pointer, iteration=iteration)
    return rewards


def flipped_grpo(answers: Answers, config: PolicyUpdateConfig) -> Tensor:
    """A user's estimator, with the wrong sign."""
    return -ESTIMATORS["grpo"](answers, config)


@pytest.mark.slow
def test_the_reward_rises(world: World) -> None:
    rewards = mean_rewards(world, 8)
    assert rewards[0] < 0.65
    assert rewards[-1] > 0.85
    assert all(abs(point["sampling/mismatch_k3_kl"]) < 1e-6 for _, point in world.curves.points)


@pytest.mark.slow
def test_with_a_value_model_the_reward_rises_too(world: World) -> None:
    rewards = mean_rewards(world, 8, preset="ppo", critic={"lr": 1e-2})
    assert rewards[0] < 0.65
    assert rewards[-1] > 0.85


@pytest.mark.slow
def test_with_the_sign_flipped_the_reward_falls(world: World) -> None:
    rewards = mean_rewards(world, 8, adv_estimator="tests.policy_update.test_learning:flipped_grpo")
    assert rewards[0] > 0.4
    assert rewards[-1] < 0.15
