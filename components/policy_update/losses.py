"""The policy loss, token by token. N response tokens in any order; nothing here knows of batches or ranks."""

from __future__ import annotations

import torch
from torch import Tensor

# exp(20) still fits float32 after the multiplications that follow; verl bounds the log-ratio alike.
_MAX_LOG_RATIO = 20.0


def log_ratio(logp_N: Tensor, old_logp_N: Tensor) -> Tensor:
    """log(p_new / p_old), bounded so that its exponential stays finite."""
    return (logp_N - old_logp_N).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)


def clipped_policy_loss(
    logp_N: Tensor, old_logp_N: Tensor, advantage_N: Tensor, *, clip_low: float, clip_high: float
) -> Tensor:
    """The loss of each token, differentiable in logp_N.

        r = exp(logp - old_logp)
        L = -min(r * A, clip(r, 1 - clip_low, 1 + clip_high) * A)

    Source: PPO, arXiv:1707.06347, eq. 7; the asymmetric bounds: DAPO, arXiv:2503.14476, section 3.1.
    """
    ratio_N = log_ratio(logp_N, old_logp_N).exp()
    clipped_N = ratio_N.clamp(1 - clip_low, 1 + clip_high)
    return -torch.minimum(ratio_N * advantage_N, clipped_N * advantage_N)


def clipped_tokens(
    logp_N: Tensor, old_logp_N: Tensor, advantage_N: Tensor, *, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """Which tokens the lower and the upper bound keep from moving further: two boolean masks of N."""
    ratio_N = log_ratio(logp_N, old_logp_N).exp()
    return (ratio_N < 1 - clip_low) & (advantage_N < 0), (ratio_N > 1 + clip_high) & (advantage_N > 0)


def importance_weights(old_logp_N: Tensor, rollout_logp_N: Tensor, threshold: float) -> Tensor:
    """Truncated importance sampling: min(p_old / p_rollout, threshold), without gradient.

    Corrects for tokens that another engine sampled than the one that computes old_logp_N.
    Source: Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training".
    """
    return log_ratio(old_logp_N, rollout_logp_N).exp().clamp(max=threshold).detach()


def k3_divergence(logp_N: Tensor, sampled_logp_N: Tensor) -> Tensor:
    """A non-negative estimate of KL(sampler || policy), one a token, from tokens that the sampler drew.

        d = logp - sampled_logp;  k3 = exp(d) - d - 1

    Source: J. Schulman, "Approximating KL divergence" (2020).
    """
    d_N = log_ratio(logp_N, sampled_logp_N)
    return d_N.exp() - d_N - 1
