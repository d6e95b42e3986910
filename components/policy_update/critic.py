"""The value model of `adv_estimator: gae`: its answers before the update, and its own training.

It is loaded, used, trained, written and freed before the policy is loaded, so the two never share the memory: the
value model needs nothing of the policy's training, and the policy only the answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from components.policy_update.batching import MicroBatch
from components.policy_update.checkpoint import export_hf, load_optimizer, need_space, save_optimizer, saving
from components.policy_update.critic_model import make_critic
from components.policy_update.engine import build_engine, optimizer_settings
from components.policy_update.gradients import GradientCheck
from components.policy_update.job import Job
from components.policy_update.losses import value_loss
from components.policy_update.metrics import TokenSums
from components.policy_update.passes import Passes
from components.policy_update.rollout_io import Sample
from components.policy_update.schedule import MiniBatch


class Critic:
    """The value model while it is in memory."""

    def __init__(self, job: Job, samples: Sequence[Sample], device: torch.device) -> None:
        """Load it, or start one from the policy; every rank must."""
        self._job, self._samples = job, samples
        self._config = job.config.policy_update
        self._hf = Path(job.critic) / "hf" if job.critic else Path(job.output) / "critic-start"
        if job.critic is None:
            if dist.get_rank() == 0:
                with saving(self._hf):
                    make_critic(Path(job.policy) / "hf", self._hf)
            dist.barrier()
        self._engine = build_engine(job.config, self._hf, device, "critic")
        if job.critic is not None and (Path(job.critic) / "zero").exists():
            load_optimizer(self._engine, Path(job.critic) / "zero", Path(job.output))
            for group in self._engine.optimizer.param_groups:
                group.update(optimizer_settings(job.config, "critic"))
        need_space(self._engine, self._hf, Path(job.output))
        self._passes = Passes(self._engine, samples, budget=self._config.ppo_max_token_len_per_gpu, device=device)
        self._check = GradientCheck(self._engine, "critic", job)

    def values(self) -> dict[int, Tensor]:
        """The value before each response token, by sample; float32."""
        return self._passes.evaluate([i for i, sample in enumerate(self._samples) if sample.tokens])

    def learn(
        self, schedule: Iterable[MiniBatch], old: dict[int, Tensor], returns: dict[int, Tensor]
    ) -> list[dict[str, float]]:
        """One optimizer step a mini-batch.

        Args:
            schedule: the update's.
            old: the values before the update, by sample.
            returns: what they should have been.

        Returns:
            The metrics of each step.
        """
        return [self._step(mini, old, returns) for mini in schedule]

    def _step(self, mini: MiniBatch, old: dict[int, Tensor], returns: dict[int, Tensor]) -> dict[str, float]:
        start = time.monotonic()
        metrics = {"critic/lr": self._config.critic.lr, "critic/skipped": float(not mini.weight)}
        if mini.weight:
            sums = TokenSums()
            for batch in self._passes.batches(list(mini.weight)):
                self._accumulate(batch, mini, old, returns, sums)
            self._engine.step()
            metrics |= sums.metrics() | self._check.metrics()
        return metrics | {"timing_s/update_critic": time.monotonic() - start}

    def _accumulate(
        self,
        batch: MicroBatch,
        mini: MiniBatch,
        old: dict[int, Tensor],
        returns: dict[int, Tensor],
        sums: TokenSums,
    ) -> None:
        (value_N,) = self._passes.forward(batch)
        if not batch.samples:
            self._passes.backward(value_N.sum() * 0.0)
            return
        weight_N = batch.spread(mini.weight)
        loss_N, clipped_N = value_loss(
            value_N, batch.gather(old), batch.gather(returns), clip=self._config.critic.cliprange_value
        )
        loss = (weight_N * loss_N).sum()
        self._passes.backward(loss)
        sums.add({"critic/vf_clipfrac": clipped_N, "critic/vpred_mean": value_N.detach()})
        sums.add_total("critic/vf_loss", loss.detach())

    def save(self, folder: Path) -> None:
        """Write `hf/` and `zero/`, and free the memory."""
        with saving(folder):
            save_optimizer(self._engine, folder / "zero")
            export_hf(self._engine, self._hf, folder / "hf")
        self._engine.destroy()


def explained_variance(value_N: Tensor, return_N: Tensor) -> float:
    """1 - var(R - V) / var(R): 1 for a perfect value model, 0 for one that knows no more than the mean."""
    if len(return_N) < 2:
        return 0.0
    return float(1 - (return_N - value_N).var() / (return_N.var() + 1e-5))


def value_metrics(value_N: Tensor, return_N: Tensor) -> dict[str, float]:
    """About the values before the update, over all answers."""
    if not len(value_N):
        return {}
    return {
        "critic/vf_explained_var": explained_variance(value_N, return_N),
        "critic/values/mean": float(value_N.mean()),
        "critic/returns/mean": float(return_N.mean()),
    }
