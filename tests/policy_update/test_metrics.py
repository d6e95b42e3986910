from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from components.core.errors import UserError
from components.policy_update.flops import training_flops
from components.policy_update.job import Job
from components.policy_update.launch import _killed
from components.policy_update.messages import rank_error
from components.policy_update.metrics import (
    TokenSums,
    batch_metrics,
    mismatch_tokens,
    over_steps,
    staleness_metrics,
    with_sample_size,
)
from components.policy_update.models import freeze
from tests.policy_update.helpers import make_config, make_samples, tiny_model


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
    first = rank_error(tmp_path)
    assert isinstance(first, RuntimeError)
    assert str(first) == "rank 1 of the update failed:\nValueError: the cause"
    (tmp_path / "error-2.json").write_text(json.dumps({"rank": 2, "known": True, "text": "the disk is full"}))
    known = rank_error(tmp_path)
    assert isinstance(known, UserError)
    assert str(known) == "the disk is full"


def test_a_rank_that_dies_without_a_word_was_probably_out_of_memory(tmp_path: Path) -> None:
    assert rank_error(tmp_path) is None
    assert "out of memory" in str(_killed(137))


def test_pass_at_k_and_what_ended_how_by_hand() -> None:
    rewards = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    samples = [
        replace(
            sample, reward=reward, response_ids=[5] * (number + 1), finish_reason="length" if number > 5 else "stop"
        )
        for number, (sample, reward) in enumerate(zip(make_samples(problems=2, n=4), rewards, strict=True))
    ]
    values = batch_metrics(samples, 2)
    assert values["batch/pass@1"] == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert values["batch/pass@2"] == pytest.approx(((1 - 3 / 6) + (1 - 1 / 6)) / 2)
    assert values["critic/score_by_finish/stop"] == pytest.approx(1 / 6)
    assert values["critic/score_by_finish/length"] == 1.0
    assert values["response_length_terminated/mean"] == 3.5


def test_staleness_counts_updates_over_stages(tmp_path: Path) -> None:
    stages = [{"name": name, "max_response_length": 8, "iterations": 3} for name in ("a", "b")]
    config = make_config(tmp_path, stages=stages)
    job = Job(
        config=config, stage=2, iteration=1, global_step=0, policy="", policy_version="stage-2/iter-00", optimizer=None,
        shards=[], output="",
    )  # fmt: skip
    versions = ["stage-2/iter-00", "stage-1/iter-02", "stage-1/iter-00", "base"]
    samples = [
        replace(s, policy_version=version) for s, version in zip(make_samples(problems=1), versions, strict=True)
    ]
    values = staleness_metrics(job, samples)
    assert values["sampling/staleness/mean"] == (0 + 1 + 3 + 4) / 4
    assert values["sampling/staleness/max"] == 4
    assert values["sampling/stale_share"] == 0.75


def test_effective_sample_size_of_two_engines_by_hand() -> None:
    sums = TokenSums()
    mismatch_tokens(sums, torch.tensor([2.0, 1.0, 1.0, 1.0]).log(), torch.zeros(4))
    values = with_sample_size(sums.metrics())
    assert values["sampling/ess"] == pytest.approx((5 / 4) ** 2 / (7 / 4))
    assert values["sampling/importance_sampling_ratio/max"] == pytest.approx(2.0)
    assert values["sampling/sampling_logp_difference/mean"] == pytest.approx(math.log(2) / 4)
    assert "sampling/importance_sampling_ratio/square" not in values


def test_flops_of_a_tiny_model_by_hand() -> None:
    model = tiny_model(tied=False)
    # Two layers: q 32x32, k and v 32x16, o 32x32, three matrices of 32x64; the head 48x32. The embedding is a look-up.
    weights = 2 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64) + 48 * 32
    assert training_flops(model, [10]) == 6 * weights * 10 + 12 * 2 * 32 * 100
    freeze(model, 1)
    trained = (weights - 48 * 32) // 2
    assert training_flops(model, [10]) == (2 * weights + 4 * trained) * 10 + 12 * 2 * 32 * 100
    # A tied head is one matrix with the embedding, and it is multiplied with.
    tied = tiny_model()
    assert training_flops(tied, [10]) == 6 * weights * 10 + 12 * 2 * 32 * 100
    for parameter in tied.parameters():  # as ZeRO-3 leaves them on a rank
        parameter.ds_shape, parameter.data = parameter.shape, torch.empty(0)
    assert training_flops(tied, [10]) == 6 * weights * 10 + 12 * 2 * 32 * 100
