"""The statistics against closed forms, brute force, scipy and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from components.core.statistics import (
    cluster_mean,
    cluster_ratio,
    decompose_gain,
    mcnemar,
    paired_difference,
    pass_at_k,
    t_quantile,
    unpaired_difference,
)


@pytest.mark.parametrize("df", [1, 2, 2.7, 5, 29, 278, 5000, 1e7])
@pytest.mark.parametrize("probability", [0.005, 0.025, 0.5, 0.9, 0.975, 0.9995])
def test_t_quantile_is_scipys(df: float, probability: float) -> None:
    assert t_quantile(probability, df) == pytest.approx(scipy.stats.t.ppf(probability, df), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("n", "c"), [(n, c) for n in (1, 4, 7) for c in range(n + 1)])
def test_pass_at_k_is_the_closed_form_and_the_count_over_all_subsets(n: int, c: int) -> None:
    for k in range(1, n + 1):
        subsets = list(itertools.combinations([True] * c + [False] * (n - c), k))
        assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
        assert pass_at_k(n, c, k) == pytest.approx(1 - math.comb(n - c, k) / math.comb(n, k))


def test_pass_at_k_of_many_samples_does_not_overflow() -> None:
    exact = 1 - math.comb(9_999, 100) / math.comb(10_000, 100)
    assert pass_at_k(10_000, 1, 100) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 1), (4, -1, 1), (4, 2, 5), (4, 2, 0)])
def test_pass_at_k_refuses_what_has_no_unbiased_estimate(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="need 0 <= correct"):
        pass_at_k(n, c, k)


def test_mean_and_error_are_those_of_the_problem_means() -> None:
    # By hand: mean 0.5, deviations -0.5, 0, 0.5, s^2 = 0.25, se = 0.5 / sqrt(3), t(2) = 4.303: beyond the bounds.
    estimate = cluster_mean([0.0, 0.5, 1.0], 0.95)
    assert (estimate.value, estimate.se) == (0.5, pytest.approx(0.5 / math.sqrt(3)))
    assert (estimate.low, estimate.high) == (0.0, 1.0)


def test_mean_interval_is_scipys() -> None:
    values = np.random.default_rng(1).uniform(0.2, 0.7, 40)
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
    ours = cluster_mean(values.tolist(), 0.9)
    assert (ours.low, ours.high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_interval_without_any_variation_still_leaves_room() -> None:
    # Nothing solved in 20 problems: Clopper-Pearson's upper end.
    estimate = cluster_mean([0.0] * 20, 0.95)
    assert (estimate.low, estimate.high) == (0.0, pytest.approx(scipy.stats.beta.ppf(0.975, 1, 20)))
    assert cluster_mean([1.0], 0.95).low == pytest.approx(0.025)


def _coverage(problems: int, samples: int, a: float, b: float, seed: int) -> float:
    rng = np.random.default_rng(seed)
    truth = a / (a + b)
    hits = 0
    for _ in range(2000):
        means = rng.binomial(samples, rng.beta(a, b, problems)) / samples
        estimate = cluster_mean(means.tolist(), 0.95)
        hits += estimate.low <= truth <= estimate.high
    return hits / 2000


@pytest.mark.parametrize(
    ("problems", "samples", "a", "b"),
    [(60, 4, 0.5, 1.0), (60, 8, 0.8, 0.8), (279, 8, 0.4, 0.6), (20, 4, 1.0, 2.0)],
)
def test_interval_of_pass_at_1_covers_the_truth_95_times_in_100(
    problems: int, samples: int, a: float, b: float
) -> None:
    assert 0.93 <= _coverage(problems, samples, a, b, seed=7) <= 0.97


def test_binomial_interval_that_forgets_the_problems_does_not_cover() -> None:
    # The reason for clustering: 60 problems with 8 samples are not 480 independent answers.
    rng, hits = np.random.default_rng(3), 0
    for _ in range(1000):
        answers = rng.random((60, 8)) < rng.beta(0.5, 0.5, (60, 1))
        reach = 1.96 * math.sqrt(answers.mean() * (1 - answers.mean()) / answers.size)
        hits += abs(answers.mean() - 0.5) <= reach
    assert hits / 1000 < 0.75


def test_interval_of_a_ratio_covers_the_truth() -> None:
    # Success among well-formed answers, where better problems also have more well-formed answers.
    rng, hits = np.random.default_rng(11), 0
    grid = np.random.default_rng(0).beta(1, 1, 200_000)
    truth = float((grid * (0.3 + 0.6 * grid)).mean() / (0.3 + 0.6 * grid).mean())
    for _ in range(2000):
        skill = rng.beta(1, 1, 80)
        formed = rng.binomial(8, 0.3 + 0.6 * skill)
        estimate = cluster_ratio(rng.binomial(formed, skill).tolist(), formed.tolist(), 0.95)
        hits += estimate.low <= truth <= estimate.high
    assert 0.93 <= hits / 2000 <= 0.97


def test_paired_difference_is_scipys_paired_t() -> None:
    rng = np.random.default_rng(5)
    before = rng.binomial(4, 0.4, 30) / 4
    after = np.clip(before + rng.choice([0, 0.25, -0.25, 0.5], 30), 0, 1)
    ours = paired_difference(before.tolist(), after.tolist(), 0.95)
    theirs = scipy.stats.ttest_rel(after, before).confidence_interval(0.95)
    assert (ours.low, ours.high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))
    with pytest.raises(ValueError, match="not pairs"):
        paired_difference([0.0], [0.0, 1.0], 0.95)


def test_unpaired_difference_is_welchs() -> None:
    rng = np.random.default_rng(6)
    first, second = rng.uniform(0, 0.4, 25), rng.uniform(0.1, 1.0, 40)
    ours = unpaired_difference(first.tolist(), second.tolist(), 0.95)
    theirs = scipy.stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    assert (ours.low, ours.high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_gain_that_is_all_format_and_gain_that_is_all_skill_are_told_apart() -> None:
    # Columns: well-formed, well-formed and correct, correct. Half of the well-formed answers are right, always.
    before = np.tile([0.4, 0.2, 0.2], (10, 1))
    after = np.tile([0.8, 0.4, 0.4], (10, 1))
    parts = decompose_gain(before, after, 0.95)
    assert (parts.format.value, parts.skill.value) == (pytest.approx(0.2), pytest.approx(0.0))
    parts = decompose_gain(before, np.tile([0.4, 0.3, 0.3], (10, 1)), 0.95)
    assert (parts.format.value, parts.skill.value) == (pytest.approx(0.0), pytest.approx(0.1))


def test_parts_of_a_gain_add_up_to_it() -> None:
    rng = np.random.default_rng(8)

    def policy(form: float, skill: float) -> np.ndarray:
        formed = rng.random((40, 8)) < form
        correct = rng.random((40, 8)) < np.where(formed, skill, skill / 4)
        return np.stack([formed.mean(1), (formed & correct).mean(1), correct.mean(1)], axis=1)

    before, after = policy(0.6, 0.4), policy(0.9, 0.6)
    parts = decompose_gain(before, after, 0.95)
    assert parts.format.value + parts.skill.value == pytest.approx(float((after - before)[:, 2].mean()))
    assert parts.format.low > 0
    assert parts.skill.low > 0


def test_mcnemar_is_the_binomial_test_with_one_sample_and_durkalskis_with_several() -> None:
    before, after = [1, 0, 0, 0, 0, 0, 1, 0], [0, 1, 1, 1, 1, 1, 1, 0]
    result = mcnemar(before, after)
    assert (result.only_before, result.only_after) == (1, 5)
    assert result.p == pytest.approx(scipy.stats.binomtest(1, 6, 0.5).pvalue)
    # d = 0.5, 0.5, -0.25: chi2 = 0.75^2 / 0.5625 = 1.
    assert mcnemar([0, 0.25, 0.5], [0.5, 0.75, 0.25]).p == pytest.approx(scipy.stats.chi2.sf(1.0, 1))
    assert mcnemar([0.5], [0.5]).p == 1.0
