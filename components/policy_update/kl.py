"""Estimates of the divergence between two policies from tokens that one of them drew."""

from __future__ import annotations

from torch import Tensor

_BOUND = 20.0
_LARGEST_K3 = 10.0


def kl_estimate(logp_N: Tensor, reference_logp_N: Tensor, kind: str) -> Tensor:
    """KL(policy || reference), an estimate a token, differentiable in logp_N.

        d = logp - reference_logp
        k1 (kl)           d                          unbiased, may be negative
        abs               |d|
        k2 (mse)          d^2 / 2                    biased, its gradient is that of the divergence
        k3 (low_var_kl)   exp(-d) + d - 1            unbiased, never negative; d within +-20, the result at most 10

    A `+` behind the name keeps the value and takes k2's gradient: the expected gradients of k1 and k3 are not those of
    the divergence.

    Source: J. Schulman, "Approximating KL divergence" (2020); bounds and names are verl's.
    """
    d_N = logp_N - reference_logp_N
    name = kind.removesuffix("+")
    if name in ("kl", "k1"):
        value_N = d_N
    elif name == "abs":
        value_N = d_N.abs()
    elif name in ("mse", "k2"):
        value_N = 0.5 * d_N.square()
    elif name in ("low_var_kl", "k3"):
        bounded_N = d_N.clamp(-_BOUND, _BOUND)
        value_N = ((-bounded_N).exp() + bounded_N - 1).clamp(max=_LARGEST_K3)
    else:
        raise ValueError(f"{kind}: no estimator of the divergence")
    if not kind.endswith("+"):
        return value_N
    gradient_N = 0.5 * d_N.square()
    return gradient_N - gradient_N.detach() + value_N.detach()


def mismatch_k3(trainer_logp_N: Tensor, rollout_logp_N: Tensor) -> Tensor:
    """KL(rollout engine || trainer), a never negative estimate a token, from tokens that the rollout engine drew.

    d = trainer_logp - rollout_logp; k3 = exp(d) - d - 1, with d within +-20 and no other bound: large values are the
    news.
    """
    d_N = (trainer_logp_N - rollout_logp_N).clamp(-_BOUND, _BOUND)
    return d_N.exp() - d_N - 1
