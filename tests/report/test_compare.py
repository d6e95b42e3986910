"""Pooling of runs against hand-made numbers, scipy and simulation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from components.core.errors import UserError
from components.report.compare import RunGain, crossed, difference, main, pool


def _run(seed: int, gains: list[float]) -> RunGain:
    by_problem = {f"p{index}": gain for index, gain in enumerate(gains)}
    return RunGain(f"run-{seed}", seed, 0.3, 0.3 + float(np.mean(gains)), 0.6, 0.9, by_problem)


def test_mean_gain_over_problems_and_over_seeds_by_hand() -> None:
    runs = [_run(0, [0.0, 0.2, 0.4]), _run(1, [0.2, 0.4, 0.6])]
    pooled = pool(runs)
    # Problem averages 0.1, 0.3, 0.5; run means 0.2, 0.4.
    problems, seeds = pooled["gain"]["over_problems"], pooled["gain"]["over_seeds"]
    assert (problems["value"], problems["se"]) == (pytest.approx(0.3), pytest.approx(0.2 / 3**0.5))
    assert (seeds["value"], seeds["se"]) == (pytest.approx(0.3), pytest.approx(0.1))
    # No noise within cells: the two variances add.
    assert pooled["gain"]["over_both"]["se"] == pytest.approx((0.04 / 3 + 0.01) ** 0.5)


def test_single_run_has_no_interval_over_seeds() -> None:
    assert pool([_run(0, [0.1, 0.3])])["gain"]["over_seeds"] is None


def test_difference_of_groups_is_paired_by_problem_and_welchs_over_seeds() -> None:
    rng = np.random.default_rng(2)
    learned = [_run(seed, rng.normal(0.2, 0.2, 30).tolist()) for seed in range(3)]
    control = [_run(seed, rng.normal(0.05, 0.1, 30).tolist()) for seed in range(4)]
    found = difference(learned, control)

    def table(runs: list[RunGain]) -> np.ndarray:
        return np.array([list(run.by_problem.values()) for run in runs])

    paired = scipy.stats.ttest_rel(table(learned).mean(0), table(control).mean(0)).confidence_interval()
    welch = scipy.stats.ttest_ind(table(learned).mean(1), table(control).mean(1), equal_var=False)
    assert found["over_problems"]["low"] == pytest.approx(paired.low)
    assert found["over_seeds"]["high"] == pytest.approx(welch.confidence_interval().high)
    assert found["over_both"]["value"] == pytest.approx(found["over_problems"]["value"])
    assert found["over_both"]["se"] >= found["over_problems"]["se"]


def test_interval_over_both_covers_when_problems_and_seeds_vary() -> None:
    # The interval over problems alone forgets the seeds, and falls short.
    rng, both, alone = np.random.default_rng(4), 0, 0
    for _ in range(1000):
        gains = 0.2 + rng.normal(0, 0.2, (1, 60)) + rng.normal(0, 0.04, (4, 1)) + rng.normal(0, 0.2, (4, 60))
        wide = crossed([(1.0, gains)], 0.95)
        narrow = pool([_run(seed, row) for seed, row in enumerate(gains.tolist())])["gain"]["over_problems"]
        both += wide.low <= 0.2 <= wide.high
        alone += narrow["low"] <= 0.2 <= narrow["high"]
    assert 0.93 <= both / 1000 <= 0.97
    assert alone / 1000 < 0.92


def test_problem_that_one_run_lacks_is_left_out() -> None:
    first, second = _run(0, [0.1, 0.2, 0.9]), _run(1, [0.1, 0.2])
    pooled = pool([first, second])
    assert pooled["problems"] == 2
    assert pooled["gain"]["over_problems"]["value"] == pytest.approx(0.15)


def test_runs_without_a_common_problem_are_refused() -> None:
    other = RunGain("other", 1, 0.0, 0.1, 0.5, 0.5, {"q": 0.1})
    with pytest.raises(UserError, match="no held-out problem is in all of run-0, other"):
        pool([_run(0, [0.1]), other])


def _summary(path: Path, run: RunGain) -> str:
    policies = [
        {"pass@1": {"value": run.base}, "format_share": {"value": run.format_base}},
        {"pass@1": {"value": run.final}, "format_share": {"value": run.format_final}},
    ]
    by_problem = {name: {"base": 0.3, "final": 0.3 + gain} for name, gain in run.by_problem.items()}
    values = {"run": run.run, "seed": run.seed, "policies": policies, "by_problem": by_problem, "gain": {}}
    path.write_text(json.dumps(values))
    return str(path)


def test_command_compares_learned_with_control(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learned = [_summary(tmp_path / f"l{seed}.json", _run(seed, [0.2, 0.3, 0.25 + seed / 50])) for seed in range(2)]
    control = [_summary(tmp_path / f"c{seed}.json", _run(seed, [0.0, 0.1, 0.05])) for seed in range(2)]
    assert main([*learned, "--control", *control, "--json", str(tmp_path / "out.json")]) == 0
    out = capsys.readouterr().out
    assert "runs: 2 runs, 3 problems" in out
    assert "difference over problems  +20.3" in out
    assert json.loads((tmp_path / "out.json").read_text())["difference"]["problems"] == 3


def test_command_names_a_file_that_is_no_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert main([str(tmp_path / "x.json")]) == 2
    assert "x.json: not a summary.json" in capsys.readouterr().err
