"""From samples to micro-batches: which sequences are computed together, and on which rank.

Every rank makes the same plan from the same samples, so all run the same number of forward and backward passes,
which ZeRO-3's collectives need, without asking each other.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.policy_update.packing import Packing
from components.policy_update.rollout_io import Sample


@dataclass(frozen=True)
class Row:
    """A prompt, then one or more answers to it, each of which sees the prompt and itself only."""

    samples: tuple[int, ...]
    length: int
    """Tokens to compute."""
    pairs: float
    """How many pairs of tokens attention looks at."""

    def cost(self, hidden: int) -> float:
        """Work of one layer: of T tokens and P pairs about 24 h^2 T + 4 h P operations a pass, in units of 4 h."""
        return 6 * hidden * self.length + self.pairs


@dataclass(frozen=True)
class MicroBatch:
    """T tokens, packed without padding, and the N response tokens whose log-probs are wanted."""

    samples: tuple[int, ...]
    """Whose tokens the N are, in their order; a dummy, whose one log-prob nobody uses, has none."""
    lengths: tuple[int, ...]
    """How many of the N each sample has."""
    input_1T: Tensor
    position_1T: Tensor
    packing: Packing
    source_N: Tensor
    """Index into the T hidden states of the one that predicts the token."""
    target_N: Tensor
    temperature_N: Tensor

    def to(self, device: torch.device) -> MicroBatch:
        """The same on a device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if hasattr(value, "to")}
        return MicroBatch(**{**vars(self), **moved})

    def inputs(self) -> dict[str, Any]:
        """What a module of an engine is called with."""
        return {name: value for name, value in vars(self).items() if name not in ("samples", "lengths")}

    def gather(self, parts: Mapping[int, Tensor] | Sequence[Tensor]) -> Tensor:
        """Values of the N tokens, out of those of each sample's tokens."""
        return torch.cat([parts[index] for index in self.samples]).to(self.source_N.device)

    def spread(self, value: Mapping[int, float]) -> Tensor:
        """Give each of the N tokens its sample's value."""
        value_S = torch.tensor([value[index] for index in self.samples])
        return value_S.repeat_interleave(torch.tensor(self.lengths)).to(self.source_N.device)


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


def make_rows(samples: Sequence[Sample], chosen: Iterable[int], *, budget: int, share: bool = True) -> list[Row]:
    """Put answers to the same prompt into one row, so that the prompt is computed once.

    Args:
        samples: all samples.
        chosen: which of them to compute.
        budget: tokens of one row beyond which no answer is added.
        share: False makes a row of each answer.
    """
    open_rows: dict[tuple[int, ...], Row] = {}
    rows: list[Row] = []
    for index in chosen:
        sample = samples[index]
        prompt, answer = len(sample.prompt_ids), len(sample.response_ids) - 1  # the last token predicts nothing
        key = tuple(sample.prompt_ids)
        row = open_rows.get(key)
        if row is not None and row.length + answer <= budget and share:
            pairs = row.pairs + answer * (prompt + answer / 2)
            open_rows[key] = Row((*row.samples, index), row.length + answer, pairs)
            continue
        if row is not None:
            rows.append(row)
        open_rows[key] = Row((index,), prompt + answer, (prompt + answer) ** 2 / 2)
    return [*rows, *open_rows.values()]


