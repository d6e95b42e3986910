from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from components.core.errors import UserError
from components.core.update_config import ADV_ESTIMATORS, PolicyUpdateConfig
from components.policy_update.advantages import (
    ESTIMATORS,
    advantages,
    gae_advantages,
    grpo_advantages,
    rloo_advantages,
    whiten,
)
from components.policy_update.answers import Answers
from tests.policy_update.golden import GOLDEN

GROUPED = ("grpo", "rloo", "reinforce_plus_plus_baseline")


def make_answers(rewards: list[float], groups: list[str], lengths: list[int], **more: Any) -> Answers:
    return Answers(
        reward_S=torch.tensor(rewards, dtype=torch.float64),
        groups=groups,
        length_S=torch.tensor(lengths),
        **{"penalty_N": torch.zeros(sum(lengths), dtype=torch.float64), **more},
    )


def golden_answers() -> tuple[Answers, Tensor]:
    golden = GOLDEN["advantages"]
    mask_ST = torch.tensor(golden["mask_ST"]) > 0
    penalty_N = -torch.tensor(golden["token_ST"])[mask_ST].double()
    value_N = torch.tensor(golden["value_ST"])[mask_ST].double()
    lengths = mask_ST.sum(1).tolist()
    answers = make_answers(golden["reward_S"], golden["group_S"], lengths, penalty_N=penalty_N, value_N=value_N)
    return answers, mask_ST


def test_advantage_by_hand() -> None:
    # Group a: mean 0.25, deviations -1/4 -1/4 -1/4 3/4, variance (3/16 + 9/16) / 3 = 1/4, std 1/2.
    advantage_S = grpo_advantages(torch.tensor([0.0, 0.0, 5.0, 0.0, 1.0, 7.0]), ["a", "a", "b", "a", "a", "b"])
    spread = math.sqrt(2)
    expected = [-0.5, -0.5, -1 / spread, -0.5, 1.5, 1 / spread]
    assert advantage_S.tolist() == pytest.approx(expected, abs=5e-6)


def test_without_normalisation_it_is_the_distance_from_the_mean() -> None:
    advantage_S = grpo_advantages(torch.tensor([0.0, 0.0, 1.0]), ["a"] * 3, normalise=False)
    assert advantage_S.tolist() == pytest.approx([-1 / 3, -1 / 3, 2 / 3])


def test_rloo_is_the_distance_from_the_mean_of_the_others() -> None:
    advantage_S = rloo_advantages(torch.tensor([0.0, 3.0, 9.0]), ["a"] * 3)
    assert advantage_S.tolist() == pytest.approx([-6.0, -1.5, 7.5])


@pytest.mark.parametrize("name", GROUPED)
@pytest.mark.parametrize("reward", [0.0, 0.7, 0.1 + 0.2, 1e6])
@pytest.mark.parametrize("size", [1, 2, 8])
def test_equal_rewards_give_exactly_zero(name: str, reward: float, size: int) -> None:
    # Beside a group that has something to say, which moves the batch's mean.
    answers = make_answers([reward] * size + [0.0, 1.0], ["a"] * size + ["b", "b"], [3] * size + [1, 5])
    advantage_N = advantages(answers, PolicyUpdateConfig(adv_estimator=name))
    assert advantage_N[: 3 * size].tolist() == [0.0] * (3 * size)
    assert (advantage_N[3 * size :] != 0).all()


def test_groups_do_not_mix() -> None:
    alone = grpo_advantages(torch.tensor([0.0, 1.0, 1.0]), ["a"] * 3)
    beside = grpo_advantages(torch.tensor([0.0, 9.0, 1.0, 1.0, 3.0]), ["a", "b", "a", "a", "b"])
    assert torch.equal(alone, beside[[0, 2, 3]])


