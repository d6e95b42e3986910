from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from components.policy_update.kl import mismatch_k3
from components.policy_update.losses import clipped_policy_loss, clipped_tokens, importance_weights

GOLDEN = json.loads((Path(__file__).parent.parent / "oracles" / "policy_update.json").read_text())["losses"]
CLIP = {"clip_low": GOLDEN["clip_low"], "clip_high": GOLDEN["clip_high"]}


def golden(name: str) -> Tensor:
    """The golden matrix's real tokens, one behind the other, as the trainer holds them."""
    mask_BT = torch.tensor(GOLDEN["mask"]) > 0
    tensor = torch.tensor(GOLDEN[name])
    return (tensor[:, None].expand_as(mask_BT) if tensor.ndim == 1 else tensor)[mask_BT]


def loss_and_grad(*, weighted: bool) -> tuple[float, Tensor]:
    logp_N = golden("logp").requires_grad_()
    loss_N = clipped_policy_loss(logp_N, golden("old"), golden("advantage"), **CLIP)
    if weighted:
        loss_N = loss_N * importance_weights(golden("old"), golden("rollout"), GOLDEN["threshold"])
    loss = loss_N.sum() / len(loss_N)
    (grad_N,) = torch.autograd.grad(loss, logp_N)
    return loss.item(), grad_N


def test_loss_and_gradient_by_hand() -> None:
    # Ratios 1.5, 1.5, 0.5, 0.5, 1 with bounds 0.8 and 1.28. A token beyond its bound adds the bound and no gradient;
    # one that moves back towards it is not held: A < 0 at 1.5, A > 0 at 0.5.
    logp_N = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.0], dtype=torch.float64).log().requires_grad_()
    advantage_N = torch.tensor([2.0, -2.0, 2.0, -2.0, 3.0], dtype=torch.float64)
    loss_N = clipped_policy_loss(logp_N, torch.zeros(5, dtype=torch.float64), advantage_N, clip_low=0.2, clip_high=0.28)
    assert loss_N.tolist() == pytest.approx([-2.56, 3.0, -1.0, 1.6, -3.0])
    loss_N.sum().backward()
    assert logp_N.grad is not None
    assert logp_N.grad.tolist() == pytest.approx([0.0, 3.0, -1.0, 0.0, -3.0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("package", ["verl", "liger"])
def test_loss_and_gradient_equal_public_packages(package: str, weighted: bool) -> None:
    expected: dict[str, Any] = GOLDEN[f"{package}_{'weighted' if weighted else 'plain'}"]
    loss, grad_N = loss_and_grad(weighted=weighted)
    assert loss == pytest.approx(expected["loss"], abs=1e-6)
    mask_BT = torch.tensor(GOLDEN["mask"]) > 0
    torch.testing.assert_close(grad_N, torch.tensor(expected["grad"])[mask_BT], atol=1e-6, rtol=0)


def test_the_golden_batch_reaches_every_branch() -> None:
    low_N, high_N = clipped_tokens(golden("logp"), golden("old"), golden("advantage"), **CLIP)
    assert low_N.any()
    assert high_N.any()
    weight_N = importance_weights(golden("old"), golden("rollout"), GOLDEN["threshold"])
    assert (weight_N == GOLDEN["threshold"]).any()
    assert (weight_N < 1).any()
    clipped = (low_N | high_N).double().mean().item()
    assert clipped == pytest.approx(GOLDEN["verl_plain"]["actor/pg_clipfrac"])


def test_clip_higher_is_applied_above_and_not_below() -> None:
    logp_N = torch.tensor([1.25, 0.79]).log()
    low_N, high_N = clipped_tokens(logp_N, torch.zeros(2), torch.tensor([1.0, -1.0]), clip_low=0.2, clip_high=0.28)
    assert high_N.tolist() == [False, False]
    assert low_N.tolist() == [False, True]


def test_k3_equals_verl_and_is_never_negative() -> None:
    k3_BT = mismatch_k3(torch.tensor(GOLDEN["old"]), torch.tensor(GOLDEN["rollout"]))
    torch.testing.assert_close(k3_BT, torch.tensor(GOLDEN["verl_k3"]), atol=1e-6, rtol=0)
    assert k3_BT.min() >= 0


def test_the_mean_of_k3_is_the_divergence() -> None:
    p, q = torch.tensor([0.7, 0.2, 0.1]).double(), torch.tensor([0.5, 0.3, 0.2]).double()
    exact = (p * (p / q).log()).sum().item()
    assert (p * mismatch_k3(q.log(), p.log())).sum().item() == pytest.approx(exact)


def test_importance_weights_are_truncated_and_carry_no_gradient() -> None:
    old_N = torch.tensor([0.0, math.log(3.0), math.log(0.5)], requires_grad=True)
    weight_N = importance_weights(old_N, torch.zeros(3), 2.0)
    assert weight_N.tolist() == pytest.approx([1.0, 2.0, 0.5])
    assert not weight_N.requires_grad


def test_an_impossible_token_stays_finite() -> None:
    logp_N = torch.tensor([-1e30, 0.0], requires_grad=True)
    loss_N = clipped_policy_loss(logp_N, torch.tensor([0.0, -1e30]), torch.tensor([-1.0, -1.0]), **CLIP)
    loss_N.sum().backward()
    assert loss_N.isfinite().all()
    assert logp_N.grad is not None
    assert logp_N.grad.isfinite().all()
