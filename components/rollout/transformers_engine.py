"""Sampling on transformers: one batch, prompts padded left, one prefill a prompt, finished rows leave the batch.

`generate()` of transformers keeps finished rows until the longest answer ends and returns no log-probs without
holding every logit; this loop is what a CPU without a serving engine needs instead.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.cache_utils import DynamicCache, DynamicLayer
from transformers.utils import logging

from components.core import attention
from components.rollout.engine import Chat, Completion, Request, Sampling, code_is_closed

logging.disable_progress_bar()


_COMPACT_BELOW = 0.85
"""Finished rows leave the batch once the others are at most this share: moving their keys and values costs time."""


class _RoomyLayer(DynamicLayer):
    """A layer's keys and values with room for all tokens to come, so that a step writes one token and copies none."""

    room = 0
    keys: Tensor
    values: Tensor
    _buffers: tuple[Tensor, Tensor]

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if start == 0 or self._buffers[0].shape[0] != key_states.shape[0]:
            shape = (*key_states.shape[:2], self.room, key_states.shape[-1])
            self._buffers = (key_states.new_empty(shape), key_states.new_empty(shape))
            if start:
                for buffer, old in zip(self._buffers, (self.keys, self.values), strict=True):
                    buffer[:, :, :start] = old
        for buffer, new in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, start:end] = new
        self.keys, self.values = (buffer[:, :, :end] for buffer in self._buffers)
        return self.keys, self.values


def _growing_cache(room: int) -> DynamicCache:
    """An empty cache whose layers hold up to `room` tokens."""
    cache = DynamicCache()
    cache.layer_class_to_replicate = type("_Layer", (_RoomyLayer,), {"room": room})
    return cache


@dataclass
class _Row:
    """One answer in the making. `uniforms`: the random number of each step, so that a row's draw needs no batch."""

    request: Request
    uniforms: np.ndarray
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: str = ""


class TransformersEngine(Chat):
    """See `Engine`."""

    continuous = False

    def __init__(self, policy: Path, dtype: str, threads: int | None = None) -> None:
        if threads is not None:
            torch.set_num_threads(threads)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._tokenizer = AutoTokenizer.from_pretrained(policy)
        model = AutoModelForCausalLM.from_pretrained(
            policy, dtype=getattr(torch, dtype), attn_implementation=attention.register()
        )
        self._model = model.to(device).eval()
        eos = self._model.generation_config.eos_token_id or self._tokenizer.eos_token_id
        self._eos = set(eos if isinstance(eos, list) else [eos])

    def stream(
        self, queue: deque[Request], sampling: Sampling, deadline: float = math.inf
    ) -> Iterator[tuple[Request, Completion]]:
        """See Engine. What is in the queue becomes one batch, what comes meanwhile the next."""
        while queue and time.monotonic() < deadline:
            batch = list(queue)
            queue.clear()
            for row in self._run(batch, sampling, deadline):
                text = self.decode(row.token_ids)
                yield row.request, Completion(row.token_ids, row.logprobs, row.finish_reason, text)

    @torch.inference_mode()
    def _run(self, batch: list[Request], sampling: Sampling, deadline: float) -> Iterator[_Row]:
        """The batch's rows as they are finished; equal prompts are computed once."""
        groups: dict[tuple[int, ...], list[Request]] = {}
        for request in batch:
            groups.setdefault(tuple(request.prompt_ids), []).append(request)
        rows = [
            _Row(request, np.random.default_rng(request.seed).random(sampling.max_new_tokens))
            for group in groups.values()
            for request in group
        ]
        counts = [len(group) for group in groups.values()]
        cache, mask_BT, logits_BV = self._prefill([list(ids) for ids in groups], counts, sampling.max_new_tokens)
        live = list(range(len(rows)))  # the batch's rows; some of them may be finished
        for step in range(sampling.max_new_tokens):
            uniform_B = torch.tensor([rows[i].uniforms[step] for i in live], device=logits_BV.device)
            token_B, logprob_B = sample_tokens(logits_BV, uniform_B, sampling.temperature, sampling.top_p)
            done = []
            for i, token, logprob in zip(live, token_B.tolist(), logprob_B.tolist(), strict=True):
                if not rows[i].finish_reason:
                    rows[i].token_ids.append(token)
                    rows[i].logprobs.append(logprob)
                    rows[i].finish_reason = self._finish(rows[i], sampling)
                    done += [rows[i]] if rows[i].finish_reason else []
            yield from done
            keep = [k for k, i in enumerate(live) if not rows[i].finish_reason]
            if not keep or time.monotonic() >= deadline:
                return
            if len(keep) <= _COMPACT_BELOW * len(live):
                index = torch.tensor(keep, device=token_B.device)
                cache.batch_select_indices(index)
                mask_BT, token_B, live = mask_BT[index], token_B[index], [live[k] for k in keep]
            mask_BT = torch.cat([mask_BT, mask_BT.new_ones(len(live), 1)], dim=1)
            position_B1 = mask_BT.sum(dim=1, keepdim=True) - 1
            output = self._model(
                token_B[:, None],
                attention_mask=mask_BT,
                position_ids=position_B1,
                past_key_values=cache,
                use_cache=True,
            )
            logits_BV = output.logits[:, -1]

    def _prefill(
        self, prompts: list[list[int]], counts: list[int], max_new_tokens: int
    ) -> tuple[DynamicCache, Tensor, Tensor]:
        """Run each prompt once and repeat its keys and values for its samples.

        Returns:
            The cache, the attention mask (B, T) and the next token's logits (B, V), B being all samples.
        """
        width = max(map(len, prompts))
        device = self._model.device
        # The pad id is never attended to, so any will do; it may well occur inside a prompt.
        ids_PT = torch.tensor([[0] * (width - len(ids)) + ids for ids in prompts], device=device)
        mask_PT = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts], device=device)
        position_PT = (mask_PT.cumsum(dim=1) - 1).clamp(min=0)
        cache = _growing_cache(width + max_new_tokens)
        output = self._model(
            ids_PT,
            attention_mask=mask_PT,
            position_ids=position_PT,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        index = torch.repeat_interleave(torch.arange(len(prompts)), torch.tensor(counts)).to(device)
        cache.batch_select_indices(index)
        return cache, mask_PT[index], output.logits[:, -1][index]

    def _finish(self, row: _Row, sampling: Sampling) -> str:
        if row.token_ids[-1] in self._eos:
            return "stop"
        if sampling.stop_at_code_end and code_is_closed(sampling.prefix + self.decode(row.token_ids)):
            return "stop"
        return "length" if len(row.token_ids) == sampling.max_new_tokens else ""


def sample_tokens(logits_BV: Tensor, uniform_B: Tensor, temperature: float, top_p: float) -> tuple[Tensor, Tensor]:
    """Draw one token a row by inverting the cumulative distribution.

    Args:
        logits_BV: of any float type.
        uniform_B: in [0, 1), the row's random number.
        temperature: divides the logits.
        top_p: keeps the most probable tokens that reach this mass together; 1 keeps all.

    Returns:
        Tokens (B,) and the natural log of the probability each was drawn with (B,).
    """
    logprob_BV = torch.log_softmax(logits_BV.float() / temperature, dim=-1)
    if top_p < 1:
        sorted_BV, order_BV = logprob_BV.sort(dim=-1, descending=True)
        mass_before_BV = sorted_BV.exp().cumsum(dim=-1) - sorted_BV.exp()
        dropped_BV = torch.zeros_like(mass_before_BV, dtype=torch.bool).scatter(-1, order_BV, mass_before_BV >= top_p)
        logprob_BV = torch.log_softmax(logprob_BV.masked_fill(dropped_BV, -torch.inf), dim=-1)
    # float64: the float32 sum of 50,000 terms is off by more than the rarer tokens' whole mass.
    cumulative_BV = logprob_BV.exp().cumsum(dim=-1, dtype=torch.float64)
    target_B1 = (uniform_B.double() * cumulative_BV[:, -1])[:, None]
    token_B = torch.searchsorted(cumulative_BV, target_B1, right=True)[:, 0].clamp(max=logprob_BV.shape[-1] - 1)
    return token_B, logprob_BV.gather(-1, token_B[:, None])[:, 0]
