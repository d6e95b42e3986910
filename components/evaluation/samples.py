"""Joins problems, answers and verdicts into one row a sample."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from components.core.errors import UserError
from components.core.schema import REWARD_SCHEMA, SECOND_MODE, graded_text, read_parquet_dir
from sandbox.extract import extract_code

SAMPLE_SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("sample_id", pa.int32()),
        ("verdict", pa.string()),  # AC WA TLE MLE OLE RE CE NF INFRA
        ("correct", pa.bool_()),  # null for INFRA
        ("well_formed", pa.bool_()),  # a closed code block was found
        ("finish_reason", pa.string()),  # stop | length | unfinished; null where unknown
        ("response_tokens", pa.int32()),  # null where unknown
        ("tests_passed", pa.int32()),
        ("tests_total", pa.int32()),
        ("first_failure", pa.string()),  # JSON object {test, input, expected, ...}, or null; long values are cut
        ("cpu_ms", pa.float32()),
        ("program", pa.string()),  # the code that was judged, or null
        ("excerpt", pa.string()),  # where there is no program: the end of the answer
        ("other_verdict", pa.string()),  # in the other mode of judging; null where it was not judged there
    ]
)

QUESTION_SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("source", pa.string()),
        ("difficulty", pa.string()),
        ("platform", pa.string()),
        ("contest_date", pa.string()),
        ("question", pa.string()),
        ("starter_code", pa.string()),
        ("metadata", pa.string()),  # JSON object
    ]
)

_EXCERPT = 1500
"""Characters kept of an answer without a program."""

_FAILURE = 1000
"""Characters kept of a failing test's input and of its output."""


@dataclass(frozen=True)
class Graded:
    """Everything that one evaluation rests on."""

    questions: list[dict[str, Any]]
    """Rows of QUESTION_SCHEMA, sorted by problem_id, only problems with a sample."""
    samples: list[dict[str, Any]]
    """Rows of SAMPLE_SCHEMA, sorted by problem_id and sample_id."""
    unsampled: int
    """Held-out problems for which there is no sample."""


def read_questions(folder: Path) -> list[dict[str, Any]]:
    """The problems of a split without their tests, which can be gigabytes.

    Raises:
        UserError: no problem, or a file that is not a problem file.
    """
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.parquet")):
        try:
            rows += pq.read_table(path, columns=QUESTION_SCHEMA.names).to_pylist()
        except (pa.ArrowInvalid, OSError, KeyError) as error:
            raise UserError(f"{path}: not a file of problems ({error}). Run prepare_data again.") from error
    if not rows:
        raise UserError(f"{folder}: holds no problem row; look at the filter counts in the dataset's manifest.json.")
    return rows


def _last_turns(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """The final turn of each sample: that is its answer."""
    last: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        key = (row["problem_id"], row["sample_id"])
        if key not in last or row["turn"] >= last[key]["turn"]:
            last[key] = row
    return last


def _answers(folder: Path) -> Iterator[dict[str, Any]]:
    """The rollout rows of a folder, with the number of tokens instead of the tokens."""
    columns = ["problem_id", "sample_id", "turn", "finish_reason", "text", "answer", "response_ids"]
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path, columns=columns)
        tokens = pc.list_value_length(table["response_ids"])
        yield from table.drop_columns(["response_ids"]).append_column("response_tokens", tokens).to_pylist()


def _sample(reward: dict[str, Any], answer: dict[str, Any], other_verdict: str | None) -> dict[str, Any]:
    text = graded_text(answer)
    program = extract_code(text)
    verdict = reward["verdict"]
    return {
        **{name: reward[name] for name in SAMPLE_SCHEMA.names if name in reward},
        "correct": None if verdict == "INFRA" else verdict == "AC",
        "finish_reason": answer["finish_reason"],
        "response_tokens": answer["response_tokens"],
        "program": program,
        "excerpt": None if program else text[-_EXCERPT:],
        "other_verdict": other_verdict,
    }


def attach_failing_tests(samples: list[dict[str, Any]], folder: Path) -> None:
    """Replace the number of the first failing test, which is what rewards hold, by the test itself.

    Only the tests that are asked for leave Arrow's memory; the rest of a split can be gigabytes.

    Args:
        samples: rows of SAMPLE_SCHEMA, changed in place.
        folder: of the split's problem files.
    """
    asked: dict[str, list[tuple[dict[str, Any], int]]] = {}
    for sample in samples:
        number = json.loads(sample["first_failure"] or "null")
        if isinstance(number, int):
            asked.setdefault(sample["problem_id"], []).append((sample, number))
    for path in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(16, columns=["problem_id", "tests"]):
            for problem_id, tests in zip(batch["problem_id"].to_pylist(), batch["tests"], strict=True):
                for sample, number in asked.get(problem_id, []):
                    sample["first_failure"] = json.dumps(_failing_test(tests.values, number), ensure_ascii=False)


def _failing_test(tests: pa.StructArray, number: int) -> dict[str, Any]:
    if not 0 <= number < len(tests):
        return {"test": number + 1}
    test = tests[number].as_py()
    return {
        "test": f"{number + 1} of {len(tests)}{' (public)' if test['public'] else ''}",
        "input": _cut(test["input"]),
        "expected": _cut(test["output"]),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _FAILURE else f"{text[:_FAILURE]} … ({len(text)} characters)"


def read_graded(questions: list[dict[str, Any]], shards: Iterable[tuple[Path, Path]]) -> Graded:
    """Join the problems with the shards' answers and verdicts.

    Args:
        questions: see `read_questions`.
        shards: (rollout folder, reward folder) pairs.

    Raises:
        UserError: an answer without verdict or the reverse, a sample that two shards hold, or one of a problem that is
            not in the split.
    """
    known = {row["problem_id"]: row for row in questions}
    samples: dict[tuple[str, int], dict[str, Any]] = {}
    for rollout_folder, reward_folder in shards:
        answers = _last_turns(_answers(rollout_folder))
        rewards = _last_turns(read_parquet_dir(reward_folder, REWARD_SCHEMA))
        second = _last_turns(read_parquet_dir(reward_folder / SECOND_MODE, REWARD_SCHEMA))
        if answers.keys() != rewards.keys():
            key = sorted(answers.keys() ^ rewards.keys())[0]
            where = rollout_folder if key in answers else reward_folder
            raise UserError(f"{where}: sample {key[1]} of {key[0]} has no counterpart. Run the reward step again.")
        for key, reward in rewards.items():
            if key in samples:
                raise UserError(f"{reward_folder}: sample {key[1]} of {key[0]} is in another shard too.")
            if key[0] not in known:
                raise UserError(f"{reward_folder}: problem {key[0]} is not in the held-out split.")
            samples[key] = _sample(reward, answers[key], second[key]["verdict"] if key in second else None)
    if not samples:
        raise UserError("no sample to evaluate: the rollout steps wrote no row")
    sampled = {key[0] for key in samples}
    return Graded(
        [known[name] for name in sorted(sampled)],
        [samples[key] for key in sorted(samples)],
        len(known) - len(sampled),
    )
