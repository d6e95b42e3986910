"""The policy while it is trained: the optimizer steps of one update."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from components.core.progress import say
from components.policy_update.alarms import sound_alarms
from components.policy_update.batching import MicroBatch
from components.policy_update.flops import peak_tflops, training_flops
from components.policy_update.gradients import GradientCheck
from components.policy_update.job import Job, Report
from components.policy_update.kl import kl_estimate
from components.policy_update.losses import Tokens, importance_weights, policy_loss
from components.policy_update.metrics import (
    TokenSums,
    advantage_metrics,
    batch_metrics,
    mismatch_tokens,
    over_steps,
    peak_memory_gb,
    with_sample_size,
)
from components.policy_update.passes import Passes
from components.policy_update.rollout_io import Sample
from components.policy_update.schedule import MiniBatch
from components.policy_update.signals import Signals


class Actor:
    """Takes the optimizer steps.

    Which samples count, and where:

    - one without a reward: nowhere;
    - a truncated one, with `mask_truncated_samples`: in its group's mean and std, but not in the loss nor its
      denominator; or, by DeepCoder's own rule, in the denominator, with advantage 0 if it earned nothing;
    - one whose advantage is 0: in the denominator. Without a KL loss and an entropy bonus its loss has no gradient, so
      it is not computed, and the metrics a token (entropy, KL, clip fraction) are over the samples that are.

    A mini-batch without any sample to compute leaves weights and optimizer alone: AdamW's momentum and weight decay
    would move the weights without a reason. It counts as a step, so that steps keep in line with batches.
    """

    def __init__(
        self, job: Job, engine: Any, device: torch.device, samples: Sequence[Sample], signals: Signals
    ) -> None:
        self._job, self._engine, self._device, self._samples = job, engine, device, samples
        self._config = job.config.policy_update
        self._signals = signals
        self._passes = Passes(engine, samples, budget=self._config.ppo_max_token_len_per_gpu, device=device)
        self._loss = policy_loss(self._config.loss_mode)
        self._check = GradientCheck(engine, "actor", job)
        self._old: dict[int, Tensor] = {}

    def run(self, schedule: Sequence[MiniBatch], report: Report, whole: dict[str, float]) -> list[dict[str, float]]:
        """All steps; returns each one's metrics. `whole`, about all of them, joins the last, with the alarms."""
        config, job = self._config, self._job
        start = time.monotonic()
        if config.old_logprobs == "recompute" and len(schedule) > 1:
            # The first mini-batch meets the policy as it was: its own forward pass says what the old log-probs are.
            # Later ones need them beforehand, on every rank, since each plan deals samples out anew.
            self._old = self._passes.evaluate(sorted({i for mini in schedule[1:] for i in self._trained(mini)}))
            whole = whole | {"timing_s/old_log_prob": time.monotonic() - start}
        points: list[dict[str, float]] = []
        for number, mini in enumerate(schedule):
            point = self._step(mini, number)
            if self._signals.critic_steps:
                point |= self._signals.critic_steps[number]
            # Of a step whose gradient is not finite; JSON, which numbers travel in, has no NaN.
            points.append({name: value for name, value in point.items() if math.isfinite(value)})
            if number == len(schedule) - 1:
                points[-1] |= whole
                points[-1] |= sound_alarms(job, over_steps(points), aloud=dist.get_rank() == 0)
            if dist.get_rank() == 0:
                self._tell(report, job.global_step + number + 1, points[-1])
        return points

    def _trained(self, mini: MiniBatch) -> list[int]:
        """Those whose loss has a gradient."""
        if self._config.use_kl_loss or self._config.entropy_coeff:
            return list(mini.weight)
        return [index for index in mini.weight if self._signals.advantage[index].any()]

    def _step(self, mini: MiniBatch, number: int) -> dict[str, float]:
        """One optimizer step."""
        start = time.monotonic()
        config = self._config
        metrics = (
            {}
            if config.filter_groups.enable
            else batch_metrics([self._samples[index] for index in mini.samples], self._job.config.rollout.n)
        )
        metrics |= advantage_metrics([self._signals.advantage[index] for index in mini.weight])
        warming_up = config.adv_estimator == "gae" and self._job.global_step + number < config.critic.warmup_steps
        trained = [] if warming_up else self._trained(mini)
        metrics["actor/skipped"] = float(not trained)
        metrics["actor/lr"] = self._job.config.learning_rate
        if trained:
            sums = TokenSums()
            mismatch = number == 0 or config.old_logprobs == "recompute"
            for batch in self._passes.batches(trained):
                self._accumulate(batch, mini, sums, mismatch=mismatch)
            self._engine.step()
            metrics |= with_sample_size(sums.metrics()) | self._check.metrics()
        lengths = [self._samples[index].length for index in trained]
        return metrics | self._speed(lengths, time.monotonic() - start)

    def _accumulate(self, batch: MicroBatch, mini: MiniBatch, sums: TokenSums, *, mismatch: bool) -> None:
        """Forward and backward of one micro-batch."""
        config = self._config
        logp_N, entropy_N = self._passes.forward(batch)
        if not batch.samples:
            # Nothing left for this rank, but the others wait for its collectives: a zero that is in the graph.
            self._passes.backward(logp_N.sum() * 0.0)
            return
        advantage_N = batch.gather(self._signals.advantage)
        generated = [self._samples[i].rollout_logprobs[t] for i in batch.samples for t in self._samples[i].trained]
        generated_N = torch.tensor(generated, device=self._device)
        before_N = batch.gather(self._old) if batch.samples[0] in self._old else logp_N.detach()
        old_N, importance_N = before_N, torch.ones_like(before_N)
        if config.old_logprobs == "rollout":
            old_N = generated_N
        elif config.rollout_is_threshold is not None:
            importance_N = importance_weights(old_N, generated_N, config.rollout_is_threshold)
        weight_N = batch.spread(mini.weight)
        loss_N, masks = self._loss(Tokens(logp_N, old_N, advantage_N, batch.lengths), config)
        policy = (weight_N * importance_N * loss_N).sum()
        loss = policy
        if config.use_kl_loss:
            kl_N = kl_estimate(logp_N, batch.gather(self._signals.reference), config.kl_loss_type)
            loss = loss + config.kl_loss_coef * (weight_N * kl_N).sum()
            sums.add({"actor/kl_loss": kl_N.detach()})
        if config.entropy_coeff:
            loss = loss - config.entropy_coeff * (weight_N * entropy_N).sum()
        self._passes.backward(loss)
        sums.add({"actor/entropy": entropy_N.detach(), "actor/ppo_kl": old_N - logp_N.detach(), **masks})
        sums.add_total("actor/pg_loss", policy.detach())
        sums.add_total("actor/loss", loss.detach())
        if mismatch:
            mismatch_tokens(sums, before_N, generated_N)
            sums.add({"sampling/importance_weight_mean": importance_N})

    def _speed(self, lengths: Sequence[int], seconds: float) -> dict[str, float]:
        """How fast a step over sequences of these lengths was; throughput and FLOP/s are a rank's."""
        share = seconds * dist.get_world_size()
        tflops = training_flops(self._engine.module.policy, lengths) / share / 1e12
        values = {
            "perf/total_num_tokens": float(sum(lengths)),
            "perf/throughput": sum(lengths) / share,
            "perf/tflops": tflops,
            "perf/max_memory_gb": peak_memory_gb(),
            "perf/time_per_step": seconds,
            "timing_s/step": seconds,  # verl has it under both names
        }
        peak = peak_tflops(self._config.peak_tflops)
        return values | {"perf/mfu": tflops / peak} if peak and lengths else values

    def _tell(self, report: Report, step: int, metrics: dict[str, float]) -> None:
        job = self._job
        if metrics["actor/skipped"]:
            what = "the policy stays as it is"
        elif metrics["actor/nan_step"]:
            what = "skipped: the gradient is not finite"
        else:
            what = (
                f"loss {metrics['actor/pg_loss']:+.4f}, grad norm {metrics['actor/grad_norm']:.3f}, "
                f"entropy {metrics['actor/entropy']:.3f}, {metrics['perf/throughput']:.0f} tokens/s"
            )
        score = f"score {metrics['critic/score/mean']:.3f}, " if "critic/score/mean" in metrics else ""
        say(
            f"stage-{job.stage}/iter-{job.iteration:02d}/policy",
            f"step {step} in {metrics['perf/time_per_step']:.1f} s: {score}{what}",
        )
        report.log_curve(metrics, step)
