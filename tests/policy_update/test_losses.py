from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from components.core.errors import UserError
from components.core.update_config import LOSS_MODES, Divergence, PolicyUpdateConfig
from components.policy_update.kl import kl_estimate, mismatch_k3
from components.policy_update.losses import (
    LOSSES,
    Tokens,
    clipped_policy_loss,
    clipped_tokens,
    importance_weights,
    policy_loss,
    token_weights,
    value_loss,
)
from tests.policy_update.golden import GOLDEN, LENGTHS, SETTINGS, batch, real_tokens

CLIP = {"clip_low": SETTINGS["clip_low"], "clip_high": SETTINGS["clip_high"]}
# Golden cases that are another loss by configuration. TRL's cispo has no lower bound.
LOSS_OF = {"dual": "vanilla", "kl_loss": "vanilla", "cispo_above": "cispo", "sapo": "my_loss:sapo"}
MODES = get_args(PolicyUpdateConfig.model_fields["loss_agg_mode"].annotation)


def settings(name: str) -> PolicyUpdateConfig:
    return PolicyUpdateConfig(
        loss_mode=LOSS_OF.get(name, name),
        clip_ratio_low=0.999 if name == "cispo_above" else SETTINGS["clip_low"],
        clip_ratio_high=SETTINGS["clip_high"],
        clip_ratio_c=SETTINGS["dual"] if name == "dual" else None,
    )


def spread_weights(mode: str) -> Tensor:
    weights = token_weights(LENGTHS, mode, scale=SETTINGS["scale"])
    return torch.tensor(weights).repeat_interleave(torch.tensor(LENGTHS))


def loss_and_grad(case: str) -> tuple[float, Tensor, dict[str, Tensor]]:
    """A golden case, `loss/aggregation` or `loss/weighted`, as the trainer computes it."""
    name, mode = case.split("/")[:2]
    logp_N = batch("logp").requires_grad_()
    config = settings(name)
    loss_N, masks = policy_loss(config.loss_mode)(Tokens(logp_N, batch("old"), batch("advantage"), LENGTHS), config)
    if mode == "weighted":
        loss_N = loss_N * importance_weights(batch("old"), batch("rollout"), SETTINGS["threshold"])
    if name == "kl_loss":
        loss_N = loss_N + SETTINGS["beta"] * kl_estimate(logp_N, batch("reference"), "k3")
    loss = (loss_N * spread_weights("token-mean" if mode == "weighted" else mode)).sum()
    (grad_N,) = torch.autograd.grad(loss, logp_N)
    return loss.item(), grad_N, masks


@pytest.mark.usefixtures("readmes_functions")
@pytest.mark.parametrize(
    ("package", "case"), [(package, case) for package in ("verl", "liger", "trl") for case in GOLDEN[package]]
)
def test_loss_and_gradient_equal_public_packages(package: str, case: str) -> None:
    expected: dict[str, Any] = GOLDEN[package][case]
    loss, grad_N, masks = loss_and_grad(case)
    assert loss == pytest.approx(expected["loss"], abs=1e-6, rel=1e-6)
    torch.testing.assert_close(grad_N, real_tokens(expected["grad"]), atol=1e-6, rtol=1e-6)
    plain = GOLDEN["verl"]["vanilla/token-mean"]["loss"]
    assert case.startswith("vanilla/token-mean") or abs(expected["loss"] - plain) > 1e-3
    for name, mask_N in masks.items():
        if name in expected:
            assert mask_N.double().mean().item() == pytest.approx(expected[name], abs=1e-6)
        # Some tokens take the branch, and some do not.
        assert 0 < mask_N.double().mean() < 1 or (case.startswith("cispo_above") and name == "actor/pg_clipfrac_low")


@pytest.mark.parametrize("name", ["vanilla", "dual", "gspo", "cispo"])
def test_the_golden_batch_reaches_every_branch(name: str) -> None:
    assert {f"{name}/{mode}" for mode in (*MODES, "weighted")} <= set(GOLDEN["verl"])
    masks = loss_and_grad(f"{name}/token-mean")[2]
    for mask_N in masks.values():
        assert mask_N.any()
        assert not mask_N.all()
    assert ("actor/pg_clipfrac_lower" in masks) == (name == "dual")
    weight_N = importance_weights(batch("old"), batch("rollout"), SETTINGS["threshold"])
    assert (weight_N == SETTINGS["threshold"]).any()
    assert (weight_N < 1).any()
    assert (batch("advantage") == 0).any()


