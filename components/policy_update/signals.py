"""What the policy is told of each token before its own training: advantages, and the reference's log-probs.

The reference and the value model are loaded one after the other, and freed before the policy is: the memory an update
needs is that of its largest model, not of all of them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from components.core.config import Config
from components.policy_update.advantages import advantages, gae_advantages
from components.policy_update.answers import Answers
from components.policy_update.critic import Critic, value_metrics
from components.policy_update.engine import build_engine
from components.policy_update.job import Job
from components.policy_update.kl import kl_estimate
from components.policy_update.passes import Passes
from components.policy_update.rollout_io import Sample
from components.policy_update.schedule import MiniBatch, keeps_advantage, penalties


@dataclass(frozen=True)
class Signals:
    """The same on every rank."""

    advantage: list[Tensor]
    """Of the tokens that each sample wrote."""
    reference: dict[int, Tensor]
    """The log-probs of the run's initial policy, by sample; empty unless the loss needs them."""
    metrics: dict[str, float]
    """About the update as a whole."""
    critic_steps: list[dict[str, float]]
    """The value model's metrics, an optimizer step each; empty without one."""


def make_signals(job: Job, samples: Sequence[Sample], schedule: Sequence[MiniBatch], device: torch.device) -> Signals:
    """Compute them; every rank must, at the same time. Trains the value model, if there is one."""
    config = job.config.policy_update
    metrics: dict[str, float] = {}
    reference: dict[int, Tensor] = {}
    length_S = torch.tensor([sample.tokens for sample in samples], dtype=torch.long)
    penalty_N = torch.zeros(int(length_S.sum()), dtype=torch.float64)
    if config.needs_reference and samples:
        assert job.reference is not None
        start = time.monotonic()
        reference = frozen_logprobs(job.config, Path(job.reference) / "hf", samples, device)
        if config.use_kl_in_reward:
            now = _before(job, samples, device)
            kl_N = kl_estimate(_join(now), _join(reference), config.kl_penalty).double()
            penalty_N = config.kl_coef * kl_N
            metrics["critic/reward_kl_penalty"] = float(kl_N.mean()) if len(kl_N) else 0.0
        metrics["timing_s/ref"] = time.monotonic() - start
    lost = penalties(job, samples)
    if config.overlong_buffer.enable and samples:
        metrics["critic/overlong_penalty/mean"] = sum(lost) / len(lost)
    answers = Answers(
        reward_S=torch.tensor([s.reward for s in samples], dtype=torch.float64)
        - torch.tensor(lost, dtype=torch.float64),
        groups=[sample.group for sample in samples],
        length_S=length_S,
        penalty_N=penalty_N,
    )
    critic_steps: list[dict[str, float]] = []
    if config.adv_estimator == "gae":
        answers, critic_steps, told = _with_critic(job, samples, schedule, answers, device)
        metrics |= told
    advantage = list(advantages(answers, config).split(length_S.tolist()))
    for index, sample in enumerate(samples):
        if not keeps_advantage(sample, config):
            advantage[index] = torch.zeros_like(advantage[index])
    return Signals(advantage, reference if config.use_kl_loss else {}, metrics, critic_steps)


def frozen_logprobs(config: Config, hf: Path, samples: Sequence[Sample], device: torch.device) -> dict[int, Tensor]:
    """The log-probs of response tokens under a policy that is loaded for this alone; by sample, on every rank."""
    engine = build_engine(config, hf, device, "frozen")
    passes = Passes(engine, samples, budget=config.policy_update.ppo_max_token_len_per_gpu, device=device)
    result = passes.evaluate([index for index, sample in enumerate(samples) if sample.tokens])
    engine.destroy()
    free(device)
    return result


def free(device: torch.device) -> None:
    """Give back the memory of a model that nothing refers to any more."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _before(job: Job, samples: Sequence[Sample], device: torch.device) -> dict[int, Tensor]:
    """The log-probs of the policy before the update."""
    if job.config.policy_update.old_logprobs == "rollout":
        generated = [[s.rollout_logprobs[t] for t in s.trained] for s in samples]
        return {index: torch.tensor(logps) for index, logps in enumerate(generated) if logps}
    return frozen_logprobs(job.config, Path(job.policy) / "hf", samples, device)


def _join(parts: dict[int, Tensor]) -> Tensor:
    """The N tokens of all samples; those without a token have no part."""
    return torch.cat([parts[index] for index in sorted(parts)]) if parts else torch.zeros(0)


def _with_critic(
    job: Job, samples: Sequence[Sample], schedule: Sequence[MiniBatch], answers: Answers, device: torch.device
) -> tuple[Answers, list[dict[str, float]], dict[str, float]]:
    """Ask the value model, then train and write it."""
    config = job.config.policy_update
    start = time.monotonic()
    critic = Critic(job, samples, device)
    value = critic.values()
    metrics = {"timing_s/values": time.monotonic() - start}
    answers = replace(answers, value_N=_join(value).double())
    _, return_N = gae_advantages(answers, gamma=config.gamma, lam=config.lam)
    returns = dict(enumerate(return_N.float().split(answers.length_S.tolist())))
    assert answers.value_N is not None
    metrics |= value_metrics(answers.value_N, return_N)
    steps = critic.learn(schedule, value, returns)
    critic.save(Path(job.output) / "critic")
    del critic
    free(device)
    return answers, steps, metrics
