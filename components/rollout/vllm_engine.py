"""Sampling on vLLM, in this process: its GPU build, and its CPU build where a GPU is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from components.core.config import RolloutConfig
from components.core.errors import UserError
from components.rollout.engine import Chat, Completion, Sampling, code_is_closed

_CPU_SETTINGS = {
    # Even eager mode compiles the sampler's log-prob helper, which needs a C++ compiler and pays only on long runs.
    "TORCH_COMPILE_DISABLE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # In this process: a sub-process costs tens of seconds of start-up.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}


class VllmEngine(Chat):
    """See `Engine`."""

    def __init__(self, config: RolloutConfig, policy: Path, context_length: int, seed: int) -> None:
        import torch

        on_gpu = torch.cuda.is_available()
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        if not on_gpu:
            for name, value in _CPU_SETTINGS.items():
                os.environ.setdefault(name, value)
        try:
            from vllm import LLM
        except ImportError as error:
            raise UserError(
                f"rollout.engine=vllm: vLLM does not import ({error}); install it or set rollout.engine=transformers"
            ) from error
        cpu = {"enforce_eager": True, "block_size": 32, "max_num_seqs": 256, "enable_chunked_prefill": False}
        self._llm = LLM(
            str(policy),
            dtype=config.dtype,
            max_model_len=context_length,
            seed=seed % 2**31,
            enable_prefix_caching=True,
            # Raw log-probs would be those of temperature 1, not of the distribution that was sampled.
            logprobs_mode="processed_logprobs",
            tensor_parallel_size=config.tensor_parallel_size,
            disable_log_stats=True,
            **({"gpu_memory_utilization": config.gpu_memory_utilization} if on_gpu else cpu),
        )
        self._tokenizer = self._llm.get_tokenizer()

    def generate(self, prompts: list[list[int]], seeds: list[list[int]], sampling: Sampling) -> list[list[Completion]]:
        """See Engine. A seed a sample: a request of its own, which shares its prompt's cached prefix."""
        from vllm import SamplingParams

        requests = [(prompt, seed) for prompt, group in zip(prompts, seeds, strict=True) for seed in group]
        outputs = self._llm.generate(
            [{"prompt_token_ids": prompt} for prompt, _ in requests],
            [
                SamplingParams(
                    n=1,
                    seed=seed % 2**31,
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    max_tokens=sampling.max_new_tokens,
                    logprobs=0,
                )
                for _, seed in requests
            ],
            use_tqdm=False,
        )
        completions = iter([self._completion(output.outputs[0], sampling) for output in outputs])
        return [[next(completions) for _ in group] for group in seeds]

    def _completion(self, output: Any, sampling: Sampling) -> Completion:
        ids = list(output.token_ids)
        logprobs = [entry[token].logprob for entry, token in zip(output.logprobs, ids, strict=True)]
        reason = "stop" if output.finish_reason == "stop" else "length"
        if sampling.stop_at_code_end:
            end = _code_end(self, ids)
            if end is not None:
                ids, logprobs, reason = ids[:end], logprobs[:end], "stop"
        return Completion(ids, logprobs, reason)


def _code_end(engine: VllmEngine, ids: list[int]) -> int | None:
    """The smallest number of tokens that closes the first code block, or None."""
    if not code_is_closed(engine.decode(ids)):
        return None
    low, high = 1, len(ids)
    while low < high:
        middle = (low + high) // 2
        if code_is_closed(engine.decode(ids[:middle])):
            high = middle
        else:
            low = middle + 1
    return low
