from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from components.core.errors import UserError
from components.policy_update.launch import _fail
from components.policy_update.metrics import batch_metrics, over_steps
from tests.policy_update.helpers import make_samples


def test_batch_metrics_by_hand() -> None:
    rewards = [0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.5, 0.5]
    samples = [
        replace(
            sample, reward=reward, response_ids=[5] * (number + 1), finish_reason="length" if number == 7 else "stop"
        )
        for number, (sample, reward) in enumerate(zip(make_samples(problems=4, n=2), rewards, strict=True))
    ]
    values = batch_metrics(samples, 2)
    assert values["critic/score/mean"] == 0.5
    assert (values["batch/solve_none"], values["batch/solve_all"], values["batch/solve_partial"]) == (1, 1, 2)
    assert values["batch/frac_reward_zero_std"] == 0.75
    assert values["response_length/mean"] == 4.5
    assert values["response_length/clip_ratio"] == 0.125


def test_steps_are_averaged_and_extremes_kept() -> None:
    points = [{"a": 1.0, "b/max": 1.0, "c/min": 1.0}, {"a": 3.0, "b/max": 5.0, "c/min": -1.0, "d": 7.0}]
    assert over_steps(points) == {"a": 2.0, "b/max": 5.0, "c/min": -1.0, "d": 7.0}


def test_the_first_rank_to_fail_is_the_one_that_is_quoted(tmp_path: Path) -> None:
    for rank, text in ((1, "ValueError: the cause"), (0, "RuntimeError: lost my peer")):
        (tmp_path / f"error-{rank}.json").write_text(json.dumps({"rank": rank, "known": False, "text": text}))
    with pytest.raises(RuntimeError, match="rank 1 of the update failed:\nValueError: the cause"):
        _fail(tmp_path, 1)
    (tmp_path / "error-2.json").write_text(json.dumps({"rank": 2, "known": True, "text": "the disk is full"}))
    with pytest.raises(UserError, match="the disk is full"):
        _fail(tmp_path, 1)


def test_a_rank_that_dies_without_a_word_was_probably_out_of_memory(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="out of memory"):
        _fail(tmp_path, 137)
