"""One answer, as DeepCoder was trained."""

from __future__ import annotations

from components.rollout.trajectory import Ask, Case, Steps


def single(case: Case) -> Steps:
    """Ask once. Role: `solver`."""
    yield Ask("solver", case.messages)
