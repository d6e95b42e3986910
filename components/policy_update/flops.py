"""How many floating-point operations a training step needs, and what the device could do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

# Dense bfloat16 TFLOP/s of the data sheets, SXM boards.
_PEAK_TFLOPS = {"B200": 2250.0, "H200": 989.0, "H100": 989.0, "A100": 312.0, "L40S": 362.0}


def training_flops(policy: Any, lengths: Iterable[int]) -> float:
    """Forward and backward over whole sequences, without what activation checkpointing computes again.

        (2 N + 4 N_trained) T + 12 L H T^2 a sequence

    N counts the weights that a token is multiplied with, H is heads times head size, L the layers; the second term is
    attention's, as if it were not causal. That is the convention of PaLM, arXiv:2204.02311, appendix B, and of verl,
    so the numbers can be compared.

    Args:
        policy: a transformers causal language model.
        lengths: tokens of each sequence.
    """
    config = policy.config
    embedding = policy.get_input_embeddings().weight
    tied = policy.get_output_embeddings().weight is embedding
    # ZeRO-3 leaves a rank without most of a parameter, but knows its shape.
    shapes = [(p, getattr(p, "ds_shape", p.shape)) for p in policy.parameters() if tied or p is not embedding]
    weights = [(p.requires_grad, math.prod(shape)) for p, shape in shapes if len(shape) > 1]
    every, trained = sum(size for _, size in weights), sum(size for grad, size in weights if grad)
    heads = config.num_attention_heads
    width = heads * (getattr(config, "head_dim", None) or config.hidden_size // heads)
    attention = 12 * config.num_hidden_layers * width
    return float(sum((2 * every + 4 * trained) * length + attention * length**2 for length in lengths))


def peak_tflops(configured: float | None) -> float | None:
    """The configured peak of one device, else a known GPU's, else None."""
    if configured is not None or not torch.cuda.is_available():
        return configured
    name = torch.cuda.get_device_name()
    return next((peak for known, peak in _PEAK_TFLOPS.items() if known in name), None)
