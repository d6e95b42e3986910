from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from components.policy_update.batching import collate
from components.policy_update.rows import Row, make_rows, plan
from components.policy_update.schedule import mini_batches
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


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("ranks", [1, 2, 3, 40])
@pytest.mark.parametrize("budget", [1, 40, 100, 10_000])
def test_a_plan_computes_every_sample_once_within_the_budget(budget: int, ranks: int, share: bool) -> None:
    samples = make_samples(problems=5, n=4)
    rows = make_rows(samples, range(20), budget=budget, share=share)
    shares = plan(rows, budget=budget, ranks=ranks, hidden=32)
    assert len({len(part) for part in shares}) == 1
    batches = [batch for part in shares for batch in part]
    assert sorted(index for batch in batches for row in batch for index in row.samples) == list(range(20))
    for batch in batches:
        assert sum(row.length for row in batch) <= budget or len(batch) == 1


def test_mixed_lengths_fill_their_micro_batches_and_load_ranks_alike() -> None:
    rng = random.Random(0)
    lengths = [rng.randrange(10, 1000) for _ in range(200)]
    rows = [Row((number,), length, length**2 / 2) for number, length in enumerate(lengths)]
    shares = plan(rows, budget=4096, ranks=4, hidden=64)
    assert len(shares[0]) == -(-sum(lengths) // (4 * 4096))  # no more passes than the tokens ask for
    loads = [sum(row.cost(64) for batch in part for row in batch) for part in shares]
    assert max(loads) < 1.02 * min(loads)


def test_with_room_for_all_every_rank_gets_work() -> None:
    rows = make_rows(make_samples(problems=8, n=4), range(32), budget=10_000)
    assert all(batch for part in plan(rows, budget=10_000, ranks=2, hidden=32) for batch in part)


def test_rows_count_their_tokens_and_pairs() -> None:
    first, second = make_samples(problems=1, n=2)
    samples = [replace(first, response_ids=[4] * 5), replace(second, response_ids=[4] * 3)]
    prompt = len(first.prompt_ids)
    (row,) = make_rows(samples, [0, 1], budget=100)
    assert row.length == prompt + 4 + 2
    # In the limit of many tokens: half the square of prompt and answer, less the prompt's own half the second time.
    assert row.pairs == (prompt + 4) ** 2 / 2 + (prompt + 2) ** 2 / 2 - prompt**2 / 2


def test_a_packed_row_by_hand() -> None:
    first, second, third = make_samples(problems=1, n=3)
    prompt = [10, 11, 12]
    samples = [
        replace(first, prompt_ids=prompt, response_ids=[20, 21], temperature=0.5),
        replace(second, prompt_ids=prompt, response_ids=[30, 31, 32], temperature=2.0),
        replace(third, prompt_ids=[13], response_ids=[40, 41]),
    ]
    batch = collate([Row((0, 1), 6, 0), Row((2,), 2, 0)], samples, multiple=3)
    # The last token of an answer predicts nothing. One token is added, to come to a multiple of 3.
    assert batch.input_1T.tolist() == [[10, 11, 12, 20, 30, 31, 13, 40, 0]]
    assert batch.position_1T.tolist() == [[0, 1, 2, 3, 3, 4, 0, 1, 0]]
    assert batch.packing.lengths == (3, 1, 2, 2, 1)
    assert batch.packing.prompts == (None, 0, 0, None, None)
    assert batch.source_N.tolist() == [2, 3, 2, 4, 5, 6, 7]
    assert batch.target_N.tolist() == [20, 21, 30, 31, 32, 40, 41]
    assert batch.temperature_N.tolist() == pytest.approx([0.5, 0.5, 2.0, 2.0, 2.0, 0.8, 0.8])
    assert batch.lengths == (2, 3, 2)


@pytest.mark.parametrize("multiple", [1, 2])
def test_a_dummy_has_as_few_tokens_as_can_be_and_belongs_to_nobody(multiple: int) -> None:
    batch = collate([], [], multiple=multiple)
    assert batch.samples == ()
    assert batch.input_1T.shape == (1, multiple)
    assert batch.target_N.shape == torch.Size([1])
