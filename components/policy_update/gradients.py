"""Steps whose gradient is not finite: DeepSpeed leaves them out, here they are counted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from components.core.errors import UserError
from components.policy_update.job import Job

MODELS = ("actor", "critic")


class GradientCheck:
    """Counts those in a row over the steps of one engine, from where the update before ended."""

    def __init__(self, engine: Any, what: str, job: Job) -> None:
        """`what` is `actor` or `critic`."""
        self._engine, self._what = engine, what
        self._allowed, self._bad = job.config.policy_update.max_nan_steps, job.nan_steps.get(what, 0)

    def metrics(self) -> dict[str, float]:
        """The norm of the step just taken, before it was clipped; absent where it is not finite.

        Raises:
            UserError: more than `max_nan_steps` steps in a row.
        """
        norm = float(self._engine.get_global_grad_norm())
        bad = not math.isfinite(norm)
        self._bad = self._bad + 1 if bad else 0
        if self._bad > self._allowed:
            raise UserError(
                f"policy_update: {self._bad} {self._what} steps in a row had a gradient that is not finite, more than "
                f"policy_update.max_nan_steps={self._allowed}. Look for NaN in the policy's weights; "
                "a lower learning_rate or dtype=float32 may help."
            )
        values = {f"{self._what}/nan_step": float(bad)}
        return values if bad else values | {f"{self._what}/grad_norm": norm}


def bad_in_a_row(job: Job, points: Sequence[Mapping[str, float]]) -> dict[str, int]:
    """How many such steps each model has come to, for the next update to go on from; a skipped step changes nothing."""
    counts = {}
    for what in MODELS:
        count = job.nan_steps.get(what, 0)
        for point in points:
            bad = point.get(f"{what}/nan_step")
            if bad is not None:
                count = count + 1 if bad else 0
        counts[what] = count
    return counts
