"""From samples to micro-batches: which sequences are computed together, and on which rank.

Every rank makes the same plan from the same samples, so all run the same number of forward and backward passes,
which ZeRO-3's collectives need, without asking each other.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from components.policy_update.rollout_io import Sample


@dataclass(frozen=True)
class Row:
    """One sequence: a prompt, then one or more answers to it, each of which sees the prompt and itself only."""

    samples: tuple[int, ...]
    length: int


@dataclass(frozen=True)
class MicroBatch:
    """B rows of T tokens, and the N response tokens whose log-probs are wanted."""

    samples: tuple[int, ...]
    """Whose tokens the N are, in their order."""
    lengths: tuple[int, ...]
    """How many of the N each sample has."""
    input_BT: Tensor
    position_BT: Tensor | None
    mask_B1TT: Tensor | None
    """True where attention is allowed; None, as for the positions, is what a causal model does by itself."""
    source_N: Tensor
    """Index into the B*T hidden states of the one that predicts the token."""
    target_N: Tensor
    temperature_N: Tensor

    def to(self, device: torch.device) -> MicroBatch:
        """The same on a device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return MicroBatch(**{**vars(self), **moved})


def mini_batches(samples: Sequence[Sample], size: int, seed: int) -> list[list[int]]:
    """Shuffle the problems and deal them out, `size` at a time; a problem's samples stay together.

    Returns:
        Indices of samples, a list a mini-batch. The last one may hold fewer problems.
    """
    members: dict[str, list[int]] = {}
    for index, sample in enumerate(samples):
        members.setdefault(sample.problem_id, []).append(index)
    problems = sorted(members)
    random.Random(seed).shuffle(problems)
    return [
        [index for problem in problems[start : start + size] for index in members[problem]]
        for start in range(0, len(problems), size)
    ]


def make_rows(samples: Sequence[Sample], chosen: Iterable[int], *, budget: int, hidden: int | None) -> list[Row]:
    """Put answers to the same prompt into one row while that is cheaper than computing the prompt once for each.

    A layer's cost for T tokens is about 24 h^2 T + 4 h T^2 operations, so T (6 h + T) in units of 4 h; causal attention
    needs half of the square term, attention under the mask that keeps answers apart does not save it.

    Args:
        samples: all samples.
        chosen: which of them to compute.
        budget: tokens of one row beyond which no answer is added.
        hidden: the model's hidden size h; None shares nothing.
    """
    if hidden is None:
        return [Row((index,), samples[index].length - 1) for index in chosen]
    open_rows: dict[tuple[int, ...], tuple[list[int], int]] = {}
    rows: list[Row] = []
    for index in chosen:
        sample = samples[index]
        prompt, answer = len(sample.prompt_ids), len(sample.response_ids) - 1  # the last token predicts nothing
        alone = prompt + answer
        key = tuple(sample.prompt_ids)
        if key in open_rows:
            members, length = open_rows[key]
            together = length + answer
            saved = length * (6 * hidden + length) + alone * (6 * hidden + alone / 2)
            if together <= budget and together * (6 * hidden + together) < saved:
                open_rows[key] = ([*members, index], together)
                continue
            rows.append(Row(tuple(members), length))
        open_rows[key] = ([index], alone)
    return rows + [Row(tuple(members), length) for members, length in open_rows.values()]


def plan(rows: Sequence[Row], *, budget: int, ranks: int) -> list[list[list[Row]]]:
    """Deal rows out to micro-batches of at most `budget` tokens, padding included, and those to ranks.

    Rows are sorted by length, so that little is padding. A row longer than the budget is a micro-batch of its own.

    Returns:
        For each rank its micro-batches; all ranks have equally many, and an empty one stands for a dummy.
    """
    if not rows:
        return [[] for _ in range(ranks)]
    # As many passes as the budget asks for, then the smallest batches that need no more, so that ranks wait little.
    slots = -(-len(_pack(rows, budget)) // ranks) * ranks
    low, high = 1, max(budget, *(row.length for row in rows))
    while low < high:
        middle = (low + high) // 2
        if len(_pack(rows, middle)) <= slots:
            high = middle
        else:
            low = middle + 1
    batches = _pack(rows, high)
    batches += [[] for _ in range(-len(batches) % ranks)]
    return [batches[rank::ranks] for rank in range(ranks)]


def _pack(rows: Sequence[Row], limit: int) -> list[list[Row]]:
    batches: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (len(row.samples) > 1, -row.length, row.samples)):
        current = batches[-1] if batches else []
        # A row of one answer needs no mask, and T^2 of a long one would be a large mask.
        alike = bool(current) and (len(current[0].samples) > 1) == (len(row.samples) > 1)
        if alike and (len(current) + 1) * current[0].length <= limit:
            current.append(row)
        else:
            batches.append([row])
    return batches


def collate(rows: Sequence[Row], samples: Sequence[Sample]) -> MicroBatch:
    """Build the tensors of one micro-batch. No rows: a dummy of one token, whose log-prob nobody uses."""
    if not rows:
        one = torch.zeros(1, dtype=torch.long)
        return MicroBatch((), (), one[None], None, None, one, one, torch.ones(1))
    width = max(row.length for row in rows)
    input_BT = torch.zeros(len(rows), width, dtype=torch.long)
    position_BT = torch.zeros_like(input_BT)
    segment_BT = torch.full_like(input_BT, -1)
    source: list[int] = []
    target: list[int] = []
    temperature: list[float] = []
    for b, row in enumerate(rows):
        prompt_ids = samples[row.samples[0]].prompt_ids
        end = len(prompt_ids)
        input_BT[b, :end] = torch.tensor(prompt_ids)
        position_BT[b, :end] = torch.arange(end)
        segment_BT[b, :end] = 0
        for number, index in enumerate(row.samples, 1):
            response_ids = samples[index].response_ids
            shown = len(response_ids) - 1
            input_BT[b, end : end + shown] = torch.tensor(response_ids[:-1], dtype=torch.long)
            position_BT[b, end : end + shown] = torch.arange(len(prompt_ids), len(prompt_ids) + shown)
            segment_BT[b, end : end + shown] = number
            first = b * width
            trained = samples[index].trained
            before = [first + len(prompt_ids) - 1, *range(first + end, first + end + shown)]
            source += [before[i] for i in trained]
            target += [response_ids[i] for i in trained]
            temperature += [samples[index].temperature] * len(trained)
            end += shown
    shared = any(len(row.samples) > 1 for row in rows)
    order = tuple(index for row in rows for index in row.samples)
    return MicroBatch(
        samples=order,
        lengths=tuple(len(samples[index].trained) for index in order),
        input_BT=input_BT,
        position_BT=position_BT if shared else None,
        # Right padding comes after all that a real token may see, so causal attention alone keeps it out.
        mask_B1TT=_shared_prompt_mask(segment_BT) if shared else None,
        source_N=torch.tensor(source),
        target_N=torch.tensor(target),
        temperature_N=torch.tensor(temperature),
    )


def _shared_prompt_mask(segment_BT: Tensor) -> Tensor:
    """A token sees what came before it in the prompt (segment 0) and in its own answer."""
    width = segment_BT.shape[1]
    causal_TT = torch.ones(width, width, dtype=torch.bool).tril()
    same_BTT = segment_BT[:, :, None] == segment_BT[:, None, :]
    prompt_B1T = (segment_BT == 0)[:, None, :]
    return (causal_TT & (same_BTT | prompt_B1T))[:, None]
