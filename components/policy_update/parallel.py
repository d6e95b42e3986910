"""Ranks: which share the samples (data parallel), and which share one sequence (Ulysses sequence parallel).

Groups of `ulysses_sequence_parallel_size` neighbouring ranks work on the same micro-batch, each on an equal part of its
tokens; attention exchanges tokens for heads, so that each rank sees whole sequences in some of the heads. DeepSpeed is
not told: to ZeRO-3 all ranks are alike, so it averages gradients over all of them, whatever the way it reduces.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from components.core.errors import UserError


@dataclass(frozen=True)
class Layout:
    """This rank's place."""

    data_size: int
    """Groups of ranks that have samples of their own."""
    data_rank: int
    sequence_size: int
    """Ranks that share a micro-batch."""
    sequence_rank: int
    data_group: Any
    """One rank of each sequence-parallel group; None: all ranks."""
    sequence_group: Any


_layout = Layout(1, 0, 1, 0, None, None)


def set_up(sequence_size: int) -> Layout:
    """Divide the ranks, once the process group stands; every rank must call it.

    Raises:
        UserError: the ranks cannot be divided so.
    """
    global _layout
    world, rank = dist.get_world_size(), dist.get_rank()
    if world % sequence_size:
        raise UserError(
            f"policy_update.ulysses_sequence_parallel_size={sequence_size} does not divide the {world} ranks."
        )
    size = world // sequence_size
    data_group = sequence_group = None
    if sequence_size > 1:
        for start in range(0, world, sequence_size):
            group = dist.new_group(list(range(start, start + sequence_size)))
            sequence_group = group if start <= rank < start + sequence_size else sequence_group
        for start in range(sequence_size):
            group = dist.new_group(list(range(start, world, sequence_size)))
            data_group = group if rank % sequence_size == start else data_group
    _layout = Layout(size, rank // sequence_size, sequence_size, rank % sequence_size, data_group, sequence_group)
    return _layout


def layout() -> Layout:
    """What `set_up` found; before it, that of a process alone."""
    return _layout


def gather_objects(value: Any) -> list[Any]:
    """What every data-parallel rank has, in their order."""
    if layout().data_size == 1:
        return [value]
    values: list[Any] = [None] * layout().data_size
    dist.all_gather_object(values, value, group=layout().data_group)
    return values


def token_states(
    policy: Any, input_1T: Tensor, position_1T: Tensor, packing: Any, source_N: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Run a transformer over this rank's part of a packed row; T divides by the sequence-parallel size.

    Args:
        policy: a transformers model with packed attention.
        input_1T: token ids.
        position_1T: their positions, from 0 in each sequence.
        packing: its spans.
        source_N: the wanted tokens.

    Returns:
        The last hidden states of the M wanted tokens that are this rank's, (M, H), and which of the N they are; None
        for all of them.
    """
    place = layout()
    part = slice(None)
    own_M = None
    if place.sequence_size > 1:
        width = input_1T.shape[1] // place.sequence_size
        start = place.sequence_rank * width
        part = slice(start, start + width)
        own_M = ((source_N >= start) & (source_N < start + width)).nonzero()[:, 0]
        source_N = source_N[own_M] - start
    states_1TH = policy.base_model(
        input_ids=input_1T[:, part], position_ids=position_1T[:, part], packing=packing, use_cache=False
    ).last_hidden_state
    return states_1TH[0][source_N], own_M


def whole(values_M: Tensor, own_M: Tensor | None, count: int) -> Tensor:
    """All N values of a micro-batch, from those M that each rank of a sequence-parallel group has; differentiable.

    Every rank of the group goes on to compute the same loss from them, and gets the gradient of its own M.
    """
    if own_M is None:
        return values_M
    values_N: Tensor = _Sum.apply(values_M.new_zeros(count).index_put((own_M,), values_M))
    return values_N


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values_N: Tensor) -> Tensor:
        values_N = values_N.clone()
        dist.all_reduce(values_N, group=layout().sequence_group)
        return values_N

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0]


def ulysses(attention: Any) -> Any:
    """DeepSpeed's exchange of tokens for heads around an attention function, for models of any number of heads.

    The class is used without its `register_with_transformers`, which knows one model a process only: an update may
    hold a policy, its reference and a value model.
    """
    if layout().sequence_size == 1:
        return attention
    from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF

    @cache
    def exchange(heads: int, kv_heads: int, head_size: int, layers: int) -> Any:
        return UlyssesSPAttentionHF(
            attn=attention,
            batch_size=1,
            attn_head_count=heads,
            attn_head_size=head_size,
            kv_head_count=kv_heads,
            num_hidden_layers=layers,
            process_group=layout().sequence_group,
            seq_length_is_variable=True,
        )

    def forward(module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, **arguments: Any) -> Any:
        shape = (query.shape[1], key.shape[1], query.shape[3], module.config.num_hidden_layers)
        return exchange(*shape)(module, query, key, value, mask, **arguments)

    return forward
