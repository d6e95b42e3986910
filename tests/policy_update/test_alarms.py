from __future__ import annotations

import pytest

from components.core.update_config import AlarmsConfig
from components.policy_update.alarms import History, extend_history, find_alarms

QUIET = {
    "actor/entropy": 1.0,
    "actor/pg_clipfrac": 0.01,
    "sampling/mismatch_k3_kl": 1e-4,
    "batch/frac_reward_zero_std": 0.3,
    "critic/score/mean": 0.5,
    "response_length/clip_ratio": 0.1,
}
CONFIG = AlarmsConfig(window=2)


def history(points: list[dict[str, float]]) -> History:
    result: History = []
    for point in points:
        result = extend_history(result, QUIET | point, CONFIG)
    return result


def alarms(points: list[dict[str, float]]) -> set[str]:
    """Those of the last of some updates."""
    values, texts = find_alarms(QUIET | points[-1], history(points[:-1]), CONFIG)
    assert len(texts) == sum(values.values())
    return {name for name, value in values.items() if value}


def test_a_quiet_update_raises_none() -> None:
    assert alarms([{}] * 8) == set()


@pytest.mark.parametrize(
    ("name", "metric", "value"),
    [
        ("alarm/mismatch_kl", "sampling/mismatch_k3_kl", 0.02),
        ("alarm/clip_fraction", "actor/pg_clipfrac", 0.3),
        ("alarm/zero_std", "batch/frac_reward_zero_std", 0.8),
    ],
)
def test_a_number_above_its_threshold(name: str, metric: str, value: float) -> None:
    assert alarms([{metric: value}]) == {name}


def test_with_a_stale_sampler_a_mismatch_is_not_blamed_on_the_engine() -> None:
    apart = QUIET | {"sampling/mismatch_k3_kl": 0.02}
    said = [find_alarms(apart | {"sampling/stale_share": share}, [], CONFIG)[1][0] for share in (0.0, 1.0)]
    assert "rollout engine and trainer disagree; look" in said[0]
    assert "staleness=1" in said[1]


def test_entropy_is_compared_with_the_first_update_however_long_ago() -> None:
    slow = [{"actor/entropy": 0.9**number} for number in range(17)]
    assert alarms(slow) == {"alarm/entropy_collapse"}  # 0.9^16 = 0.185
    assert alarms(slow[:-1]) == set()  # 0.9^15 = 0.206
    assert alarms([{"actor/entropy": 0.01}] * 9) == set()


def test_entropy_is_compared_with_the_first_update_that_has_one() -> None:
    updates: History = []
    for entropy in (None, 1.0, *[0.1] * 9):
        point = {name: value for name, value in QUIET.items() if name != "actor/entropy"}
        point |= {} if entropy is None else {"actor/entropy": entropy}
        values, _ = find_alarms(point, updates, CONFIG)
        assert values["alarm/entropy_collapse"] == (entropy == 0.1)
        updates = extend_history(updates, point, CONFIG)


def trend(cut: float, score: float) -> list[dict[str, float]]:
    """Steady updates, then two in which both have moved."""
    later = {"response_length/clip_ratio": 0.1 + cut, "critic/score/mean": 0.5 + score}
    return [{}] * 6 + [later] * 2


@pytest.mark.parametrize(
    ("cut", "score", "rings"), [(0.1, -0.1, True), (0.1, 0.1, False), (-0.1, -0.1, False), (0.1, -0.001, False)]
)
def test_truncation_rises_while_the_reward_falls(cut: float, score: float, rings: bool) -> None:
    assert alarms(trend(cut, score)) == ({"alarm/truncation"} if rings else set())


def test_too_few_updates_have_no_trend() -> None:
    assert alarms(trend(0.1, -0.1)[-3:]) == set()


def test_an_update_without_any_step_has_nothing_to_compare() -> None:
    assert find_alarms({}, history([{}] * 5), CONFIG)[1] == []


def test_the_history_stays_short() -> None:
    kept = history([{"actor/entropy": float(number)} for number in range(100)])
    assert [entry["actor/entropy"] for entry in kept] == [0.0, 96.0, 97.0, 98.0, 99.0]
