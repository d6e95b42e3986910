"""The PPO update on one rank, from samples to weights; every rank runs the same code."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from components.core.errors import UserError
from components.core.progress import say
from components.core.seeds import derive_seed
from components.policy_update.advantages import grpo_advantages
from components.policy_update.batching import MicroBatch, mini_batches
from components.policy_update.checkpoint import export_hf, load_optimizer, need_space, save_optimizer
from components.policy_update.engine import build_engine, optimizer_settings, start_ranks, total
from components.policy_update.job import Job, Outcome, Report
from components.policy_update.losses import clipped_policy_loss, clipped_tokens, importance_weights
from components.policy_update.metrics import TokenSums, batch_metrics, over_steps, peak_memory_gb
from components.policy_update.passes import Passes
from components.policy_update.rollout_io import Sample, read_samples, scored


def train(job: Job, report: Report) -> Outcome:
    """Run one update and write `hf/` and `zero/` to the job's output folder.

    Args:
        job: what to do.
        report: hears of it, on rank 0.

    Raises:
        UserError: the samples, the disk or the gradients forbid it.
    """
    rows = read_samples((Path(rollout), Path(reward)) for rollout, reward in job.shards)
    device = start_ranks()
    engine = build_engine(job.config, Path(job.policy) / "hf", device)
    if job.optimizer is not None:
        load_optimizer(engine, Path(job.optimizer) / "zero")
        for group in engine.optimizer.param_groups:
            group.update(optimizer_settings(job.config))
    output = Path(job.output)
    output.mkdir(parents=True, exist_ok=True)
    need_space(engine, Path(job.policy) / "hf", output)
    if dist.get_rank() == 0:
        report.ready()

    samples = scored(rows)
    update = Update(job, engine, device, samples)
    points = update.run(report)

    save_optimizer(engine, output / "zero")
    export_hf(engine, Path(job.policy) / "hf", output / "hf")
    engine.destroy()
    metrics = over_steps(points)
    metrics["batch/unscored"] = float(len(rows) - len(samples))
    metrics["sampling/stale_share"] = sum(s.policy_version != job.policy_version for s in samples) / len(samples)
    return Outcome(job.global_step + len(points), len(points), len(samples), metrics)


class Update:
    """The optimizer steps of one update.

    Which samples count, and where (`mask_truncated_samples` set):

    - one without a reward: nowhere;
    - a truncated one: in its group's mean and std, as in DeepCoder, but not in the loss nor its denominator;
    - one with advantage 0: in the denominator. Its loss has no gradient, so it is not computed, and the metrics a token
      (entropy, KL, clip fraction) are over the samples that are.

    A mini-batch without any sample to compute leaves weights and optimizer alone: AdamW's momentum and weight decay
    would move the weights without a reason. It counts as a step, so that steps keep in line with batches.
    """

    def __init__(self, job: Job, engine: Any, device: torch.device, samples: Sequence[Sample]) -> None:
        self._job, self._engine, self._device, self._samples = job, engine, device, samples
        self._config = job.config.policy_update
        self._passes = Passes(engine, samples, budget=self._config.ppo_max_token_len_per_gpu, device=device)
        self._rank, self._ranks = dist.get_rank(), dist.get_world_size()
        reward_S = torch.tensor([sample.reward for sample in samples])
        self._advantage: list[float] = grpo_advantages(
            reward_S, [sample.group for sample in samples], normalise=self._config.norm_adv_by_std_in_grpo
        ).tolist()
        self._old: dict[int, Tensor] = {}
        self._bad_steps = 0

    def run(self, report: Report) -> list[dict[str, float]]:
        """All steps; returns each one's metrics."""
        config, job = self._config, self._job
        schedule = [
            mini
            for epoch in range(config.ppo_epochs)
            for mini in mini_batches(
                self._samples,
                config.ppo_mini_batch_size,
                derive_seed(job.config.seed, "update", job.stage, job.iteration, epoch),
            )
        ]
        if job.config.max_steps is not None:
            schedule = schedule[: max(0, job.config.max_steps - job.global_step)]
        if config.old_logprobs == "recompute" and len(schedule) > 1:
            # The first mini-batch meets the policy as it was: its own forward pass says what the old log-probs are.
            # Later ones need them beforehand, on every rank, since each plan deals samples out anew.
            self._old = self._passes.evaluate(sorted({i for mini in schedule[1:] for i in self._trained(mini)}))
        points = []
        for number, mini in enumerate(schedule):
            metrics = self._step(mini, first=number == 0)
            points.append(metrics)
            if self._rank == 0:
                self._tell(report, job.global_step + number + 1, metrics)
        return points

    def _counts(self, index: int) -> bool:
        return not (self._config.mask_truncated_samples and self._samples[index].truncated)

    def _trained(self, indices: Iterable[int]) -> list[int]:
        return [i for i in indices if self._counts(i) and self._advantage[i] and self._samples[i].trained]

    def _step(self, mini: Sequence[int], *, first: bool) -> dict[str, float]:
        """One optimizer step."""
        start = time.monotonic()
        metrics = batch_metrics([self._samples[index] for index in mini])
        trained = self._trained(mini)
        # One denominator for all ranks and micro-batches; they all know the whole mini-batch.
        denominator = sum(len(self._samples[index].trained) for index in mini if self._counts(index))
        metrics["actor/skipped"] = float(not trained)
        metrics["actor/lr"] = self._job.config.learning_rate
        if trained:
            sums = TokenSums(self._device)
            loss = torch.zeros(1, dtype=torch.float64, device=self._device)
            for batch in self._passes.batches(trained):
                loss += self._accumulate(batch, denominator, sums)
            self._engine.step()
            metrics |= sums.metrics(mismatch=first or self._config.old_logprobs == "recompute")
            metrics["actor/pg_loss"] = total(loss).item()
            metrics |= self._gradient_metrics()
        seconds = time.monotonic() - start
        tokens = sum(self._samples[index].length for index in trained)
        return metrics | {
            "perf/total_num_tokens": float(tokens),
            "perf/throughput": tokens / seconds / self._ranks,
            "perf/max_memory_gb": peak_memory_gb(),
            "timing_s/step": seconds,
        }

    def _accumulate(self, batch: MicroBatch, denominator: int, sums: TokenSums) -> Tensor:
        """Forward and backward of one micro-batch; returns its share of the loss."""
        config = self._config
        logp_N, entropy_N = self._passes.forward(batch)
        if not batch.samples:
            # Nothing left for this rank, but the others wait for its collectives: a zero that is in the graph.
            self._engine.backward(logp_N.sum() * 0.0, scale_wrt_gas=False)
            return torch.zeros(1, dtype=torch.float64, device=self._device)
        lengths = torch.tensor(batch.lengths)
        advantage_N = torch.tensor([self._advantage[i] for i in batch.samples]).repeat_interleave(lengths)
        advantage_N = advantage_N.to(self._device)
        generated = [self._samples[i].rollout_logprobs[t] for i in batch.samples for t in self._samples[i].trained]
        generated_N = torch.tensor(generated, device=self._device)
        before_N = logp_N.detach()
        if batch.samples[0] in self._old:
            before_N = torch.cat([self._old[i] for i in batch.samples]).to(self._device)
        old_N, weight_N = before_N, torch.ones_like(before_N)
        if config.old_logprobs == "rollout":
            old_N = generated_N
        elif config.rollout_is_threshold is not None:
            weight_N = importance_weights(old_N, generated_N, config.rollout_is_threshold)
        clip = {"clip_low": config.clip_ratio_low, "clip_high": config.clip_ratio_high}
        loss_N = weight_N * clipped_policy_loss(logp_N, old_N, advantage_N, **clip)
        loss = loss_N.sum() / denominator
        # ZeRO-3 averages over ranks, and the denominator is global already.
        self._engine.backward(loss * self._ranks, scale_wrt_gas=False)
        low_N, high_N = clipped_tokens(logp_N.detach(), old_N, advantage_N, **clip)
        sums.add(
            logp_N=logp_N.detach(),
            old_N=old_N,
            generated_N=generated_N,
            start_N=before_N,
            entropy_N=entropy_N,
            weight_N=weight_N,
            low_N=low_N,
            high_N=high_N,
        )
        return loss.detach().double()

    def _gradient_metrics(self) -> dict[str, float]:
        """The gradient's norm. DeepSpeed has left out a step whose norm is not finite; it is counted here.

        Raises:
            UserError: too many of them.
        """
        norm = float(self._engine.get_global_grad_norm())
        bad = not math.isfinite(norm)
        self._bad_steps += bad
        if self._bad_steps > self._config.max_nan_steps:
            raise UserError(
                f"policy_update: {self._bad_steps} steps had a gradient that is not finite, more than "
                f"policy_update.max_nan_steps={self._config.max_nan_steps}. Look for NaN in the policy's weights; "
                "a lower learning_rate or dtype=float32 may help."
            )
        return {"actor/nan_step": float(bad)} if bad else {"actor/nan_step": 0.0, "actor/grad_norm": norm}

    def _tell(self, report: Report, step: int, metrics: dict[str, float]) -> None:
        job = self._job
        if metrics["actor/skipped"]:
            what = "skipped: no sample has an advantage"
        elif metrics["actor/nan_step"]:
            what = "skipped: the gradient is not finite"
        else:
            what = (
                f"loss {metrics['actor/pg_loss']:+.4f}, grad norm {metrics['actor/grad_norm']:.3f}, "
                f"entropy {metrics['actor/entropy']:.3f}, {metrics['perf/throughput']:.0f} tokens/s"
            )
        say(
            f"stage-{job.stage}/iter-{job.iteration:02d}/policy",
            f"step {step} in {metrics['timing_s/step']:.1f} s: score {metrics['critic/score/mean']:.3f}, {what}",
        )
        report.log_curve(metrics, step)
