"""Forward passes of one engine over samples: this rank's share of them, in micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from components.policy_update.batching import MicroBatch, collate, make_rows, plan
from components.policy_update.rollout_io import Sample


class Passes:
    """How samples go through an engine, be it of the policy, of its reference or of the value model."""

    def __init__(self, engine: Any, samples: Sequence[Sample], *, budget: int, device: torch.device) -> None:
        """Nothing is computed yet.

        Args:
            engine: its module takes the tensors of a MicroBatch and answers with tensors of N tokens.
            samples: what indices refer to.
            budget: tokens of one micro-batch.
            device: this rank's.
        """
        self._engine, self._samples, self._budget, self._device = engine, samples, budget, device

    def batches(self, indices: Sequence[int]) -> Iterator[MicroBatch]:
        """This rank's micro-batches; as many as every other rank has, so that some may be dummies (no samples)."""
        hidden = self._engine.module.policy.config.hidden_size
        rows = make_rows(self._samples, indices, budget=self._budget, hidden=hidden)
        for batch in plan(rows, budget=self._budget, ranks=dist.get_world_size())[dist.get_rank()]:
            yield collate(batch, self._samples).to(self._device)

    def forward(self, batch: MicroBatch) -> tuple[Tensor, ...]:
        """What the engine's module answers."""
        answer: tuple[Tensor, ...] = self._engine(
            batch.input_BT, batch.position_BT, batch.mask_B1TT, batch.source_N, batch.target_N, batch.temperature_N
        )
        return answer

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of this rank's share of a loss whose denominator is global already."""
        # ZeRO-3 averages over the ranks.
        self._engine.backward(loss * dist.get_world_size(), scale_wrt_gas=False)

    @torch.no_grad()
    def evaluate(self, indices: Sequence[int]) -> dict[int, Tensor]:
        """The first answer, a value a response token of each sample; on every rank those of all. A collective."""
        own: dict[int, Tensor] = {}
        for batch in self.batches(indices):
            values_N = self.forward(batch)[0]
            if batch.samples:
                own.update(zip(batch.samples, values_N.cpu().split(batch.lengths), strict=True))
        if dist.get_world_size() == 1:
            return own
        parts: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(parts, own)
        return {index: values for part in parts for index, values in part.items()}
