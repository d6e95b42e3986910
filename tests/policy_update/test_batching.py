from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from components.policy_update.batching import Row, collate, make_rows, mini_batches, plan
from tests.policy_update.helpers import make_samples


def test_mini_batches_hold_whole_problems_each_once() -> None:
    samples = make_samples(problems=7, n=3)
    batches = mini_batches(samples, 2, seed=5)
    assert [len(batch) for batch in batches] == [6, 6, 6, 3]
    assert sorted(index for batch in batches for index in batch) == list(range(21))
    problems = [{samples[index].problem_id for index in batch} for batch in batches]
    assert sum(len(found) for found in problems) == 7


def test_mini_batches_depend_on_the_seed_alone() -> None:
    samples = make_samples(problems=7, n=3)
    assert mini_batches(samples, 2, seed=5) == mini_batches(samples, 2, seed=5)
    assert mini_batches(samples, 2, seed=5) != mini_batches(samples, 2, seed=6)


@pytest.mark.parametrize("hidden", [None, 32])
@pytest.mark.parametrize("ranks", [1, 2, 3, 40])
@pytest.mark.parametrize("budget", [1, 40, 100, 10_000])
def test_a_plan_computes_every_sample_once_within_the_budget(budget: int, ranks: int, hidden: int | None) -> None:
    samples = make_samples(problems=5, n=4)
    rows = make_rows(samples, range(20), budget=budget, hidden=hidden)
    shares = plan(rows, budget=budget, ranks=ranks)
    assert len({len(share) for share in shares}) == 1
    batches = [batch for share in shares for batch in share]
    assert sorted(index for batch in batches for row in batch for index in row.samples) == list(range(20))
    for batch in batches:
        padded = len(batch) * max((row.length for row in batch), default=0)
        assert padded <= budget or len(batch) == 1


def test_with_room_for_all_every_rank_gets_work() -> None:
    rows = make_rows(make_samples(problems=8, n=4), range(32), budget=10_000, hidden=None)
    assert all(batch for share in plan(rows, budget=10_000, ranks=2) for batch in share)


def test_rows_of_like_length_meet_so_that_little_is_padding() -> None:
    rows = [Row((number,), 10 if number % 2 else 100) for number in range(40)]
    (batches,) = plan(rows, budget=400, ranks=1)
    padding = sum(len(batch) * max(r.length for r in batch) - sum(r.length for r in batch) for batch in batches)
    assert padding <= 90


def test_answers_share_a_prompt_only_while_that_is_cheaper() -> None:
    short, long = [replace(s, response_ids=s.response_ids * 1) for s in make_samples(problems=1, n=4)], []
    for sample in short:
        long.append(replace(sample, response_ids=[5] * 5000))
    assert len(make_rows(short, range(4), budget=100_000, hidden=512)) == 1
    assert len(make_rows(long, range(4), budget=100_000, hidden=512)) == 4


def test_positions_and_targets_of_a_shared_row_by_hand() -> None:
    first, second = make_samples(problems=1, n=2)
    prompt = [10, 11, 12]
    samples = [
        replace(first, prompt_ids=prompt, response_ids=[20, 21], temperature=0.5),
        replace(second, prompt_ids=prompt, response_ids=[30, 31, 32], temperature=2.0),
    ]
    batch = collate([Row((0, 1), 6)], samples)
    assert batch.input_BT.tolist() == [[10, 11, 12, 20, 30, 31]]  # the last token of an answer predicts nothing
    assert batch.position_BT is not None
    assert batch.position_BT.tolist() == [[0, 1, 2, 3, 3, 4]]
    assert batch.source_N.tolist() == [2, 3, 2, 4, 5]
    assert batch.target_N.tolist() == [20, 21, 30, 31, 32]
    assert batch.temperature_N.tolist() == [0.5, 0.5, 2.0, 2.0, 2.0]
    assert batch.lengths == (2, 3)
    assert batch.mask_B1TT is not None
    visible = [[t for t in range(6) if row[t]] for row in batch.mask_B1TT[0, 0].tolist()]
    assert visible == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, 4, 5]]


def test_a_dummy_has_one_token_and_belongs_to_nobody() -> None:
    batch = collate([], [])
    assert batch.samples == ()
    assert batch.input_BT.shape == (1, 1)
    assert batch.target_N.shape == torch.Size([1])
