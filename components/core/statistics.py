"""How sure an evaluation's numbers are. Pure functions; nothing here knows of files or policies.

A benchmark is a sample of the problems that could have been asked, and the answers to one problem resemble each
other. So the unit of every interval is the problem (a cluster), as in Miller, "Adding Error Bars to Evals",
arXiv:2411.00640, and intervals use Student's t with one degree of freedom less than there are problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, all in the number's own unit."""

    value: float
    low: float
    high: float
    se: float
    """Standard error; half the interval's width is this times the quantile of t."""
    clusters: int
    """Problems (or runs) it rests on."""

    @property
    def half_width(self) -> float:
        """Half the interval's width: the number behind the ±."""
        return (self.high - self.low) / 2

    def as_dict(self) -> dict[str, float]:
        """Plain data, for JSON."""
        return asdict(self)


@cache
def _gauss() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(64)


@lru_cache
def t_quantile(probability: float, df: float) -> float:
    """The quantile of Student's t for a probability in (0, 1) and df >= 1 degrees of freedom.

    With t = sqrt(df) tan(a) the density becomes cos(a)^(df-1), which Gauss-Legendre integrates to machine precision;
    the angle is then found by bisection. Twelve lines instead of a second of importing scipy in every step.
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    if df > 1e6:
        return NormalDist().inv_cdf(probability)
    nodes, weights = _gauss()
    norm = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(math.pi)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        mass = norm * angle / 2 * float(weights @ np.cos((nodes + 1) * angle / 2) ** (df - 1))
        low, high = (angle, high) if mass < probability - 0.5 else (low, angle)
    return math.sqrt(df) * math.tan((low + high) / 2)


def interval(
    value: float, se: float, clusters: int, confidence: float, bounds: tuple[float, float], df: float | None = None
) -> Estimate:
    """value ± t se, cut at the bounds of what is possible.

    With one cluster, or without any variation between clusters, se says nothing. Then the interval is what
    Clopper-Pearson allows: with no exception among G clusters, up to 1 - (alpha/2)^(1/G) of all could be one, and an
    exception can be as far away as the bounds.
    """
    low_bound, high_bound = bounds
    if clusters < 2 or se <= 1e-12:
        unseen = 1 - ((1 - confidence) / 2) ** (1 / clusters)
        low, high = value - unseen * (value - low_bound), value + unseen * (high_bound - value)
    else:
        reach = t_quantile((1 + confidence) / 2, df if df is not None else clusters - 1) * se
        low, high = max(low_bound, value - reach), min(high_bound, value + reach)
    return Estimate(value, low, high, se, clusters)


def cluster_mean(values: Sequence[float], confidence: float, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    """The mean of one value a problem.

    With equally many samples a problem this is the mean over all samples, and se is the cluster-robust one (Liang and
    Zeger 1986, with the correction G / (G - 1)): se^2 = sum (x_i - mean)^2 / (G (G - 1)).

    Raises:
        ValueError: no value.
    """
    x = np.asarray(values, dtype=float)
    if not len(x):
        raise ValueError("no problem to average over")
    se = float(x.std(ddof=1) / math.sqrt(len(x))) if len(x) > 1 else 0.0
    return interval(float(x.mean()), se, len(x), confidence, bounds)


def cluster_ratio(tops: Sequence[float], bottoms: Sequence[float], confidence: float) -> Estimate:
    """sum(tops) / sum(bottoms), one pair a problem, for shares whose denominator varies (correct among well-formed).

    The linearised, cluster-robust error (Cochran, Sampling Techniques, 3rd ed., section 6.3):
    se^2 = G / (G - 1) sum (y_i - R x_i)^2 / (sum x_i)^2. Problems with an empty denominator do not count.

    Raises:
        ValueError: all denominators are 0.
    """
    x = np.asarray(bottoms, dtype=float)
    y = np.asarray(tops, dtype=float)[x > 0]
    x = x[x > 0]
    if not len(x):
        raise ValueError("no sample to take a share of")
    ratio, count = float(y.sum() / x.sum()), len(x)
    se = math.sqrt(count / (count - 1) * float(((y - ratio * x) ** 2).sum())) / float(x.sum()) if count > 1 else 0.0
    return interval(ratio, se, count, confidence, (0.0, 1.0))


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """The unbiased estimate of P(at least one of k answers is correct) from `samples` answers.

    1 - C(n - c, k) / C(n, k), as a product that does not overflow (Chen et al., arXiv:2107.03374, figure 3).

    Raises:
        ValueError: k > samples, where no unbiased estimate exists, or a count out of range.
    """
    if not 0 <= correct <= samples or not 1 <= k <= samples:
        raise ValueError(f"pass@{k} of {correct} correct among {samples}: need 0 <= correct <= n and 1 <= k <= n")
    return 1.0 - math.prod(1.0 - k / i for i in range(samples - correct + 1, samples + 1))


def paired_difference(before: Sequence[float], after: Sequence[float], confidence: float) -> Estimate:
    """mean(after - before) over the same problems in the same order.

    What is hard for one policy is hard for the other: the pairing removes that variance (arXiv:2411.00640, section 4).

    Raises:
        ValueError: different lengths, or no problem.
    """
    if len(before) != len(after):
        raise ValueError(f"{len(before)} problems before, {len(after)} after: not pairs")
    return cluster_mean(np.subtract(after, before).tolist(), confidence, (-1.0, 1.0))


def unpaired_difference(first: Sequence[float], second: Sequence[float], confidence: float) -> Estimate:
    """mean(second) - mean(first) of two independent sets, with Welch's error and degrees of freedom.

    Source: Welch, Biometrika 34 (1947). `clusters` is the smaller set's size.

    Raises:
        ValueError: a set is empty.
    """
    if not len(first) or not len(second):
        raise ValueError("a set is empty")
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    count, value = min(len(a), len(b)), float(b.mean() - a.mean())
    if count < 2:
        return interval(value, 0.0, 1, confidence, (-1.0, 1.0))
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    if va + vb == 0:
        return interval(value, 0.0, count, confidence, (-1.0, 1.0))
    df = float((va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1)))
    return interval(value, math.sqrt(va + vb), count, confidence, (-1.0, 1.0), df)


def jackknife(
    clusters: int, statistic: Callable[[np.ndarray], float], confidence: float, bounds: tuple[float, float]
) -> Estimate:
    """A smooth function of all problems, with the delete-one-problem jackknife error (Efron and Tibshirani, ch. 11).

    Args:
        clusters: number of problems.
        statistic: takes a weight a problem (all 1, or one of them 0) and gives the number.
        confidence: of the interval.
        bounds: of what is possible.
    """
    weights = np.ones(clusters)
    value = statistic(weights)
    if clusters < 3:
        return interval(value, 0.0, 1, confidence, bounds)
    left_out = np.empty(clusters)
    for index in range(clusters):
        weights[index] = 0.0
        left_out[index] = statistic(weights)
        weights[index] = 1.0
    se = math.sqrt((clusters - 1) / clusters * float(((left_out - left_out.mean()) ** 2).sum()))
    return interval(value, se, clusters, confidence, bounds)


@dataclass(frozen=True)
class GainParts:
    """A gain in pass@1 split in two; the parts add up to the gain."""

    format: Estimate
    """What comes of more answers being in the right format, at the average success of each kind of answer."""
    skill: Estimate
    """What comes of more success among answers of the same kind, at the average mix of kinds."""


def decompose_gain(before: np.ndarray, after: np.ndarray, confidence: float) -> GainParts:
    """Split the gain of pass@1 into format and skill, symmetrically in the two policies.

    pass@1 = f a + (1 - f) b, with f the share of well-formed answers, a and b the success among these and the rest.
    Then gain = df (mean a - mean b) + [mean f da + mean (1 - f) db] (Kitagawa, JASA 50, 1955).

    Args:
        before: a row a problem: the shares of its samples that are well-formed, that are well-formed and correct,
            and that are correct.
        after: the same of the other policy, same problems, same order.
        confidence: of the intervals, by jackknife over problems.
    """

    def parts(weights: np.ndarray) -> tuple[float, float]:
        (f0, a0, b0), (f1, a1, b1) = (_kinds(rows, weights) for rows in (before, after))
        # A kind of answer that one policy never gives has no success of its own there: take the other's.
        a0, a1 = (a1 if a0 is None else a0) or 0.0, (a0 if a1 is None else a1) or 0.0
        b0, b1 = (b1 if b0 is None else b0) or 0.0, (b0 if b1 is None else b1) or 0.0
        share = (f0 + f1) / 2
        return (f1 - f0) * ((a0 + a1) / 2 - (b0 + b1) / 2), share * (a1 - a0) + (1 - share) * (b1 - b0)

    bounds = (-1.0, 1.0)
    return GainParts(
        jackknife(len(before), lambda weights: parts(weights)[0], confidence, bounds),
        jackknife(len(before), lambda weights: parts(weights)[1], confidence, bounds),
    )


def _kinds(rows: np.ndarray, weights: np.ndarray) -> tuple[float, float | None, float | None]:
    """Share of well-formed answers, success among them, success among the rest (None where there are none)."""
    formed, formed_correct, correct = (float(x) for x in weights @ rows / weights.sum())
    rest = 1 - formed
    return (
        formed,
        formed_correct / formed if formed > 1e-12 else None,
        (correct - formed_correct) / rest if rest > 1e-12 else None,
    )


@dataclass(frozen=True)
class McNemar:
    """Do two policies succeed equally often? Counts of problems, and the two-sided p."""

    only_before: int
    """Problems on which the first did better."""
    only_after: int
    """Problems on which the second did better."""
    p: float


def mcnemar(before: Sequence[float], after: Sequence[float]) -> McNemar:
    """McNemar's test on the same problems in the same order.

    With one sample a problem (all values 0 or 1) the exact binomial test on the discordant pairs. With several, the
    version for clustered pairs, chi2 = (sum d_i)^2 / sum d_i^2 with d_i the difference of problem i's means, which
    is McNemar's statistic where each d_i is -1, 0 or 1 (Durkalski et al., Statistics in Medicine 22, 2003).
    """
    d = np.subtract(after, before)
    worse, better = int((d < 0).sum()), int((d > 0).sum())
    if worse + better == 0:
        return McNemar(0, 0, 1.0)
    if set(np.unique([*before, *after])) <= {0.0, 1.0}:
        tail = sum(math.comb(worse + better, i) for i in range(min(worse, better) + 1)) / 2 ** (worse + better)
        return McNemar(worse, better, min(1.0, 2 * tail))
    z = abs(float(d.sum())) / math.sqrt(float((d**2).sum()))
    return McNemar(worse, better, math.erfc(z / math.sqrt(2)))
