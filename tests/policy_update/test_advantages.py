from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from components.policy_update.advantages import grpo_advantages

GOLDEN = json.loads((Path(__file__).parent.parent / "oracles" / "policy_update.json").read_text())


def test_advantage_by_hand() -> None:
    # Group a: mean 0.25, deviations -1/4 -1/4 -1/4 3/4, variance (3/16 + 9/16) / 3 = 1/4, std 1/2.
    advantage_S = grpo_advantages(torch.tensor([0.0, 0.0, 5.0, 0.0, 1.0, 7.0]), ["a", "a", "b", "a", "a", "b"])
    spread = math.sqrt(2)
    expected = [-0.5, -0.5, -1 / spread, -0.5, 1.5, 1 / spread]
    assert advantage_S.tolist() == pytest.approx(expected, abs=5e-6)


def test_without_normalisation_it_is_the_distance_from_the_mean() -> None:
    advantage_S = grpo_advantages(torch.tensor([0.0, 0.0, 1.0]), ["a"] * 3, normalise=False)
    assert advantage_S.tolist() == pytest.approx([-1 / 3, -1 / 3, 2 / 3])


@pytest.mark.parametrize("reward", [0.0, 0.7, 0.1 + 0.2, 1e6])
@pytest.mark.parametrize("size", [1, 2, 8])
def test_equal_rewards_give_exactly_zero(reward: float, size: int) -> None:
    advantage_S = grpo_advantages(torch.full((size,), reward), ["a"] * size)
    assert advantage_S.tolist() == [0.0] * size


def test_groups_do_not_mix() -> None:
    alone = grpo_advantages(torch.tensor([0.0, 1.0, 1.0]), ["a"] * 3)
    beside = grpo_advantages(torch.tensor([0.0, 9.0, 1.0, 1.0, 3.0]), ["a", "b", "a", "a", "b"])
    assert torch.equal(alone, beside[[0, 2, 3]])


@pytest.mark.parametrize("case", ["grpo", "dr_grpo"])
def test_advantages_equal_verl(case: str) -> None:
    golden = GOLDEN["advantages"]
    advantage_S = grpo_advantages(
        torch.tensor(golden["reward_S"]), golden["group_S"], normalise=golden[case]["norm_adv_by_std_in_grpo"]
    )
    assert advantage_S.tolist() == pytest.approx(golden[case]["advantage_S"], abs=1e-6)
    assert any(abs(value) > 0.1 for value in golden[case]["advantage_S"])
