"""What an update reports, under verl's names."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from components.core.statistics import pass_at_k
from components.policy_update.job import Job
from components.policy_update.kl import mismatch_k3
from components.policy_update.losses import log_ratio
from components.policy_update.parallel import gather_objects
from components.policy_update.rollout_io import Sample


def batch_metrics(samples: Sequence[Sample], pass_k: int) -> dict[str, float]:
    """Rewards and lengths of samples that have been scored; `pass_k` is the k of pass@k."""
    groups: dict[tuple[str, str], list[float]] = {}
    for sample in samples:
        if sample.reward is not None:
            groups.setdefault(sample.group, []).append(sample.reward)
    reward_S = torch.tensor([reward for rewards in groups.values() for reward in rewards], dtype=torch.float64)
    length_S = torch.tensor([len(sample.response_ids) for sample in samples], dtype=torch.float64)
    none = sum(max(rewards) <= 0 for rewards in groups.values())
    solved = sum(min(rewards) >= 1 for rewards in groups.values())
    values = {
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
    ended = [len(sample.response_ids) for sample in samples if not sample.truncated]
    if ended:
        values["response_length_terminated/mean"] = sum(ended) / len(ended)
    for reason in sorted({sample.finish_reason for sample in samples}):
        values[f"critic/score_by_finish/{reason}"] = _mean(
            [float(s.reward) for s in samples if s.finish_reason == reason and s.reward is not None]
        )
    for k in sorted({1, pass_k}):
        # Without samples that could not be scored a group may be smaller.
        rates = [pass_at_k(len(r), sum(x >= 1 for x in r), k) for r in groups.values() if len(r) >= k]
        if rates:
            values[f"batch/pass@{k}"] = _mean(rates)
    return values


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def advantage_metrics(advantages: Sequence[Tensor]) -> dict[str, float]:
    """Over the tokens of answers that are in the loss; each answer's tokens are one tensor."""
    if not advantages:
        return {}
    advantage_N = torch.cat(list(advantages))
    return {
        "critic/advantages/mean": float(advantage_N.mean()),
        "critic/advantages/max": float(advantage_N.max()),
        "critic/advantages/min": float(advantage_N.min()),
    }


def staleness_metrics(job: Job, samples: Sequence[Sample]) -> dict[str, float]:
    """How many updates the policy had gone through since it drew the samples."""
    iterations = [stage.iterations for stage in job.config.stages]

    def updates(version: str) -> int:
        found = re.fullmatch(r"stage-(\d+)/iter-(\d+)", version)
        return sum(iterations[: int(found[1]) - 1]) + int(found[2]) + 1 if found else 0

    ages = [updates(job.policy_version) - updates(sample.policy_version) for sample in samples]
    return {
        "sampling/stale_share": sum(sample.policy_version != job.policy_version for sample in samples) / len(samples),
        "sampling/staleness/mean": _mean([float(age) for age in ages]),
        "sampling/staleness/max": float(max(ages)),
    }


class TokenSums:
    """Sums over the trained tokens of one mini-batch, over micro-batches and ranks."""

    def __init__(self) -> None:
        # Float64, in which thousands of tokens add up without loss; on the device, which is not waited for.
        self._means: dict[str, Tensor] = {}
        self._totals: dict[str, Tensor] = {}
        self._largest: dict[str, Tensor] = {}

    @torch.no_grad()
    def add(self, values: dict[str, Tensor]) -> None:
        """Add numbers or masks whose mean a token is wanted; N each."""
        for name, value_N in values.items():
            pair = torch.stack([value_N.double().sum(), value_N.new_full((), len(value_N), dtype=torch.float64)])
            self._means[name] = self._means[name] + pair if name in self._means else pair

    @torch.no_grad()
    def add_total(self, name: str, value: Tensor) -> None:
        """Add to a number that is a sum already, such as a share of the loss."""
        self._totals[name] = self._totals[name] + value.double() if name in self._totals else value.double()

    @torch.no_grad()
    def add_largest(self, name: str, value_N: Tensor) -> None:
        """Remember the largest of all."""
        value = value_N.double().max()
        self._largest[name] = torch.maximum(self._largest[name], value) if name in self._largest else value

    def metrics(self) -> dict[str, float]:
        """Means a token, totals and largest values; a collective. A rank without tokens need not know the names."""
        own = [{name: v.tolist() for name, v in part.items()} for part in (self._means, self._totals, self._largest)]
        ranks = gather_objects(own)
        means, totals, largest = (_by_name([rank[place] for rank in ranks]) for place in range(3))
        return {
            **{name: sum(value for value, _ in pairs) / sum(n for _, n in pairs) for name, pairs in means.items()},
            **{name: sum(values) for name, values in totals.items()},
            **{name: max(values) for name, values in largest.items()},
        }


def _by_name(parts: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: [part[name] for part in parts if name in part] for name in names}


def mismatch_tokens(sums: TokenSums, start_N: Tensor, generated_N: Tensor) -> None:
    """Compare the two engines that gave a log-prob to the same tokens under the same weights.

    Args:
        sums: where the numbers go.
        start_N: by the trainer, for the policy before the update.
        generated_N: by the rollout engine.
    """
    drift_N = log_ratio(start_N, generated_N)
    ratio_N, gap_N = drift_N.exp(), drift_N.abs()
    sums.add(
        {
            "sampling/mismatch_k3_kl": mismatch_k3(start_N, generated_N),
            "sampling/importance_sampling_ratio/mean": ratio_N,
            "sampling/importance_sampling_ratio/square": ratio_N.square(),
            "sampling/sampling_logp_difference/mean": gap_N,
        }
    )
    sums.add_largest("sampling/importance_sampling_ratio/max", ratio_N)
    sums.add_largest("sampling/sampling_logp_difference/max", gap_N)


def with_sample_size(metrics: dict[str, float]) -> dict[str, float]:
    """Turn the ratio's mean square into the effective sample size, a share of the tokens: mean(w)^2 / mean(w^2)."""
    square = metrics.pop("sampling/importance_sampling_ratio/square", None)
    if square:
        metrics["sampling/ess"] = metrics["sampling/importance_sampling_ratio/mean"] ** 2 / square
    return metrics


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
