"""How much better than expected a token, or its whole answer, was.

An estimator is a function of the answers and the configuration that returns an advantage a token, N in all. Yours is
one such function, named in the profile: `policy_update.adv_estimator=my.module:name`; see README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from components.core.plugin import load_function
from components.core.update_config import PolicyUpdateConfig
from components.policy_update.answers import Answers

Estimator = Callable[[Answers, PolicyUpdateConfig], Tensor]

_EPSILON = 1e-6


def group_members(groups: Sequence[Hashable]) -> list[list[int]]:
    """The indices of each group's answers, groups in order of appearance."""
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    return list(members.values())


def _centred(reward_S: Tensor, groups: Sequence[Hashable]) -> list[tuple[list[int], Tensor]]:
    """The distance from the group's mean, for groups that say anything.

    A group of one, or of equal rewards, is left out, so that it gives exactly 0: rounding of equal rewards would
    otherwise be blown up by a small divisor, and a group of one would be its own reward.
    """
    if reward_S.shape != (len(groups),):
        raise ValueError(f"{tuple(reward_S.shape)} rewards for {len(groups)} groups")
    result = []
    for indices in group_members(groups):
        reward_G = reward_S[indices].double()
        if reward_G.max() > reward_G.min():
            result.append((indices, reward_G - reward_G.mean()))
    return result


def grpo_advantages(reward_S: Tensor, groups: Sequence[Hashable], *, normalise: bool = True) -> Tensor:
    """Advantages of S samples, one a sample.

        A_i = (r_i - mean_G) / (std_G + 1e-6)        std with Bessel's correction (n - 1)
        A_i =  r_i - mean_G                          without `normalise` (Dr. GRPO)

    A group of one, or of equal rewards, gives exactly 0.

    Args:
        reward_S: the rewards.
        groups: S keys; samples with the same key are compared with each other.
        normalise: divide by the group's standard deviation.

    Source: DeepSeekMath, arXiv:2402.03300, section 4.1; Dr. GRPO, arXiv:2503.20783.
    """
    advantage_S = torch.zeros(len(groups), dtype=torch.float64)
    for indices, centred_G in _centred(reward_S, groups):
        advantage_S[indices] = centred_G / (centred_G.std() + _EPSILON) if normalise else centred_G
    return advantage_S.float()


def rloo_advantages(reward_S: Tensor, groups: Sequence[Hashable]) -> Tensor:
    """Each sample's reward less the mean of the others of its group: n / (n - 1) (r_i - mean_G); S advantages.

    Source: Ahmadian et al., arXiv:2402.14740.
    """
    advantage_S = torch.zeros(len(groups), dtype=torch.float64)
    for indices, centred_G in _centred(reward_S, groups):
        advantage_S[indices] = centred_G * len(indices) / (len(indices) - 1)
    return advantage_S.float()


def whiten(value_N: Tensor) -> Tensor:
    """Mean 0 and variance 1 over all tokens: (x - mean) / sqrt(var + 1e-8), with Bessel's correction.

    Fewer than two tokens, or equal ones, give exactly 0.
    """
    if len(value_N) < 2 or value_N.max() == value_N.min():
        return torch.zeros_like(value_N)
    return (value_N - value_N.mean()) * (value_N.var() + 1e-8).rsqrt()


def gae_advantages(answers: Answers, *, gamma: float, lam: float) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation; N advantages, not whitened, and the N returns that the value model learns.

        delta_t = r_t + gamma V_(t+1) - V_t          V after the last token is 0
        A_t     = delta_t + gamma lam A_(t+1)
        R_t     = A_t + V_t

    Source: Schulman et al., arXiv:1506.02438, eq. 11 and 16.
    """
    value_N = answers.value_N
    if value_N is None:
        raise ValueError("gae needs the value model's answers")
    next_N = value_N.roll(-1)
    last_S = answers.length_S.cumsum(0) - 1
    next_N[last_S[answers.length_S > 0]] = 0.0
    advantage_N = answers.discounted(answers.reward_N + gamma * next_N - value_N, gamma * lam)
    return advantage_N, advantage_N + value_N


def _grpo(answers: Answers, config: PolicyUpdateConfig) -> Tensor:
    return answers.spread(grpo_advantages(answers.score_S, answers.groups, normalise=config.norm_adv_by_std_in_grpo))


def _rloo(answers: Answers, config: PolicyUpdateConfig) -> Tensor:
    return answers.spread(rloo_advantages(answers.score_S, answers.groups))


def _reinforce_plus_plus(answers: Answers, config: PolicyUpdateConfig) -> Tensor:
    """The discounted return of each token, whitened over the batch (arXiv:2501.03262)."""
    return whiten(answers.discounted(answers.reward_N, config.gamma))


def _reinforce_plus_plus_baseline(answers: Answers, config: PolicyUpdateConfig) -> Tensor:
    """The distance from the group's mean, whitened over the batch (arXiv:2501.03262).

    Groups that say nothing count in the batch's mean and variance, but stay exactly 0.
    """
    centred_S = torch.zeros(len(answers.groups), dtype=torch.float64)
    for indices, centred_G in _centred(answers.score_S, answers.groups):
        centred_S[indices] = centred_G
    told_S = torch.zeros_like(centred_S)
    for indices, _ in _centred(answers.score_S, answers.groups):
        told_S[indices] = 1.0
    return whiten(answers.spread(centred_S)) * answers.spread(told_S)


def _gae(answers: Answers, config: PolicyUpdateConfig) -> Tensor:
    return whiten(gae_advantages(answers, gamma=config.gamma, lam=config.lam)[0])


ESTIMATORS: dict[str, Estimator] = {
    "grpo": _grpo,
    "rloo": _rloo,
    "reinforce_plus_plus": _reinforce_plus_plus,
    "reinforce_plus_plus_baseline": _reinforce_plus_plus_baseline,
    "gae": _gae,
}


def advantages(answers: Answers, config: PolicyUpdateConfig) -> Tensor:
    """The advantage of each of the N tokens, float32, by the configured estimator.

    Raises:
        UserError: there is no such estimator.
        ValueError: it returned something else than N finite numbers.
    """
    name = config.adv_estimator
    estimator = ESTIMATORS.get(name) or load_function(name, "policy_update.adv_estimator")
    advantage_N: Tensor = estimator(answers, config)
    count = int(answers.length_S.sum())
    if advantage_N.shape != (count,) or not advantage_N.isfinite().all():
        raise ValueError(f"{name}: returned {tuple(advantage_N.shape)} advantages, not {count} finite ones")
    return advantage_N.float()
