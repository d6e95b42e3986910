"""How long one engine takes for a batch of answers: continuous batching, simulated from event to event."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.core.config import Config
from pipelines.plan.architecture import Architecture
from pipelines.plan.hardware import Assumptions, Gpu


@dataclass(frozen=True)
class Decoder:
    """The cost of one decoding step, in which every running answer gets a token.

    A step reads all weights and all running answers' keys and values once, and computes 2 operations a weight for each
    answer; the slower of both counts.

    Source: the roofline of arXiv:2211.05102 (Efficiently Scaling Transformer Inference), section 2.
    """

    step_s: float
    """Fixed cost, without the weights."""
    weights_s: float
    """Reading the weights."""
    kv_token_s: float
    """Reading one token's keys and values."""
    answer_s: float
    """Computing one answer's token."""
    prefill_token_s: float
    """Computing one token of a prompt."""
    kv_tokens: int
    """Tokens that the cache holds."""
    max_sequences: int = 256
    """Answers that run at a time at most."""

    def seconds(self, lengths: NDArray[np.float64], prompt: int) -> float:
        """Time until the last answer is done.

        Answers start in order while their keys and values fit. When the cache is full the youngest running answer gives
        up its place and is computed again later, as vLLM does (docs.vllm.ai, "Preemption").

        Args:
            lengths: of the answers, in tokens.
            prompt: tokens before each.
        """
        waiting = deque((float(length), float(prompt)) for length in lengths)  # tokens to come, tokens to compute first
        left: NDArray[np.float64] = np.empty(0)
        held: NDArray[np.float64] = np.empty(0)
        time, full = 0.0, False
        while waiting or len(left):
            start: list[tuple[float, float]] = []
            used = float(held.sum())
            while waiting and not full and len(left) + len(start) < self.max_sequences:
                if used + waiting[0][1] > self.kv_tokens and (len(left) or start):
                    break
                start.append(waiting.popleft())
                used += start[-1][1]
            if start:
                time += sum(tokens for _, tokens in start) * self.prefill_token_s
                left = np.append(left, [tokens for tokens, _ in start])
                held = np.append(held, [tokens for _, tokens in start])
            running = len(left)
            room = (self.kv_tokens - used) // running if running > 1 else np.inf
            if room < 1:
                waiting.appendleft((float(left[-1]), float(held[-1])))
                left, held, full = left[:-1], held[:-1], True
                continue
            steps = min(float(left.min()), float(room))
            read = self.weights_s + self.kv_token_s * (used + running * steps / 2)
            time += steps * (self.step_s + max(read, running * self.answer_s))
            left, held = left - steps, held + steps
            going = left > 0
            full = full and bool(going.all())
            left, held = left[going], held[going]
        return time


def make_decoder(config: Config, arch: Architecture, gpu: Gpu, assume: Assumptions, kv_tokens: int) -> Decoder:
    """The engine of one rollout shard, on rollout.tensor_parallel_size GPUs."""
    width = 2 if config.rollout.dtype == "bfloat16" else 4
    gpus = config.rollout.tensor_parallel_size
    bandwidth = gpus * gpu.memory_gb_per_s * 1e9 * assume.decode_mbu
    rate = gpus * gpu.tflops * 1e12 * assume.prefill_mfu
    flops = arch.forward_flops(1, 0)
    return Decoder(
        step_s=(assume.decode_overhead_ms + (assume.tensor_parallel_ms if gpus > 1 else 0)) / 1e3,
        weights_s=arch.parameters * width / bandwidth,
        kv_token_s=arch.kv_bytes_per_token(width) / bandwidth,
        answer_s=flops / rate,
        prefill_token_s=flops / rate,
        kv_tokens=kv_tokens,
        # vLLM's default max_num_seqs: get_batch_defaults of vllm/engine/arg_utils.py, 0.32.
        max_sequences=1024 if gpu.memory_gb >= 75 and not gpu.name.startswith("A100") else 256,
    )
