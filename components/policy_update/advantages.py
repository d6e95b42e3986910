"""How much better than its group a sample was."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

_EPSILON = 1e-6


def grpo_advantages(reward_S: Tensor, groups: Sequence[Hashable], *, normalise: bool = True) -> Tensor:
    """Advantages of S samples, one a sample.

        A_i = (r_i - mean_G) / (std_G + 1e-6)        std with Bessel's correction (n - 1)
        A_i =  r_i - mean_G                          without `normalise` (Dr. GRPO)

    A group of one, or of equal rewards, gives exactly 0: float32 rounding of equal rewards would otherwise be blown
    up by the small divisor.

    Args:
        reward_S: the rewards.
        groups: S keys; samples with the same key are compared with each other.
        normalise: divide by the group's standard deviation.

    Source: DeepSeekMath, arXiv:2402.03300, section 4.1; Dr. GRPO, arXiv:2503.20783.
    """
    if reward_S.shape != (len(groups),):
        raise ValueError(f"{tuple(reward_S.shape)} rewards for {len(groups)} groups")
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    advantage_S = torch.zeros(len(groups), dtype=torch.float64)
    for indices in members.values():
        reward_G = reward_S[indices].double()
        if reward_G.max() == reward_G.min():
            continue
        centred_G = reward_G - reward_G.mean()
        advantage_S[indices] = centred_G / (reward_G.std() + _EPSILON) if normalise else centred_G
    return advantage_S.float()
