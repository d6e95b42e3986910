from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.policy_update.job import Job
from components.policy_update.rollout_io import Sample
from components.policy_update.schedule import (
    filter_groups,
    in_loss,
    keeps_advantage,
    make_schedule,
    overlong_penalty,
    penalties,
)
from tests.policy_update.helpers import make_config, make_samples


def make_job(folder: Path, *, global_step: int = 0, **changes: Any) -> Job:
    return Job(
        config=make_config(folder, **changes), stage=1, iteration=0, global_step=global_step, policy="", optimizer=None,
        policy_version="", shards=[], output="",
    )  # fmt: skip


def mixed_groups() -> list[Sample]:
    """Problems 0 to 5; those with an even number have equal rewards."""
    samples = make_samples(problems=6, n=3)
    return [replace(s, reward=1.0) if int(s.problem_id[1:]) % 2 == 0 else s for s in samples]


def test_dynamic_sampling_keeps_whole_groups_that_say_something() -> None:
    samples = mixed_groups()
    kept = filter_groups(samples, keep=10, seed=0)
    assert kept == [sample for sample in samples if sample.problem_id in ("p1", "p3", "p5")]


def test_dynamic_sampling_keeps_no_more_problems_than_asked_for_and_the_seed_chooses() -> None:
    chosen = [{s.problem_id for s in filter_groups(mixed_groups(), keep=2, seed=seed)} for seed in range(20)]
    assert all(len(problems) == 2 for problems in chosen)
    assert chosen[0] == {s.problem_id for s in filter_groups(mixed_groups(), keep=2, seed=0)}
    assert len({frozenset(problems) for problems in chosen}) == 3


def test_dynamic_sampling_of_groups_that_all_say_nothing_leaves_none() -> None:
    assert filter_groups([replace(s, reward=0.0) for s in mixed_groups()], keep=9, seed=0) == []


@pytest.mark.parametrize(("length", "penalty"), [(1, 0.0), (80, 0.0), (81, 0.025), (90, 0.25), (100, 0.5), (120, 0.5)])
def test_overlong_penalty_by_hand(length: int, penalty: float) -> None:
    assert overlong_penalty(length, limit=100, buffer=20, factor=0.5) == pytest.approx(penalty)


def test_the_overlong_buffer_is_a_fifth_of_the_stage_unless_it_is_set(tmp_path: Path) -> None:
    stages = [{"name": "40", "max_response_length": 40, "iterations": 1}]
    samples = [replace(s, response_ids=[5] * 36) for s in make_samples(problems=1, n=1)]
    own = make_job(tmp_path, stages=stages, overlong_buffer={"enable": True})
    assert penalties(own, samples) == [0.5]
    longer = make_job(tmp_path, stages=stages, overlong_buffer={"enable": True, "len": 16, "penalty_factor": 2.0})
    assert penalties(longer, samples) == [1.5]
    assert penalties(make_job(tmp_path, stages=stages), samples) == [0.0]


@pytest.mark.parametrize(
    ("rule", "reward", "counts", "keeps"),
    [("loss", 0.0, False, True), ("loss", 1.0, False, True), ("advantage", 0.0, True, False),
     ("advantage", 1.0, True, True)],
)  # fmt: skip
def test_what_becomes_of_a_truncated_answer(rule: str, reward: float, counts: bool, keeps: bool) -> None:
    config = make_config("store", mask_truncated_rule=rule).policy_update
    (sample,) = make_samples(problems=1, n=1)
    cut = replace(sample, finish_reason="length", reward=reward)
    assert (in_loss(cut, config), keeps_advantage(cut, config)) == (counts, keeps)
    assert in_loss(sample, config)
    assert keeps_advantage(replace(sample, reward=0.0), config)
    unmasked = make_config("store", mask_truncated_rule=rule, mask_truncated_samples=False).policy_update
    assert in_loss(cut, unmasked)
    assert keeps_advantage(cut, unmasked)


def test_the_weights_of_a_mini_batch_add_up_over_all_that_counts(tmp_path: Path) -> None:
    samples = make_samples(problems=4, n=3)
    samples[4] = replace(samples[4], finish_reason="length")
    schedule = make_schedule(make_job(tmp_path, ppo_mini_batch_size=2, batch_size=4, ppo_epochs=2), samples)
    assert len(schedule) == 4
    for mini in schedule:
        assert set(mini.samples) - set(mini.weight) == {4} & set(mini.samples)
        assert sum(weight * samples[index].tokens for index, weight in mini.weight.items()) == pytest.approx(1.0)


def test_max_steps_cuts_the_schedule_short(tmp_path: Path) -> None:
    job = make_job(tmp_path, global_step=5, ppo_mini_batch_size=1, batch_size=4, max_steps=7)
    assert len(make_schedule(job, make_samples())) == 2


def test_the_norm_of_dr_grpo_is_the_stages_length_unless_it_is_set(tmp_path: Path) -> None:
    samples = make_samples(problems=4, n=2)
    settings: dict[str, Any] = {"loss_agg_mode": "seq-mean-token-sum-norm"}
    (mini,) = make_schedule(make_job(tmp_path, **settings), samples)
    assert set(mini.weight.values()) == {1 / (8 * 8)}
    (mini,) = make_schedule(make_job(tmp_path, loss_scale_factor=5.0, **settings), samples)
    assert set(mini.weight.values()) == {1 / (8 * 5)}
