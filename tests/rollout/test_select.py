from collections import Counter

import pytest

from components.rollout.select import shard_members, training_batch
from pipelines.compile import load_profile


def test_an_epoch_gives_every_problem_once_and_no_batch_repeats_one() -> None:
    _, config = load_profile("demo", ["batch_size=8"])
    problems = [f"p{i}" for i in range(16)]
    batches = [training_batch(config, problems, stage, iteration) for stage in (1, 2) for iteration in (0, 1)]
    assert all(len(set(batch)) == 8 for batch in batches)
    assert Counter(p for batch in batches[:2] for p in batch) == Counter(problems)
    assert Counter(p for batch in batches[2:] for p in batch) == Counter(problems)
    assert batches[:2] != batches[2:]


@pytest.mark.parametrize("problems", [5, 8, 11, 15, 16, 23])
def test_no_batch_holds_a_problem_twice_whatever_their_number(problems: int) -> None:
    _, config = load_profile("demo", ["batch_size=8", "stages=[{name: a, max_response_length: 8, iterations: 9}]"])
    for iteration in range(9):
        batch = training_batch(config, list(range(problems)), 1, iteration)
        assert len(batch) == len(set(batch)) == min(8, problems)


def test_each_problem_belongs_to_exactly_one_shard_and_shards_are_even() -> None:
    problems = [f"p{i}" for i in range(40)]
    shards = [shard_members(problems, shard, 3) for shard in range(3)]
    assert sorted(name for shard in shards for name in shard) == sorted(problems)
    assert sorted(len(shard) for shard in shards) == [13, 13, 14]
    assert shards == [shard_members(problems[::-1], shard, 3) for shard in range(3)]


def test_dynamic_sampling_asks_for_more_problems() -> None:
    filtered = ["policy_update.filter_groups={enable: true, oversample: 1.3}"]
    _, config = load_profile("demo", ["batch_size=8", *filtered])
    assert len(training_batch(config, list(range(40)), 1, 0)) == 11
    _, config = load_profile("demo", ["batch_size=8", "policy_update.filter_groups.oversample=1.3"])
    assert len(training_batch(config, list(range(40)), 1, 0)) == 8
