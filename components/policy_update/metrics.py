"""What an update reports, under verl's names."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from components.policy_update.engine import total
from components.policy_update.kl import mismatch_k3
from components.policy_update.losses import log_ratio
from components.policy_update.rollout_io import Sample


def batch_metrics(samples: Sequence[Sample]) -> dict[str, float]:
    """Rewards and lengths of the samples of one mini-batch."""
    groups: dict[tuple[str, str], list[float]] = {}
    for sample in samples:
        if sample.reward is not None:
            groups.setdefault(sample.group, []).append(sample.reward)
    reward_S = torch.tensor([reward for rewards in groups.values() for reward in rewards], dtype=torch.float64)
    length_S = torch.tensor([len(sample.response_ids) for sample in samples], dtype=torch.float64)
    none = sum(max(rewards) <= 0 for rewards in groups.values())
    solved = sum(min(rewards) >= 1 for rewards in groups.values())
    return {
        "critic/score/mean": float(reward_S.mean()),
        "critic/score/max": float(reward_S.max()),
        "critic/score/min": float(reward_S.min()),
        "critic/rewards/std": float(reward_S.std(correction=0)),
        "batch/solve_none": float(none),
        "batch/solve_all": float(solved),
        "batch/solve_partial": float(len(groups) - none - solved),
        "batch/frac_reward_zero_std": sum(min(r) == max(r) for r in groups.values()) / len(groups),
        "response_length/mean": float(length_S.mean()),
        "response_length/max": float(length_S.max()),
        "response_length/min": float(length_S.min()),
        "response_length/clip_ratio": sum(sample.truncated for sample in samples) / len(samples),
    }


class TokenSums:
    """Sums over the trained tokens of one mini-batch, over micro-batches and ranks."""

    _NAMES = ("tokens", "entropy", "kl", "clip_low", "clip_high", "k3", "ratio", "gap", "weight")

    def __init__(self, device: torch.device) -> None:
        # gloo and NCCL both reduce float64, in which thousands of tokens add up without loss.
        self._sums = torch.zeros(len(self._NAMES), dtype=torch.float64, device=device)
        self._largest = torch.zeros(2, dtype=torch.float64, device=device)

    @torch.no_grad()
    def add(
        self,
        *,
        logp_N: Tensor,
        old_N: Tensor,
        generated_N: Tensor,
        start_N: Tensor,
        entropy_N: Tensor,
        weight_N: Tensor,
        low_N: Tensor,
        high_N: Tensor,
    ) -> None:
        """Add one micro-batch.

        Args:
            logp_N: under the weights of this moment.
            old_N: the ratio's denominator.
            generated_N: what the rollout engine said.
            start_N: the trainer's value for the policy before this update, which `generated_N` is compared with.
            entropy_N: of the distributions.
            weight_N: the importance weights.
            low_N: tokens that the lower bound clips.
            high_N: tokens that the upper bound clips.
        """
        drift_N = log_ratio(start_N, generated_N)
        parts = [
            torch.ones_like(logp_N),
            entropy_N,
            old_N - logp_N,
            low_N,
            high_N,
            mismatch_k3(start_N, generated_N),
            drift_N.exp(),
            drift_N.abs(),
            weight_N,
        ]
        self._sums += torch.stack([part.double().sum() for part in parts])
        largest = torch.stack([drift_N.exp().max(), drift_N.abs().max()]).double()
        self._largest = torch.maximum(self._largest, largest)

    def metrics(self, *, mismatch: bool) -> dict[str, float]:
        """Means a token; a collective. `mismatch`: with the comparison of the two engines."""
        sums = dict(zip(self._NAMES, total(self._sums).tolist(), strict=True))
        largest = total(self._largest, dist.ReduceOp.MAX).tolist()
        count = max(sums["tokens"], 1.0)
        mean = {name: value / count for name, value in sums.items()}
        values = {
            "actor/entropy": mean["entropy"],
            "actor/ppo_kl": mean["kl"],
            "actor/pg_clipfrac": mean["clip_low"] + mean["clip_high"],
            "actor/pg_clipfrac_low": mean["clip_low"],
            "actor/pg_clipfrac_high": mean["clip_high"],
        }
        if not mismatch:
            return values
        return {
            **values,
            "sampling/mismatch_k3_kl": mean["k3"],
            "sampling/importance_sampling_ratio/mean": mean["ratio"],
            "sampling/importance_sampling_ratio/max": largest[0],
            "sampling/importance_weight_mean": mean["weight"],
            "sampling/sampling_logp_difference/mean": mean["gap"],
            "sampling/sampling_logp_difference/max": largest[1],
        }


def peak_memory_gb() -> float:
    """The largest resident size that this process has had; on a GPU the largest allocation there."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def over_steps(points: Sequence[dict[str, float]]) -> dict[str, float]:
    """Each metric's mean over those steps that have it; of extremes, the most extreme."""
    names = dict.fromkeys(name for point in points for name in point)
    result = {}
    for name in names:
        values = [point[name] for point in points if name in point]
        if name.endswith("/max") or name == "perf/max_memory_gb":
            result[name] = max(values)
        elif name.endswith("/min"):
            result[name] = min(values)
        else:
            result[name] = sum(values) / len(values)
    return result