def test_the_golden_numbers_are_of_the_versions_that_are_pinned() -> None:
    root = Path(__file__).parents[2]
    text = (root / "requirements-no-deps.txt").read_text() + (root / "benchmarks" / "requirements.txt").read_text()
    for package in ("liger-kernel", "trl"):
        pinned = re.search(rf"^{package}==(\S+)", text, re.MULTILINE)
        assert pinned is not None
        assert GOLDEN["versions"][package.replace("-", "_")] == pinned[1]


def test_every_named_loss_is_there() -> None:
    assert set(LOSSES) == set(LOSS_MODES)


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


def test_the_dual_clip_bounds_what_a_bad_token_can_cost() -> None:
    # Ratio 5: without it 5 * 2; with it 3 * 2 and no gradient. A good token is not concerned.
    logp_N = torch.tensor([5.0, 5.0, 2.0]).log().requires_grad_()
    advantage_N = torch.tensor([-2.0, 2.0, -2.0])
    loss_N = clipped_policy_loss(logp_N, torch.zeros(3), advantage_N, clip_low=0.2, clip_high=0.28, dual=3.0)
    assert loss_N.tolist() == pytest.approx([6.0, -2.56, 4.0])
    loss_N.sum().backward()
    assert logp_N.grad is not None
    assert logp_N.grad.tolist() == pytest.approx([0.0, 0.0, 4.0])


def test_clip_higher_is_applied_above_and_not_below() -> None:
    logp_N = torch.tensor([1.25, 0.79]).log()
    low_N, high_N = clipped_tokens(logp_N, torch.zeros(2), torch.tensor([1.0, -1.0]), clip_low=0.2, clip_high=0.28)
    assert high_N.tolist() == [False, False]
    assert low_N.tolist() == [False, True]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("token-mean", [1 / 8, 1 / 8, 0.0]),
        ("seq-mean-token-sum", [1 / 2, 1 / 2, 0.0]),
        ("seq-mean-token-sum-norm", [1 / 20, 1 / 20, 0.0]),
        ("seq-mean-token-mean", [1 / 4, 1 / 12, 0.0]),
    ],
)
def test_token_weights_by_hand(mode: str, expected: list[float]) -> None:
    assert token_weights([2, 6, 0], mode, scale=10) == pytest.approx(expected)


@pytest.mark.parametrize("mode", MODES)
def test_without_a_token_no_mode_divides_by_zero(mode: str) -> None:
    assert token_weights([], mode, scale=10) == []
    assert token_weights([0, 0], mode, scale=10) == [0.0, 0.0]


@pytest.mark.parametrize("mode", MODES)
def test_value_loss_equals_verl(mode: str) -> None:
    golden = GOLDEN["values"]
    value_N = real_tokens(golden["value"]).requires_grad_()
    loss_N, held_N = value_loss(
        value_N, real_tokens(golden["old"]), real_tokens(golden["return"]), clip=SETTINGS["value_clip"]
    )
    loss = (loss_N * spread_weights(mode)).sum()
    (grad_N,) = torch.autograd.grad(loss, value_N)
    assert loss.item() == pytest.approx(golden[mode]["loss"], abs=1e-6, rel=1e-6)
    torch.testing.assert_close(grad_N, real_tokens(golden[mode]["grad"]), atol=1e-6, rtol=1e-6)
    assert 0 < held_N.double().mean().item() < 1
    assert held_N.double().mean().item() == pytest.approx(golden[mode]["vf_clipfrac"], abs=1e-6)