@pytest.mark.parametrize("name", [*ADV_ESTIMATORS, "dr_grpo"])
def test_advantages_equal_verl(name: str) -> None:
    golden, (answers, mask_ST) = GOLDEN["advantages"], golden_answers()
    config = PolicyUpdateConfig(
        adv_estimator="grpo" if name == "dr_grpo" else name,
        norm_adv_by_std_in_grpo=name == "grpo",
        gamma=golden["gamma"],
        lam=golden["lam"],
    )
    expected_N = torch.tensor(golden[name])[mask_ST]
    assert expected_N.abs().max() > 0.1
    torch.testing.assert_close(advantages(answers, config), expected_N, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", ["grpo", "dr_grpo"])
def test_advantages_equal_trl(name: str) -> None:
    golden = GOLDEN["trl_advantages"]
    rewards, groups, expected_S = golden["reward_S"], golden["group_S"], torch.tensor(golden[name])
    scored = [number for number, reward in enumerate(rewards) if reward is not None]
    advantage_S = grpo_advantages(
        torch.tensor([rewards[number] for number in scored]), [groups[number] for number in scored],
        normalise=name == "grpo",
    )  # fmt: skip
    torch.testing.assert_close(advantage_S, expected_S[scored], atol=1e-6, rtol=1e-6)
    assert len(scored) < len(rewards)
    equal = [number for number, group in enumerate(groups) if group == "p1"]
    assert {rewards[number] for number in equal} == {1000.0}
    assert (expected_S != 0).sum() == len(scored) - len(equal)


def test_returns_equal_verl() -> None:
    golden, (answers, mask_ST) = GOLDEN["advantages"], golden_answers()
    _, return_N = gae_advantages(answers, gamma=golden["gamma"], lam=golden["lam"])
    expected_N = torch.tensor(golden["gae_returns"])[mask_ST]
    torch.testing.assert_close(return_N.float(), expected_N, atol=1e-6, rtol=1e-6)


def test_the_golden_answers_reach_every_branch() -> None:
    answers, mask_ST = golden_answers()
    holes_S = [row[: row.nonzero().max() + 1].logical_not().any().item() for row in mask_ST]
    assert any(holes_S)
    assert not all(holes_S)
    assert len({answers.groups.count(group) for group in answers.groups}) > 1
    assert answers.penalty_N.abs().min() > 0


def test_every_named_estimator_is_there() -> None:
    assert set(ESTIMATORS) == set(ADV_ESTIMATORS)


def test_gae_by_hand() -> None:
    # gamma 1/2, lambda 1/2; rewards 0 0 1, values 1 2 3: deltas 0, -0.5, -2; A = -0.25, -1, -2. A second answer of one
    # token, reward 4, value 1: A = 3, R = 4. Nothing flows from one answer to the other.
    answers = make_answers([1.0, 4.0], ["a", "a"], [3, 1], value_N=torch.tensor([1.0, 2.0, 3.0, 1.0]).double())
    advantage_N, return_N = gae_advantages(answers, gamma=0.5, lam=0.5)
    assert advantage_N.tolist() == pytest.approx([-0.25, -1.0, -2.0, 3.0])
    assert return_N.tolist() == pytest.approx([0.75, 1.0, 1.0, 4.0])


@pytest.mark.parametrize("discount", [0.0, 0.3, 1.0])
def test_discounted_sums_stay_within_their_answer(discount: float) -> None:
    answers = make_answers([0.0] * 4, ["a"] * 4, [2, 0, 3, 1])
    value_N = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=torch.float64)
    d = discount
    expected = [1 + 2 * d, 2, 3 + 4 * d + 5 * d * d, 4 + 5 * d, 5, 6]
    assert answers.discounted(value_N, d).tolist() == pytest.approx(expected)


def test_the_reward_is_at_the_last_token_less_the_penalties() -> None:
    penalty_N = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    answers = make_answers([1.0, 5.0, 2.0], ["a", "a", "b"], [2, 0, 1], penalty_N=penalty_N)
    assert answers.reward_N.tolist() == pytest.approx([-0.1, 0.8, 1.7])
    # An answer without a token has a reward all the same: it counts in its group's mean.
    assert answers.score_S.tolist() == pytest.approx([0.7, 5.0, 1.7])


@pytest.mark.parametrize("values", [[], [3.0], [0.7, 0.7, 0.7]])
def test_whitening_what_does_not_vary_gives_zero(values: list[float]) -> None:
    assert whiten(torch.tensor(values)).tolist() == [0.0] * len(values)


def best_of_group(answers: Answers, config: PolicyUpdateConfig) -> Tensor:
    """A user's estimator: 1 for the best answer of a group, if it is the only one."""
    best_S = torch.zeros(len(answers.groups))
    for group in set(answers.groups):
        indices = [index for index, other in enumerate(answers.groups) if other == group]
        top = answers.reward_S[indices].max()
        winners = [index for index in indices if answers.reward_S[index] == top]
        if len(winners) == 1:
            best_S[winners] = 1.0
    return answers.spread(best_S)


def wrong_shape(answers: Answers, config: PolicyUpdateConfig) -> Tensor:
    return answers.reward_S


def test_a_users_estimator_is_named_in_the_configuration() -> None:
    answers = make_answers([0.0, 1.0, 1.0, 1.0], ["a", "a", "b", "b"], [1, 2, 1, 1])
    config = PolicyUpdateConfig(adv_estimator=f"{__name__}:best_of_group")
    assert advantages(answers, config).tolist() == [0.0, 1.0, 1.0, 0.0, 0.0]


def test_a_users_estimator_that_is_wrong_is_named() -> None:
    answers = make_answers([0.0, 1.0], ["a", "a"], [1, 2])
    with pytest.raises(UserError, match=r"policy_update.adv_estimator=tests.nowhere:f: No module named"):
        advantages(answers, PolicyUpdateConfig(adv_estimator="tests.nowhere:f"))
    with pytest.raises(ValueError, match="wrong_shape: returned \\(2,\\) advantages, not 3"):
        advantages(answers, PolicyUpdateConfig(adv_estimator=f"{__name__}:wrong_shape"))
