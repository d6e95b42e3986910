"""What public packages compute; see tests/oracles/make_policy_update.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent.parent / "oracles" / "policy_update.json").read_text())
SETTINGS: dict[str, float] = GOLDEN["settings"]
MASK_BT = torch.tensor(GOLDEN["batch"]["mask"]) > 0
LENGTHS = [int(length) for length in MASK_BT.sum(1)]


def real_tokens(matrix: Any) -> Tensor:
    """A golden matrix's real tokens, as the trainer holds them; a number an answer is spread to its tokens."""
    tensor = torch.tensor(matrix)
    return (tensor[:, None].expand_as(MASK_BT) if tensor.ndim == 1 else tensor)[MASK_BT]


def batch(name: str) -> Tensor:
    """A tensor of the golden batch: logp, old, rollout, reference, advantage."""
    return real_tokens(GOLDEN["batch"][name])
