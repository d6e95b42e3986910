"""Rows with a value changed to something odd: each becomes a problem or a counted reason, none stops the step."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from components.core.config import SourceConfig
from components.core.schema import PROBLEM_SCHEMA
from components.data_prep.literals import parse_literal
from components.data_prep.normalize import limits, megabytes, seconds
from components.data_prep.rows import RawBatch, Source
from components.data_prep.spool import parse_batch, spooled
from tests.data_prep.rows import lcb_function_row, lcb_row, make_config, pi_row, taco_function_row, taco_row

ODD: list[Any] = [
    *(None, "", 0, -1, 1.5, float("nan"), True, [], {}, [[]], [None], {"a": 1}, "[1", "{'a'", "null", "\ud800", "1"),
    *('{"inputs":[1],"outputs":[2]}', ["a"], [["a"]], [{"input": 1}], 10**30, "9" * 5000, "99999999999 gigabytes"),
]
ROWS: list[tuple[Any, dict[str, Any]]] = [
    ("taco", taco_row()),
    ("taco", taco_function_row("f", "def f(x): return x", [([n], n) for n in range(6)])),
    ("primeintellect", pi_row()),
    ("livecodebench", lcb_row()),
    ("livecodebench", lcb_function_row()),
    ("deepcoder", {"problem": "p", "tests": [{"input": "1", "output": "3"}] * 6, "metadata": {}, "solutions": ["y"]}),
]


def changed(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """The value with one part of it, at any depth, made odd; values inside of text too."""
    if rng.random() < 0.25 or depth > 4 or not value:
        return copy.deepcopy(rng.choice(ODD))
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            return rng.choice([value[: len(value) // 2], value + "\ud800", copy.deepcopy(rng.choice(ODD))])
        made = changed(inner, rng, depth + 1)
        return json.dumps(made) if rng.random() < 0.5 else repr(made)
    if isinstance(value, list | dict):
        value = copy.copy(value)
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        value[key] = changed(value[key], rng, depth + 1)
        return value
    return copy.deepcopy(rng.choice(ODD))


def test_every_odd_row_is_a_problem_or_a_reason(tmp_path: Path) -> None:
    rng = random.Random(0)
    config = make_config(tmp_path, [{"format": "taco", "path": "x"}])
    kept = left = 0
    for number in range(600):
        form, row = rng.choice(ROWS)
        key = rng.choice(list(row))
        row = row | {key: changed(row[key], rng)}
        source = Source(form, SourceConfig(format=form, path="x", trusted=True))
        parsed = parse_batch(RawBatch("f", 0, 0, [row]), source, config, None, number, tmp_path)
        assert parsed.rows == len(parsed.entries) + len(parsed.dropped) == 1
        assert all(dropped.reason and dropped.detail for dropped in parsed.dropped)
        left += len(parsed.dropped)
        for _, problem in spooled(parsed.entries, tmp_path):
            pa.Table.from_pylist([problem.to_row()], schema=PROBLEM_SCHEMA)
            problem.sandbox_program("x", "y")
            kept += 1
    assert kept > 100
    assert left > 100


def test_random_values_survive_being_printed_by_python() -> None:
    rng = random.Random(1)
    texts = ["", "it's", 'a "b"', "\\", "\n\t\x00", "é数", "True", "(1,)", "'''", "a\\'b", "]", "None, "]

    def value(depth: int) -> Any:
        kind = rng.randrange(8 if depth < 4 else 5)
        if kind < 5:
            return [rng.choice(texts), rng.randrange(-9, 10**20), rng.random() * 1e9, None, rng.random() < 0.5][kind]
        if kind == 5:
            return {rng.choice(texts): value(depth + 1) for _ in range(rng.randrange(4))}
        items = [value(depth + 1) for _ in range(rng.randrange(4))]
        return tuple(items) if kind == 6 else items

    def as_lists(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: as_lists(part) for key, part in item.items()}
        return [as_lists(part) for part in item] if isinstance(item, list | tuple) else item

    for _ in range(500):
        made = [value(0)]
        assert parse_literal(repr(made), "k") == as_lists(made)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2.0 seconds", 2.0), ("1500 ms", 1.5), ("900 milliseconds", 0.9), (3, 3.0), (0, None), (None, None), ("", None)],
)
def test_time_limits_in_any_unit(text: Any, expected: float | None) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("256.0 megabytes", 256),
        ("262144 KB", 256),
        ("268435456 bytes", 256),
        ("1 gigabyte", 1024),
        (64, 64),
        (None, None),
    ],
)
def test_memory_limits_in_any_unit(text: Any, expected: float | None) -> None:
    assert megabytes(text) == expected


def test_absurd_limits_are_capped() -> None:
    assert limits("1e9 s 999999", 1e12) == {"time_limit_s": 6.0, "memory_limit_mb": 4096}
    assert limits("999999 seconds", None) == {"time_limit_s": 30.0, "memory_limit_mb": 1024}
