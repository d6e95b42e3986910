"""What an advantage estimator sees: the scored answers of one update, their N tokens one behind the other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Answers:
    """S answers; the same on every rank, so that a mean over all of them is the global one."""

    reward_S: Tensor
    """Float64: what the reward step said, less the overlong penalty."""
    groups: Sequence[Hashable]
    """S keys: answers to the same problem have the same."""
    length_S: Tensor
    """Int64: tokens of each that the policy wrote; their sum is N."""
    penalty_N: Tensor
    """Float64: the KL penalty of each token, 0 without `use_kl_in_reward`."""
    value_N: Tensor | None = None
    """Float64: the value model's answer before each token; only with `adv_estimator: gae`."""

    @property
    def score_S(self) -> Tensor:
        """The sum of an answer's token rewards."""
        return self.reward_S - self.sum_tokens(self.penalty_N)

    @property
    def reward_N(self) -> Tensor:
        """The reward of each token: minus its penalty, and the answer's own reward at its last token."""
        reward_N = -self.penalty_N
        last_S = self.length_S.cumsum(0) - 1
        answered_S = self.length_S > 0
        reward_N[last_S[answered_S]] += self.reward_S[answered_S]
        return reward_N

    def sum_tokens(self, value_N: Tensor) -> Tensor:
        """Add up the tokens of each answer; S sums."""
        index_N = torch.arange(len(self.groups)).repeat_interleave(self.length_S)
        return torch.zeros(len(self.groups), dtype=value_N.dtype).index_add_(0, index_N, value_N)

    def spread(self, value_S: Tensor) -> Tensor:
        """Give each token its answer's value; N values."""
        return value_S.repeat_interleave(self.length_S)

    def discounted(self, value_N: Tensor, discount: float) -> Tensor:
        """Within each answer, the sum over later tokens u >= t of discount^(u - t) value_u; N sums."""
        if discount == 0 or not len(value_N):
            return value_N.clone()
        width = int(self.length_S.max())
        # Answers end together, so that one pass from the right serves them all.
        mask_ST = torch.arange(width)[None] >= width - self.length_S[:, None]
        value_ST = torch.zeros(mask_ST.shape, dtype=value_N.dtype).masked_scatter_(mask_ST, value_N)
        if discount == 1:
            value_ST = value_ST.flip(1).cumsum(1).flip(1)
        else:
            for t in range(width - 2, -1, -1):
                value_ST[:, t] += discount * value_ST[:, t + 1]
        return value_ST[mask_ST]
