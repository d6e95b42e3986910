"""Which answers an update learns from, in which optimizer step, and what each of their tokens weighs there."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from components.core.seeds import derive_seed
from components.core.update_config import PolicyUpdateConfig
from components.policy_update.advantages import group_members
from components.policy_update.job import Job
from components.policy_update.losses import token_weights
from components.policy_update.rollout_io import Sample


@dataclass(frozen=True)
class MiniBatch:
    """One optimizer step."""

    samples: list[int]
    """Every answer of its problems."""
    weight: dict[int, float]
    """Those that are in the loss, and the share that each of their tokens has in it, over all ranks."""


def filter_groups(samples: Sequence[Sample], *, keep: int, seed: int) -> list[Sample]:
    """DAPO's dynamic sampling: the samples of groups whose rewards differ, of at most `keep` problems.

    The rollout has sampled more problems than an update needs (`filter_groups.oversample`), since the graph cannot ask
    for more once it knows the rewards. Of too many the seed chooses; too few make fewer or smaller mini-batches, as few
    as none. Rewards are looked at before any penalty for length.
    """
    told = {
        samples[indices[0]].group
        for indices in group_members([sample.group for sample in samples])
        if len({samples[index].reward for index in indices}) > 1
    }
    problems = sorted({problem for problem, _ in told})
    random.Random(seed).shuffle(problems)
    chosen = set(problems[:keep])
    return [sample for sample in samples if sample.group in told and sample.problem_id in chosen]


def overlong_penalty(length: int, *, limit: int, buffer: int, factor: float) -> float:
    """What an answer of `length` tokens loses: from 0 at limit - buffer linearly to `factor` at the limit.

    Source: DAPO, arXiv:2503.14476, eq. 13.
    """
    return min(max((length - (limit - buffer)) / buffer, 0.0), 1.0) * factor


def choose_samples(job: Job, samples: Sequence[Sample]) -> list[Sample]:
    """The scored samples that take part in the update."""
    if not job.config.policy_update.filter_groups.enable:
        return list(samples)
    seed = derive_seed(job.config.seed, "filter", job.stage, job.iteration)
    return filter_groups(samples, keep=job.config.batch_size, seed=seed)


def penalties(job: Job, samples: Sequence[Sample]) -> list[float]:
    """What each sample's reward loses by its length."""
    config = job.config.policy_update.overlong_buffer
    if not config.enable:
        return [0.0] * len(samples)
    limit = job.max_response_length
    buffer = config.len or max(1, limit // 5)
    return [
        overlong_penalty(len(sample.response_ids), limit=limit, buffer=buffer, factor=config.penalty_factor)
        for sample in samples
    ]


def in_loss(sample: Sample, config: PolicyUpdateConfig) -> bool:
    """Whether an answer's tokens are in the loss and in its denominator."""
    out = config.mask_truncated_samples and config.mask_truncated_rule == "loss" and sample.truncated
    return sample.tokens > 0 and not out


def keeps_advantage(sample: Sample, config: PolicyUpdateConfig) -> bool:
    """False for what DeepCoder's own rule silences: an answer that was cut off and earned nothing."""
    silenced = config.mask_truncated_samples and config.mask_truncated_rule == "advantage"
    return not (silenced and sample.truncated and sample.reward is not None and sample.reward <= 0)


def mini_batches(samples: Sequence[Sample], size: int, seed: int) -> list[list[int]]:
    """Shuffle the problems and deal them out, `size` at a time; a problem's samples stay together.

    Returns:
        Indices of samples, a list a mini-batch. The last one may hold fewer problems.
    """
    members: dict[str, list[int]] = {}
    for index, sample in enumerate(samples):
        members.setdefault(sample.problem_id, []).append(index)
    problems = sorted(members)
    random.Random(seed).shuffle(problems)
    return [
        [index for problem in problems[start : start + size] for index in members[problem]]
        for start in range(0, len(problems), size)
    ]


def make_schedule(job: Job, samples: Sequence[Sample]) -> list[MiniBatch]:
    """All optimizer steps of an update, the same on every rank; `max_steps` may cut them short."""
    config = job.config.policy_update
    schedule = []
    for epoch in range(config.ppo_epochs):
        seed = derive_seed(job.config.seed, "update", job.stage, job.iteration, epoch)
        for indices in mini_batches(samples, config.ppo_mini_batch_size, seed):
            counted = [index for index in indices if in_loss(samples[index], config)]
            weights = token_weights(
                [samples[index].tokens for index in counted],
                config.loss_agg_mode,
                scale=config.loss_scale_factor or job.max_response_length,
            )
            schedule.append(MiniBatch(indices, dict(zip(counted, weights, strict=True))))
    if job.config.max_steps is None:
        return schedule
    return schedule[: max(0, job.config.max_steps - job.global_step)]
