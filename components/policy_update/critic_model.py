"""The value model: the policy's transformer with a head of one number a token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from components.policy_update.packing import Packing
from components.policy_update.parallel import token_states, whole


class _ValueHead(nn.Module):
    """A linear head in float32; it shares the parameters of the model's own."""

    def __init__(self, score: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = score.weight, score.bias

    def forward(self, hidden_NH: Tensor) -> Tensor:
        # bfloat16 would round a value near 1 to steps of 1/128.
        return nn.functional.linear(hidden_NH.float(), self.weight.float(), self.bias.float()).squeeze(-1)


class TokenValues(nn.Module):
    """A token classifier of one class that answers with the value of the state before each chosen token."""

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.policy = policy
        self.head = _ValueHead(policy.score)

    def forward(
        self,
        input_1T: Tensor,
        position_1T: Tensor,
        packing: Packing,
        source_N: Tensor,
        target_N: Tensor,
        temperature_N: Tensor,
    ) -> tuple[Tensor]:
        """See MicroBatch for the arguments; the last two do not matter here. Returns N values in float32."""
        hidden_MH, own_M = token_states(self.policy, input_1T, position_1T, packing, source_N)
        return (whole(self.head(hidden_MH), own_M, len(source_N)),)


def make_critic(policy: Path, target: Path) -> None:
    """Write a value model that starts as the policy with a head of zeros, so that its first values are all 0.

    Args:
        policy: the policy's HF directory.
        target: the HF directory to write; the model's weights keep their dtype.
    """
    from transformers import AutoModelForTokenClassification
    from transformers.utils import logging as hf_logging

    verbosity = hf_logging.get_verbosity()
    hf_logging.set_verbosity_error()  # it would tell that the language-model head is not used and the new one is
    try:
        model = AutoModelForTokenClassification.from_pretrained(
            policy, num_labels=1, dtype="auto", local_files_only=True
        )
    finally:
        hf_logging.set_verbosity(verbosity)
    with torch.no_grad():
        model.score.weight.zero_()
        model.score.bias.zero_()
    model.save_pretrained(target)
