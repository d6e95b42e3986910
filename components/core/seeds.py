"""Random numbers that depend on where they are used, never on what ran before."""

from __future__ import annotations

import hashlib


def derive_seed(run_seed: int, *where: str | int) -> int:
    """A 63-bit seed for one place of a run.

    Args:
        run_seed: the run's own seed.
        where: the place, for example ("rollout", stage, iteration, problem_id, sample_id). Order matters.
    """
    text = "\x1f".join([str(run_seed), *(str(part) for part in where)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
