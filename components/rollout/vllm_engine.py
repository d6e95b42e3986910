"""Sampling on vLLM, in this process: its GPU build, and its CPU build where a GPU is missing."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from components.core.config import RolloutConfig
from components.core.errors import UserError
from components.rollout.engine import Chat, Completion, Request, Sampling, code_is_closed, cut_at_code_end

_CPU_SETTINGS = {
    # Even eager mode compiles the sampler's log-prob helper, which needs a C++ compiler and pays only on long runs.
    "TORCH_COMPILE_DISABLE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # In this process: a sub-process costs tens of seconds of start-up.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}


class VllmEngine(Chat):
    """See `Engine`."""

    continuous = True

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
        self._numbers = itertools.count()

    def stream(
        self, queue: deque[Request], sampling: Sampling, deadline: float = math.inf
    ) -> Iterator[tuple[Request, Completion]]:
        """See Engine. A sample is a request of its own, which shares its prompt's cached prefix."""
        engine = self._llm.llm_engine
        running: dict[str, Request] = {}
        try:
            while (queue or running) and time.monotonic() < deadline:
                while queue:
                    request, name = queue.popleft(), str(next(self._numbers))
                    prompt = {"prompt_token_ids": request.prompt_ids}
                    engine.add_request(name, prompt, sampling_params(request, sampling))
                    running[name] = request
                for output in engine.step():
                    if not (output.finished or self._code_has_ended(output, sampling)):
                        continue
                    if not output.finished:
                        engine.abort_request([output.request_id])
                    yield running.pop(output.request_id), self._completion(output.outputs[0], sampling)
        finally:
            if running:
                engine.abort_request(list(running))

    def _code_has_ended(self, output: Any, sampling: Sampling) -> bool:
        return sampling.stop_at_code_end and code_is_closed(sampling.prefix + output.outputs[0].text)

    def _completion(self, output: Any, sampling: Sampling) -> Completion:
        ids = list(output.token_ids)
        flat = output.logprobs
        logprobs = [flat.logprobs[first] for first in flat.start_indices]  # a token's own comes before the likeliest
        reason = "stop" if output.finish_reason == "stop" else "length"
        return cut_at_code_end(Completion(ids, logprobs, reason, self.decode(ids)), sampling, self.decode)


def sampling_params(request: Request, sampling: Sampling) -> Any:
    """The request in vLLM's terms."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        n=1,
        seed=request.seed % 2**31,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=sampling.max_new_tokens,
        logprobs=0,
        flat_logprobs=True,  # lists of numbers, not a dictionary and an object a token
        # What is on the way is looked at only where an answer may end at its code. Elsewhere the text is made once, at
        # the end: vLLM makes each token's, and each log-prob's, which takes a fifth of a small model's time.
        output_kind=RequestOutputKind.CUMULATIVE if sampling.stop_at_code_end else RequestOutputKind.FINAL_ONLY,
        detokenize=sampling.stop_at_code_end,
    )
