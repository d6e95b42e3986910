"""The value model: the policy's transformer with a head of one number a token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


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
        input_BT: Tensor,
        position_BT: Tensor | None,
        mask_B1TT: Tensor | None,
        source_N: Tensor,
        target_N: Tensor,
        temperature_N: Tensor,
    ) -> tuple[Tensor]:
        """See MicroBatch for the arguments; the last two do not matter here. Returns N values in float32."""
        hidden_BTH = self.policy.base_model(
            input_ids=input_BT, position_ids=position_BT, attention_mask=mask_B1TT, use_cache=False
        ).last_hidden_state
        return (self.head(hidden_BTH.flatten(0, 1)[source_N]),)


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
