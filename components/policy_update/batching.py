"""The tensors of one micro-batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.policy_update.packing import Packing
from components.policy_update.rollout_io import Sample
from components.policy_update.rows import Row


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
