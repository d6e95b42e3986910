"""How long answers are: log-normal, cut at the longest that a stage allows, which a few stragglers reach."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def mean_when_cut(mu: float, sigma: float, limit: float) -> float:
    """E[min(X, limit)] of a log-normal X.

    exp(mu + s^2/2) Phi(a - s) + limit (1 - Phi(a)) with a = (ln limit - mu) / s: the limited expected value of
    Klugman, Panjer, Willmot, Loss Models, appendix A.
    """
    if sigma == 0:
        return min(math.exp(mu), limit)
    a = (math.log(limit) - mu) / sigma
    return math.exp(mu + sigma**2 / 2) * _phi(a - sigma) + limit * (1 - _phi(a))


def _phi(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


def draw_lengths(rng: np.random.Generator, count: int, *, mean: float, sigma: float, limit: int) -> NDArray[np.float64]:
    """Lengths of answers in tokens, at least 1.

    Args:
        rng: source of randomness.
        count: how many.
        mean: their mean after the cut; below `limit`.
        sigma: spread of the logarithm.
        limit: the longest.
    """
    low, high = math.log(1e-3), math.log(limit) + 10 * max(sigma, 0.1) + sigma**2
    for _ in range(100):  # the mean grows with mu
        middle = (low + high) / 2
        low, high = (middle, high) if mean_when_cut(middle, sigma, limit) < mean else (low, middle)
    lengths: NDArray[np.float64] = np.clip(np.rint(np.exp(low + sigma * rng.standard_normal(count))), 1, limit)
    return lengths
