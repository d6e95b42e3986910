"""The policy loss, token by token; nothing here knows of batches or ranks.

A loss is a function of N tokens and the configuration. It returns the loss of each token, and masks whose means are
logged. Yours is one such function, named in the profile: `policy_update.loss_mode=my.module:name`; see README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from components.core.plugin import load_function
from components.core.update_config import PolicyUpdateConfig

# exp(20) still fits float32 after the multiplications that follow; verl bounds the log-ratio alike.
_MAX_LOG_RATIO = 20.0


@dataclass(frozen=True)
class Tokens:
    """N response tokens of whole answers, one behind the other."""

    logp_N: Tensor
    """Under the weights that are trained; the loss is differentiable in it."""
    old_logp_N: Tensor
    """The ratio's denominator."""
    advantage_N: Tensor
    length_S: Sequence[int]
    """Tokens of each answer; their sum is N."""


PolicyLoss = Callable[[Tokens, PolicyUpdateConfig], tuple[Tensor, dict[str, Tensor]]]


def log_ratio(logp_N: Tensor, old_logp_N: Tensor) -> Tensor:
    """log(p_new / p_old), bounded so that its exponential stays finite."""
    return (logp_N - old_logp_N).clamp(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)


def clipped_policy_loss(
    logp_N: Tensor,
    old_logp_N: Tensor,
    advantage_N: Tensor,
    *,
    clip_low: float,
    clip_high: float,
    dual: float | None = None,
) -> Tensor:
    """The loss of each token, differentiable in logp_N.

        r = exp(logp - old_logp)
        L = -min(r * A, clip(r, 1 - clip_low, 1 + clip_high) * A)
        L =  min(L, -dual * A)                      where A < 0, with `dual`

    Source: PPO, arXiv:1707.06347, eq. 7; the asymmetric bounds: DAPO, arXiv:2503.14476, section 3.1; the dual clip:
    arXiv:1912.09729, eq. 5.
    """
    ratio_N = log_ratio(logp_N, old_logp_N).exp()
    clipped_N = ratio_N.clamp(1 - clip_low, 1 + clip_high)
    loss_N = -torch.minimum(ratio_N * advantage_N, clipped_N * advantage_N)
    if dual is None:
        return loss_N
    return torch.where(advantage_N < 0, torch.minimum(loss_N, -dual * advantage_N), loss_N)


