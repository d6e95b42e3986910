"""Forward passes of one engine over samples: this rank's share of them, in micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from components.policy_update.batching import MicroBatch, collate
from components.policy_update.parallel import gather_objects, layout
from components.policy_update.rollout_io import Sample
from components.policy_update.rows import make_rows, plan


class Passes:
    """How samples go through an engine, be it of the policy, of its reference or of the value model."""

    def __init__(self, engine: Any, samples: Sequence[Sample], *, budget: int, device: torch.device) -> None:
        """Nothing is computed yet.

        Args:
            engine: its module takes the `inputs` of a MicroBatch and answers with tensors of N tokens.
            samples: what indices refer to.
            budget: tokens of one micro-batch that one rank computes.
            device: this rank's.
        """
        self._engine, self._samples, self._budget, self._device = engine, samples, budget, device

    def batches(self, indices: Sequence[int]) -> Iterator[MicroBatch]:
        """This rank's micro-batches; as many as every other rank has, so that some may be dummies (no samples)."""
        config, place = self._engine.module.policy.config, layout()
        # The ranks that share a micro-batch hold a part of its tokens each.
        budget = self._budget * place.sequence_size
        rows = make_rows(self._samples, indices, budget=budget)
        share = plan(rows, budget=budget, ranks=place.data_size, hidden=config.hidden_size)[place.data_rank]
        for batch in share:
            yield collate(batch, self._samples, multiple=place.sequence_size).to(self._device)

    def forward(self, batch: MicroBatch) -> tuple[Tensor, ...]:
        """What the engine's module answers."""
        answer: tuple[Tensor, ...] = self._engine(**batch.inputs())
        return answer

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of this rank's share of a loss whose denominator is global already."""
        # ZeRO-3 averages over all ranks. Those that share a micro-batch have the same loss, but each the gradient of
        # its own tokens only.
        self._engine.backward(loss * dist.get_world_size(), scale_wrt_gas=False)

    @torch.no_grad()
    def evaluate(self, indices: Sequence[int]) -> dict[int, Tensor]:
        """The first answer, a value a token that the policy wrote, by sample; on every rank those of all samples.

        A collective.
        """
        own: dict[int, Tensor] = {}
        for batch in self.batches(indices):
            values_N = self.forward(batch)[0]
            if batch.samples:
                own.update(zip(batch.samples, values_N.cpu().split(batch.lengths), strict=True))
        return {index: values for part in gather_objects(own) for index, values in part.items()}
