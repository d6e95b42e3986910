from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.core.errors import UserError
from components.core.store import open_store
from components.policy_update.rollout_io import Sample, read_samples, scored
from tests.policy_update.helpers import make_config, make_samples, save_rewards


def through_the_store(folder: Path, samples: Sequence[Sample], *, shards: int = 1) -> list[Sample]:
    store = open_store(str(folder))
    save_rewards(store, make_config(folder), samples, shards=shards)
    base = folder / "runs" / "run" / "stage-1" / "iter-00"
    return read_samples(
        (base / "rollout" / f"shard-{s:02d}", base / "reward" / f"shard-{s:02d}") for s in range(shards)
    )


def test_shards_do_not_change_the_samples(tmp_path: Path) -> None:
    samples = make_samples(problems=6)
    one = through_the_store(tmp_path / "one", samples)
    three = through_the_store(tmp_path / "three", samples, shards=3)
    assert one == three
    assert [(s.problem_id, s.sample_id, s.response_ids, s.reward) for s in one] == [
        (s.problem_id, s.sample_id, s.response_ids, s.reward) for s in samples
    ]


def test_a_null_reward_is_left_out_and_not_zero(tmp_path: Path) -> None:
    samples = make_samples(problems=1)
    samples[1] = replace(samples[1], reward=None)
    read = through_the_store(tmp_path, samples)
    assert read[1].reward is None
    assert len(scored(read)) == len(samples) - 1


def test_an_iteration_without_any_reward_is_an_error(tmp_path: Path) -> None:
    samples = [replace(sample, reward=None) for sample in make_samples(problems=1)]
    with pytest.raises(UserError, match="none of the 4 samples has a reward"):
        through_the_store(tmp_path, samples)


def test_a_length_that_does_not_fit_is_named(tmp_path: Path) -> None:
    samples = make_samples(problems=1)
    samples[2] = replace(samples[2], response_ids=[5, 6, 7], rollout_logprobs=[-1.0])
    with pytest.raises(UserError, match="problem p0, sample 2: 1 log-probs for 3 response tokens"):
        through_the_store(tmp_path, samples)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rollout_logprobs": [-1.0, float("nan")]}, "sample 2: a log-prob is not a finite number"),
        ({"rollout_logprobs": [-1.0, float("-inf")]}, "sample 2: a log-prob is not a finite number"),
        ({"temperature": 0.0}, "sample 2: temperature=0"),
    ],
)
def test_what_would_make_every_gradient_nan_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    samples = make_samples(problems=1)
    samples[2] = replace(samples[2], response_ids=[5, 6], **{"rollout_logprobs": [-1.0, -1.0], **changes})
    with pytest.raises(UserError, match=message):
        through_the_store(tmp_path, samples)


def test_a_missing_reward_row_is_named(tmp_path: Path) -> None:
    samples = make_samples(problems=1)
    through_the_store(tmp_path / "all", samples)
    through_the_store(tmp_path / "less", samples[:-1])
    where = "runs/run/stage-1/iter-00"
    with pytest.raises(UserError, match="no reward row"):
        read_samples([(tmp_path / "all" / where / "rollout/shard-00", tmp_path / "less" / where / "reward/shard-00")])