def plan(rows: Sequence[Row], *, budget: int, ranks: int, hidden: int) -> list[list[list[Row]]]:
    """Deal rows out to micro-batches of at most `budget` tokens, and those to ranks, so that ranks wait little.

    A row longer than the budget is a micro-batch of its own.

    Args:
        rows: what to compute.
        budget: tokens.
        ranks: those that have samples of their own.
        hidden: the model's hidden size, which says what a token costs in relation to a pair of tokens.

    Returns:
        For each rank its micro-batches; all ranks have equally many, and an empty one stands for a dummy.
    """
    if not rows:
        return [[] for _ in range(ranks)]
    packed = _first_fit(rows, budget)
    # No more passes than needed, but the same number on each rank: spread over them, the last is not half empty.
    count = -(-len(packed) // ranks) * ranks
    batches = _spread(rows, budget, count, hidden) or packed + [[] for _ in range(count - len(packed))]
    batches.sort(key=lambda batch: -sum(row.cost(hidden) for row in batch))
    return [batches[rank::ranks] for rank in range(ranks)]


def _first_fit(rows: Sequence[Row], budget: int) -> list[list[Row]]:
    """First-fit decreasing: at most 11/9 of the fewest bins, plus one."""
    batches: list[list[Row]] = []
    room: list[int] = []
    for row in sorted(rows, key=lambda row: (-row.length, row.samples)):
        number = next((number for number, left in enumerate(room) if row.length <= left), len(batches))
        if number == len(batches):
            batches.append([])
            room.append(budget)
        batches[number].append(row)
        room[number] -= row.length
    return batches


def _spread(rows: Sequence[Row], budget: int, count: int, hidden: int) -> list[list[Row]] | None:
    """Each row to the cheapest of `count` batches that has room for it; None if one fits nowhere."""
    batches: list[list[Row]] = [[] for _ in range(count)]
    tokens, costs = [0] * count, [0.0] * count
    for row in sorted(rows, key=lambda row: (-row.cost(hidden), row.samples)):
        fitting = [n for n in range(count) if tokens[n] + row.length <= budget or not batches[n]]
        if not fitting:
            return None
        number = min(fitting, key=lambda n: costs[n])
        batches[number].append(row)
        tokens[number] += row.length
        costs[number] += row.cost(hidden)
    return batches


def collate(rows: Sequence[Row], samples: Sequence[Sample], *, multiple: int = 1) -> MicroBatch:
    """Build the tensors of one micro-batch; no rows make a dummy.

    Args:
        rows: what it holds.
        samples: all samples.
        multiple: tokens are added until their number divides by this; they are a sequence of their own.
    """
    input_ids: list[int] = []
    positions: list[int] = []
    spans: list[int] = []
    prompts: list[int | None] = []
    source: list[int] = []
    target: list[int] = []
    temperature: list[float] = []

    def add(tokens: list[int], first_position: int, prompt: int | None) -> None:
        if not tokens:
            return
        input_ids.extend(tokens)
        positions.extend(range(first_position, first_position + len(tokens)))
        spans.append(len(tokens))
        prompts.append(prompt)

    for row in rows:
        prompt_ids = samples[row.samples[0]].prompt_ids
        shared = len(row.samples) > 1
        last = len(input_ids) + len(prompt_ids) - 1  # of the prompt
        if shared:
            add(prompt_ids, 0, None)
        prompt_span = len(spans) - 1
        for index in row.samples:
            response_ids = samples[index].response_ids
            shown = response_ids[:-1]
            if shared:
                first = len(input_ids)
                add(shown, len(prompt_ids), prompt_span)
            else:
                first = last + 1
                add([*prompt_ids, *shown], 0, None)
            before = [last, *range(first, first + len(shown))]  # the token that predicts each of the response
            trained = samples[index].trained
            source += [before[i] for i in trained]
            target += [response_ids[i] for i in trained]
            temperature += [samples[index].temperature] * len(trained)
    order = tuple(index for row in rows for index in row.samples)
    if not rows:
        source, target, temperature = [0], [0], [1.0]
    add([0] * (-len(input_ids) % multiple or int(not rows) * multiple), 0, None)
    return MicroBatch(
        samples=order,
        lengths=tuple(len(samples[index].trained) for index in order),
        input_1T=torch.tensor([input_ids]),
        position_1T=torch.tensor([positions]),
        packing=Packing.of(spans, prompts),
        source_N=torch.tensor(source),
        target_N=torch.tensor(target),
        temperature_N=torch.tensor(temperature),
    )