def clipped_tokens(
    logp_N: Tensor, old_logp_N: Tensor, advantage_N: Tensor, *, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """Which tokens the lower and the upper bound keep from moving further: two boolean masks of N."""
    return _held(log_ratio(logp_N, old_logp_N).exp(), advantage_N, clip_low, clip_high)


def _held(ratio_N: Tensor, advantage_N: Tensor, clip_low: float, clip_high: float) -> tuple[Tensor, Tensor]:
    return (ratio_N < 1 - clip_low) & (advantage_N < 0), (ratio_N > 1 + clip_high) & (advantage_N > 0)


def _fractions(low_N: Tensor, high_N: Tensor, dual_N: Tensor | None = None) -> dict[str, Tensor]:
    result = {
        "actor/pg_clipfrac": low_N | high_N,
        "actor/pg_clipfrac_low": low_N,
        "actor/pg_clipfrac_high": high_N,
    }
    return result if dual_N is None else {**result, "actor/pg_clipfrac_lower": dual_N}


def vanilla(tokens: Tokens, config: PolicyUpdateConfig) -> tuple[Tensor, dict[str, Tensor]]:
    """PPO's clipped loss; see `clipped_policy_loss`. `pg_clipfrac_lower` is verl's name for the dual clip."""
    logp_N, old_N, advantage_N = tokens.logp_N, tokens.old_logp_N, tokens.advantage_N
    low, high, dual = config.clip_ratio_low, config.clip_ratio_high, config.clip_ratio_c
    loss_N = clipped_policy_loss(logp_N, old_N, advantage_N, clip_low=low, clip_high=high, dual=dual)
    ratio_N = log_ratio(logp_N.detach(), old_N).exp()
    masks = _held(ratio_N, advantage_N, low, high)
    return loss_N, _fractions(*masks, None if dual is None else (ratio_N > dual) & (advantage_N < 0))


def gspo(tokens: Tokens, config: PolicyUpdateConfig) -> tuple[Tensor, dict[str, Tensor]]:
    """One ratio an answer, the geometric mean of its tokens' ratios; the gradient is each token's own.

        s_t = sg[exp(mean_u (logp_u - old_u))] * exp(logp_t - sg[logp_t])
        L   = -min(s_t * A, clip(s_t, 1 - clip_low, 1 + clip_high) * A)

    Source: arXiv:2507.18071, eq. 14 (GSPO-token, which with one advantage an answer equals GSPO).
    """
    logp_N, advantage_N = tokens.logp_N, tokens.advantage_N
    distance_N = (logp_N - tokens.old_logp_N).detach()
    # Answer by answer and not by index_add: on a GPU that adds in any order, and a resumed run would differ.
    mean_N = torch.cat([part.mean().expand_as(part) for part in distance_N.split(list(tokens.length_S))])
    ratio_N = (logp_N - logp_N.detach() + mean_N).clamp(max=10.0).exp()
    low, high = config.clip_ratio_low, config.clip_ratio_high
    clipped_N = ratio_N.clamp(1 - low, 1 + high)
    loss_N = -torch.minimum(ratio_N * advantage_N, clipped_N * advantage_N)
    return loss_N, _fractions(*_held(ratio_N.detach(), advantage_N, low, high))


def cispo(tokens: Tokens, config: PolicyUpdateConfig) -> tuple[Tensor, dict[str, Tensor]]:
    """The ratio is clipped but never stops a gradient: L = -sg[clip(r, 1 - clip_low, 1 + clip_high)] * A * logp.

    The bounds are verl's; others clip above only, and name the bound itself (TRL's `epsilon_high`).
    Source: MiniMax-M1, arXiv:2506.13585, eq. 4.
    """
    ratio_N = log_ratio(tokens.logp_N.detach(), tokens.old_logp_N).exp()
    low, high = config.clip_ratio_low, config.clip_ratio_high
    loss_N = -ratio_N.clamp(1 - low, 1 + high) * tokens.advantage_N * tokens.logp_N
    return loss_N, _fractions(ratio_N < 1 - low, ratio_N > 1 + high)


LOSSES: dict[str, PolicyLoss] = {"vanilla": vanilla, "gspo": gspo, "cispo": cispo}


def policy_loss(name: str) -> PolicyLoss:
    """The loss of a configured name.

    Raises:
        UserError: there is no such loss.
    """
    return LOSSES.get(name) or load_function(name, "policy_update.loss_mode")


def token_weights(length_S: Sequence[int], mode: str, *, scale: float) -> list[float]:
    """What one token of each answer weighs in the loss: every mode is then one plain sum, however it is split.

    Args:
        length_S: tokens of every answer of the mini-batch that is in the loss, over all ranks.
        mode: token-mean: 1 / tokens; seq-mean-token-sum: 1 / answers; seq-mean-token-sum-norm: 1 / (answers * scale);
            seq-mean-token-mean: 1 / (answers * the answer's tokens). Answers without a token do not count.
        scale: the constant of seq-mean-token-sum-norm.

    Returns:
        S weights; 0 for an answer without a token.

    Source: verl's `agg_loss`; DAPO, arXiv:2503.14476, eq. 12; Dr. GRPO, arXiv:2503.20783, section 3.2.
    """
    tokens, answers = sum(length_S), sum(length > 0 for length in length_S)
    divisors: dict[str, Callable[[int], float]] = {
        "token-mean": lambda length: tokens,
        "seq-mean-token-sum": lambda length: answers,
        "seq-mean-token-sum-norm": lambda length: answers * scale,
        "seq-mean-token-mean": lambda length: answers * length,
    }
    divisor = divisors[mode]
    return [1.0 / divisor(length) if length else 0.0 for length in length_S]


def value_loss(value_N: Tensor, old_value_N: Tensor, return_N: Tensor, *, clip: float) -> tuple[Tensor, Tensor]:
    """The value model's loss of each token, and which tokens its clip holds.

        L = 1/2 max((V - R)^2, (clip(V, V_old - clip, V_old + clip) - R)^2)

    Source: PPO's reference code (openai/baselines, ppo2/model.py); verl's `compute_value_loss`.
    """
    clipped_N = torch.maximum(torch.minimum(value_N, old_value_N + clip), old_value_N - clip)
    plain_N, held_N = (value_N - return_N).square(), (clipped_N - return_N).square()
    return 0.5 * torch.maximum(plain_N, held_N), held_N.detach() > plain_N.detach()


def importance_weights(old_logp_N: Tensor, rollout_logp_N: Tensor, threshold: float) -> Tensor:
    """Truncated importance sampling: min(p_old / p_rollout, threshold), without gradient.

    Corrects for tokens that another engine sampled than the one that computes old_logp_N.
    Source: Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training".
    """
    return log_ratio(old_logp_N, rollout_logp_N).exp().clamp(max=threshold).detach()
