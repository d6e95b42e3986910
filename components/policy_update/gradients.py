"""Steps whose gradient is not finite: DeepSpeed leaves them out, here they are counted."""

from __future__ import annotations

import math
from typing import Any

from components.core.errors import UserError


class GradientCheck:
    """Counts them over the steps of one engine."""

    def __init__(self, engine: Any, what: str, allowed: int) -> None:
        """`what` is `actor` or `critic`; more bad steps than `allowed` fail."""
        self._engine, self._what, self._allowed, self._bad = engine, what, allowed, 0

    def metrics(self) -> dict[str, float]:
        """The norm of the step just taken, before it was clipped; absent where it is not finite.

        Raises:
            UserError: too many of them.
        """
        norm = float(self._engine.get_global_grad_norm())
        bad = not math.isfinite(norm)
        self._bad += bad
        if self._bad > self._allowed:
            raise UserError(
                f"policy_update: {self._bad} {self._what} steps had a gradient that is not finite, more than "
                f"policy_update.max_nan_steps={self._allowed}. Look for NaN in the policy's weights; "
                "a lower learning_rate or dtype=float32 may help."
            )
        values = {f"{self._what}/nan_step": float(bad)}
        return values if bad else values | {f"{self._what}/grad_norm": norm}