@pytest.mark.parametrize("kind", ["kl", "abs", "mse", "low_var_kl", "k1+", "k3+"])
def test_divergence_equals_verl(kind: str) -> None:
    golden = GOLDEN["divergences"]
    logp_BT = torch.tensor(GOLDEN["batch"]["logp"], requires_grad=True)
    value_BT = kl_estimate(logp_BT, torch.tensor(golden["reference"]), kind)
    torch.testing.assert_close(value_BT, torch.tensor(golden[kind]["value"]), atol=1e-6, rtol=1e-6)
    (grad_BT,) = torch.autograd.grad(value_BT.sum(), logp_BT)
    torch.testing.assert_close(grad_BT, torch.tensor(golden[kind]["grad"]), atol=1e-6, rtol=1e-6)
    if kind.startswith(("low_var", "k3")):
        assert value_BT.max() == 10  # the bound on the result bites where the policies are far apart


@pytest.mark.parametrize(("one", "other"), [("kl", "k1"), ("mse", "k2"), ("low_var_kl", "k3"), ("kl+", "k1+")])
def test_both_names_of_an_estimator_mean_the_same(one: str, other: str) -> None:
    logp_N, reference_N = batch("logp"), batch("reference")
    assert torch.equal(kl_estimate(logp_N, reference_N, one), kl_estimate(logp_N, reference_N, other))


def test_every_configurable_divergence_is_there() -> None:
    for kind in get_args(Divergence):
        assert kl_estimate(torch.zeros(1), torch.ones(1), kind).shape == (1,)


def test_mismatch_equals_verl_and_is_never_negative() -> None:
    k3_BT = mismatch_k3(torch.tensor(GOLDEN["batch"]["old"]), torch.tensor(GOLDEN["batch"]["rollout"]))
    torch.testing.assert_close(k3_BT, torch.tensor(GOLDEN["divergences"]["mismatch_k3"]), atol=1e-6, rtol=1e-6)
    assert k3_BT.min() >= 0


@pytest.mark.parametrize("kind", ["k1", "k3"])
def test_the_mean_of_an_unbiased_estimate_is_the_divergence(kind: str) -> None:
    p, q = torch.tensor([0.7, 0.2, 0.1]).double(), torch.tensor([0.5, 0.3, 0.2]).double()
    exact = (p * (p / q).log()).sum().item()
    assert (p * kl_estimate(p.log(), q.log(), kind)).sum().item() == pytest.approx(exact)
    assert (p * mismatch_k3(q.log(), p.log())).sum().item() == pytest.approx(exact)


@pytest.mark.parametrize(("kind", "right"), [("k1", False), ("k2", True), ("k3", False), ("k3+", True)])
def test_which_estimates_have_the_gradient_of_the_divergence(kind: str, right: bool) -> None:
    z_V = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    logp_V, logq_V = z_V.log_softmax(0), torch.tensor([0.5, 0.3, 0.2]).double().log()
    p_V = logp_V.exp()
    (exact_V,) = torch.autograd.grad((p_V * (logp_V - logq_V)).sum(), z_V, retain_graph=True)
    (grad_V,) = torch.autograd.grad((p_V.detach() * kl_estimate(logp_V, logq_V, kind)).sum(), z_V)
    assert torch.allclose(grad_V, exact_V) == right


def test_importance_weights_are_truncated_and_carry_no_gradient() -> None:
    old_N = torch.tensor([0.0, math.log(3.0), math.log(0.5)], requires_grad=True)
    weight_N = importance_weights(old_N, torch.zeros(3), 2.0)
    assert weight_N.tolist() == pytest.approx([1.0, 2.0, 0.5])
    assert not weight_N.requires_grad


@pytest.mark.parametrize("name", LOSS_MODES)
def test_an_impossible_token_stays_finite(name: str) -> None:
    logp_N = torch.tensor([-1e4, 0.0], requires_grad=True)
    tokens = Tokens(logp_N, torch.tensor([0.0, -1e4]), torch.tensor([-1.0, -1.0]), [1, 1])
    loss_N, _ = LOSSES[name](tokens, settings(name))
    loss_N.sum().backward()
    assert loss_N.isfinite().all()
    assert logp_N.grad is not None
    assert logp_N.grad.isfinite().all()


def test_a_loss_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match=r"policy_update.loss_mode=components.policy_update.losses:nothing"):
        policy_loss("components.policy_update.losses:nothing")
