"""How long one task of the graph takes, by what it spends its time on, and how many GPUs it holds."""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from components.core.config import Config
from components.core.seeds import derive_seed
from pipelines.plan.architecture import Architecture
from pipelines.plan.decoding import Decoder, make_decoder
from pipelines.plan.graph import Task
from pipelines.plan.hardware import Assumptions, Gpu
from pipelines.plan.lengths import draw_lengths
from pipelines.plan.memory import kv_tokens, micro_batch_tokens, needs_reference, rollout_memory


class Timing:
    """Seconds of every task of one configuration."""

    def __init__(self, config: Config, arch: Architecture, gpu: Gpu, assume: Assumptions) -> None:
        self.config, self.arch, self.gpu, self.assume = config, arch, gpu, assume
        self._store = assume.store_gb_per_s * 1e9
        self._weights = 2 * arch.parameters

    def gpus(self, task: Task) -> int:
        """GPUs that a task holds."""
        if task.kind in ("rollout", "rollout-eval"):
            return self.config.rollout.tensor_parallel_size
        return self._ranks if task.kind == "policy-update" else 0

    @property
    def _ranks(self) -> int:
        return self.config.policy_update.ranks * self.config.policy_update.nodes

    def seconds(self, task: Task) -> dict[str, float]:
        """A task's time by what it goes into; empty for a kind that takes none to speak of."""
        start = {"pod start": self.assume.pod_start_s}
        if task.kind == "prepare-data":
            return start | {"prepare": 3600 * self.assume.prepare_h}
        if task.kind in ("rollout", "rollout-eval"):
            load = self._weights / self._store + self.assume.engine_start_s
            return start | {"load": load, "generate": self._generate(self.batch(task))}
        if task.kind == "reward":
            cores = self.config.reward.workers or _cores(self.config.kubernetes.reward.cpu)
            return start | {"grade": self.batch(task).size * self.assume.grade_cpu_s / cores}
        if task.kind == "policy-update":
            return start | self.update(self.batch(task)[: self.config.batch_size].ravel())
        return start

    def batch(self, task: Task) -> NDArray[np.float64]:
        """Lengths of the answers that a task deals with; a row a problem. All of the iteration outside of a shard."""
        stage = "eval" if "label" in task.values else str(task.values["stage"])
        lengths = self._lengths(stage, int(task.values.get("iteration", -1)))
        return lengths[int(task.values["item"]) :: self.config.rollout.shards] if "item" in task.values else lengths

    @cache  # noqa: B019  one object a plan
    def _lengths(self, stage: str, iteration: int) -> NDArray[np.float64]:
        """The same for any number of shards, so that plans differ by the graph alone."""
        config, assume = self.config, self.assume
        if stage == "eval":
            problems = min(config.data.max_test_problems or assume.test_problems, assume.test_problems)
            limit, n = config.evaluation.max_response_length, config.evaluation.n
            # An answer does not get longer because evaluation would let it.
            mean = assume.response_share * min(limit, config.stages[-1].max_response_length)
        else:
            groups = config.policy_update.filter_groups
            problems = round(config.batch_size * (groups.oversample if groups.enable else 1))
            n = config.rollout.n
            limit = config.stages[int(stage) - 1].max_response_length
            mean = assume.response_share * limit
        rng = np.random.default_rng(derive_seed(assume.seed, stage, iteration))
        drawn = draw_lengths(rng, problems * n, mean=mean, sigma=assume.response_sigma, limit=limit)
        return drawn.reshape(problems, n)

    @cached_property
    def decoder(self) -> Decoder:
        """The rollout engine."""
        memory = rollout_memory(self.config, self.arch, self.gpu, self.assume)
        capacity = kv_tokens(self.config, self.arch, memory)
        return make_decoder(self.config, self.arch, self.gpu, self.assume, capacity)

    def _generate(self, lengths: NDArray[np.float64]) -> float:
        """vLLM takes a shard at once; the `transformers` engine a chunk of prompts, each until its longest answer."""
        rollout = self.config.rollout
        size = rollout.chunk_prompts if rollout.engine == "transformers" else len(lengths)
        chunks = [lengths[first : first + size].ravel() for first in range(0, len(lengths), size)] if size else []
        seconds = sum(self.decoder.seconds(chunk, self.assume.prompt_tokens) for chunk in chunks)
        return min(seconds, rollout.wall_limit_s or seconds)

    def update(self, lengths: NDArray[np.float64]) -> dict[str, float]:
        """The policy update, from the store and back.

        Forward, backward (twice its operations) and, with gradient checkpointing, the forward pass again: 8 operations
        a weight and token (arXiv:2104.04473, section 5.1, and arXiv:2205.05198). Old log-probs are a forward pass over
        all mini-batches but the first; a reference policy is one more over all, a value model one more and a training
        of its own. A micro-batch moves 8 bytes a weight to and from each GPU: bf16 weights gathered for the forward and
        for the backward pass, float32 gradients scattered (ZeRO, arXiv:1910.02054, section 7); it overlaps with
        computing, so the slower of both counts.
        """
        config, assume, ranks = self.config.policy_update, self.assume, self._ranks
        models = 2 if config.adv_estimator == "gae" else 1
        sequences = (lengths + assume.prompt_tokens)[: max(1, round(lengths.size * assume.trained_share))]
        tokens = float(sequences.sum())
        forward = self.arch.forward_flops(tokens, float((sequences**2).sum()) / tokens / 2)
        rate = ranks * self.gpu.tflops * 1e12 * assume.mfu
        minis = max(1, self.config.batch_size // config.ppo_mini_batch_size) * config.ppo_epochs
        passes = minis * max(1.0, tokens * config.ppo_epochs / minis / (micro_batch_tokens(self.config) * ranks))
        link = self.gpu.link_gb_per_s if ranks <= assume.gpus_per_node else assume.node_gb_per_s
        share = (ranks - 1) / ranks / (link * 1e9)
        train = (4 if config.gradient_checkpointing else 3) * forward * config.ppo_epochs / rate
        again = (minis - 1) / minis if config.old_logprobs == "recompute" else 0.0
        again += float(needs_reference(self.config)) + (models - 1)
        old = again * max(forward / rate, passes / config.ppo_epochs * 2 * self.arch.parameters * share)
        state = models * (self._weights + 12 * self.arch.parameters)
        return {
            "load": state / self._store,
            "old log-probs": old,
            "train": models
            * (max(train, passes * 8 * self.arch.parameters * share) + minis * assume.optimizer_pass_ms / 1e3),
            "save": state / self._store,
        }


def _cores(cpu: str) -> float:
    """Kubernetes writes 1.5 cores as `1.5` or `1500m`."""
    return float(cpu.removesuffix("m")) / 1000 if cpu.endswith("m") else float(cpu)
