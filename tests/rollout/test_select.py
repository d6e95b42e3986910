from collections import Counter

from components.rollout.select import in_shard, training_batch
from pipelines.compile import load_profile


def test_an_epoch_gives_every_problem_once_and_no_batch_repeats_one() -> None:
    _, config = load_profile("demo", ["batch_size=8"])
    problems = [f"p{i}" for i in range(16)]
    batches = [training_batch(config, problems, stage, iteration) for stage in (1, 2) for iteration in (0, 1)]
    assert all(len(set(batch)) == 8 for batch in batches)
    assert Counter(p for batch in batches[:2] for p in batch) == Counter(problems)
    assert Counter(p for batch in batches[2:] for p in batch) == Counter(problems)
    assert batches[:2] != batches[2:]


def test_each_problem_belongs_to_exactly_one_shard() -> None:
    owners = [[shard for shard in range(3) if in_shard(f"p{i}", shard, 3)] for i in range(300)]
    assert all(len(owner) == 1 for owner in owners)
    assert min(Counter(owner[0] for owner in owners).values()) > 60
