"""Which sequences are computed together, and on which rank.

Every rank makes the same plan from the same samples, so all run the same number of forward and backward passes,
which ZeRO-3's collectives need, without asking each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from components.policy_update.rollout_io import Sample


@dataclass(frozen=True)
class Row:
    """A prompt, then one or more answers to it, each of which sees the prompt and itself only."""

    samples: tuple[int, ...]
    length: int
    """Tokens to compute."""
    pairs: float
    """How many pairs of tokens attention looks at."""

    def cost(self, hidden: int) -> float:
        """Work of one layer: of T tokens and P pairs about 24 h^2 T + 4 h P operations a pass, in units of 4 h."""
        return 6 * hidden * self.length + self.pairs


def make_rows(samples: Sequence[Sample], chosen: Iterable[int], *, budget: int, share: bool = True) -> list[Row]:
    """Put answers to the same prompt into one row, so that the prompt is computed once.

    Args:
        samples: all samples.
        chosen: which of them to compute.
        budget: tokens of one row beyond which no answer is added.
        share: False makes a row of each answer.
    """
    open_rows: dict[tuple[int, ...], Row] = {}
    rows: list[Row] = []
    for index in chosen:
        sample = samples[index]
        prompt, answer = len(sample.prompt_ids), len(sample.response_ids) - 1  # the last token predicts nothing
        key = tuple(sample.prompt_ids)
        row = open_rows.get(key)
        if row is not None and row.length + answer <= budget and share:
            pairs = row.pairs + answer * (prompt + answer / 2)
            open_rows[key] = Row((*row.samples, index), row.length + answer, pairs)
            continue
        if row is not None:
            rows.append(row)
        open_rows[key] = Row((index,), prompt + answer, (prompt + answer) ** 2 / 2)
    return [*rows, *open_rows.values()]


def plan(rows: Sequence[Row], *, budget: int, ranks: int, hidden: int) -> list[list[list[Row]]]:
    """Deal rows out to micro-batches of at most `budget` tokens, and those to ranks, so that ranks wait little.

    A row longer than the budget is a micro-batch of its own.

    Args:
        rows: what to compute.
        budget: tokens.
        ranks: those that have samples of their own.
        hidden: the model's hidden size, which says what a token costs in relation to a pair of tokens.

    Returns:
        For each rank its micro-batches; all ranks have equally many, and an empty one stands for a dummy.
    """
    if not rows:
        return [[] for _ in range(ranks)]
    packed = _first_fit(rows, budget)
    # No more passes than needed, but the same number on each rank: spread over them, the last is not half empty.
    count = -(-len(packed) // ranks) * ranks
    batches = _spread(rows, budget, count, hidden) or packed + [[] for _ in range(count - len(packed))]
    batches.sort(key=lambda batch: -sum(row.cost(hidden) for row in batch))
    return [batches[rank::ranks] for rank in range(ranks)]


def _first_fit(rows: Sequence[Row], budget: int) -> list[list[Row]]:
    """First-fit decreasing: at most 11/9 of the fewest bins, plus one."""
    batches: list[list[Row]] = []
    room: list[int] = []
    for row in sorted(rows, key=lambda row: (-row.length, row.samples)):
        number = next((number for number, left in enumerate(room) if row.length <= left), len(batches))
        if number == len(batches):
            batches.append([])
            room.append(budget)
        batches[number].append(row)
        room[number] -= row.length
    return batches


def _spread(rows: Sequence[Row], budget: int, count: int, hidden: int) -> list[list[Row]] | None:
    """Each row to the cheapest of `count` batches that has room for it; None if one fits nowhere."""
    batches: list[list[Row]] = [[] for _ in range(count)]
    tokens, costs = [0] * count, [0.0] * count
    for row in sorted(rows, key=lambda row: (-row.cost(hidden), row.samples)):
        fitting = [n for n in range(count) if tokens[n] + row.length <= budget or not batches[n]]
        if not fitting:
            return None
        number = min(fitting, key=lambda n: costs[n])
        batches[number].append(row)
        tokens[number] += row.length
        costs[number] += row.cost(hidden)
    return batches
