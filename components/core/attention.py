"""Attention that shares key-value heads without copying them, for engines and trainers on a CPU.

transformers' own `sdpa` repeats the key-value heads in memory whenever there is a mask, which takes most of the time
of a decoding step here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

NAME = "sdpa_grouped"


def sdpa_grouped(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Scaled dot-product attention; query (B, H, Q, D), key and value (B, H / groups, T, D), result (B, Q, H, D)."""
    output = functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        dropout_p=dropout,
        scale=scaling,
        is_causal=attention_mask is None and query.shape[2] > 1,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return output.transpose(1, 2).contiguous(), None


def register() -> str:
    """Make it known to transformers; returns the name for `attn_implementation=`."""
    AttentionInterface.register(NAME, sdpa_grouped)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME
