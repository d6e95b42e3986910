"""Attention over packed sequences: one row of tokens without padding, of which each sees its own sequence only.

A row is cut into spans. A span attends causally to itself and, if it is one of several answers to one prompt, to the
span of that prompt, which is computed once for all of them. The model meets no attention mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

SDPA = "packed_sdpa"
"""This module's name for `attn_implementation=` without flash attention."""


@dataclass(frozen=True, eq=False)
class Packing:
    """The spans of one row of T tokens."""

    lengths: tuple[int, ...]
    """Tokens of each span, in order; they add up to T."""
    prompts: tuple[int | None, ...]
    """The earlier span that this one sees besides itself."""
    query_ends_S: Tensor
    """For flash attention: where each span ends, from 0 on; S spans have S + 1 numbers, int32."""
    key_ends_S: Tensor
    """The same of what each span sees, which stands one after the other in `key_index_K`."""
    key_index_K: Tensor | None
    """Which of the T tokens; None: no span has a prompt of its own, and keys are as queries."""
    longest_query: int
    longest_key: int
    _masks: dict[int, Tensor] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, lengths: Sequence[int], prompts: Sequence[int | None]) -> Packing:
        """Lay spans out one after the other.

        Raises:
            ValueError: a span has no token, or its prompt does not come before it.
        """
        starts = [0, *accumulate(lengths)]
        index: list[int] = []
        keys = []
        for number, (length, prompt) in enumerate(zip(lengths, prompts, strict=True)):
            if length < 1 or (prompt is not None and prompt >= number):
                raise ValueError(f"span {number} of {length} tokens after prompt {prompt}")
            seen = [] if prompt is None else [*range(starts[prompt], starts[prompt + 1])]
            index += [*seen, *range(starts[number], starts[number + 1])]
            keys.append(len(seen) + length)
        return cls(
            lengths=tuple(lengths),
            prompts=tuple(prompts),
            query_ends_S=torch.tensor(starts, dtype=torch.int32),
            key_ends_S=torch.tensor([0, *accumulate(keys)], dtype=torch.int32),
            key_index_K=torch.tensor(index) if any(prompt is not None for prompt in prompts) else None,
            longest_query=max(lengths),
            longest_key=max(keys),
        )

    def to(self, device: torch.device) -> Packing:
        """The same on a device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return Packing(**{**vars(self), **moved, "_masks": {}})

    def mask(self, span: int, device: torch.device) -> Tensor | None:
        """Which keys the queries of a span see, (queries, keys); None is plain causal attention."""
        prompt = self.prompts[span]
        if prompt is None:
            return None
        before, own = self.lengths[prompt], self.lengths[span]
        if prompt not in self._masks:  # that of the longest answer holds those of the others
            most = max(length for length, other in zip(self.lengths, self.prompts, strict=True) if other == prompt)
            whole = torch.ones(most, before + most, dtype=torch.bool, device=device)
            self._masks[prompt] = whole.tril(diagonal=before)
        return self._masks[prompt][:own, : before + own]


def packed_sdpa(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    packing: Packing,
    scaling: float | None = None,
    **unused: Any,
) -> tuple[Tensor, None]:
    """torch's attention, span by span: on any device, and memory for one span's scores at most.

    Query (1, H, T, D), key and value (1, H / groups, T, D), result (1, T, H, D).
    """
    grouped = query.shape[1] != key.shape[1]
    parts = [tensor.split(packing.lengths, dim=2) for tensor in (query, key, value)]
    outputs = []
    for span, (q, k, v) in enumerate(zip(*parts, strict=True)):
        prompt = packing.prompts[span]
        if prompt is not None:
            k, v = (torch.cat([part[prompt], part[span]], dim=2) for part in parts[1:])
        mask = packing.mask(span, query.device)
        outputs.append(
            functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, scale=scaling, is_causal=mask is None, enable_gqa=grouped
            )
        )
    return torch.cat(outputs, dim=2).transpose(1, 2).contiguous(), None


def packed_flash(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    packing: Packing,
    **arguments: Any,
) -> tuple[Tensor, None]:
    """transformers' flash attention in one call over all spans; shapes as in `packed_sdpa`.

    A span shorter than what it sees is aligned with its end, as flash attention has done since 2.1.
    """
    from transformers.integrations.flash_attention import flash_attention_forward

    if packing.key_index_K is not None:
        key, value = key[:, :, packing.key_index_K], value[:, :, packing.key_index_K]
    arguments |= {
        "cu_seq_lens_q": packing.query_ends_S,
        "cu_seq_lens_k": packing.key_ends_S,
        "max_length_q": packing.longest_query,
        "max_length_k": packing.longest_key,
    }
    output: tuple[Tensor, None] = flash_attention_forward(module, query, key, value, None, **arguments)
    return output


def register(implementation: str, wrap: Callable[[Any], Any] = lambda attention: attention) -> str:
    """Make packed attention known to transformers.

    Args:
        implementation: `sdpa`, or one of transformers' names of flash attention. The latter keeps its name, which
            transformers looks at, and from then on needs a `packing`.
        wrap: put around the attention function.

    Returns:
        The name for `attn_implementation=`.
    """
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    name = SDPA if implementation == "sdpa" else implementation
    AttentionInterface.register(name, wrap(packed_sdpa if implementation == "sdpa" else packed_flash))
    AttentionMaskInterface.register(name, _no_mask)
    return name


def _no_mask(*arguments: Any, **named: Any) -> None:
    """What transformers would else build from restarting positions: T^2 booleans."""
