"""The rows that steps hand to each other, as Arrow schemas and as typed records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from components.core.errors import UserError

TEST_TYPE = pa.struct(
    [
        ("kind", pa.string()),  # stdin | function
        ("input", pa.string()),  # stdin text, or the JSON list of positional arguments
        ("output", pa.string()),  # expected stdout, or the JSON value
        ("public", pa.bool_()),  # only a public test may be shown to the model
    ]
)

PROBLEM_SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("source", pa.string()),
        ("question", pa.string()),
        ("starter_code", pa.string()),
        ("fn_name", pa.string()),  # null for a stdin problem
        ("tests", pa.list_(TEST_TYPE)),
        ("comparator", pa.string()),
        ("time_limit_s", pa.float32()),
        ("memory_limit_mb", pa.int32()),
        ("difficulty", pa.string()),
        ("platform", pa.string()),
        ("contest_date", pa.string()),  # ISO date, or null
        ("reference_solutions", pa.list_(pa.string())),
        ("content_hash", pa.string()),
        ("metadata", pa.string()),  # JSON object
    ]
)

ROLLOUT_SCHEMA = pa.schema(
    [
        ("policy_version", pa.string()),
        ("problem_id", pa.string()),
        ("sample_id", pa.int32()),
        ("turn", pa.int32()),
        ("role", pa.string()),
        ("prompt_ids", pa.list_(pa.int32())),
        ("response_ids", pa.list_(pa.int32())),
        ("rollout_logprobs", pa.list_(pa.float32())),  # one a response token, temperature applied, natural log
        ("finish_reason", pa.string()),  # stop | length | unfinished
        ("temperature", pa.float32()),
        ("top_p", pa.float32()),
        ("text", pa.string()),
        ("seconds", pa.float32()),
        ("answer", pa.string()),  # what is graded and shown as the answer; null: the text
        (
            "loss_mask",
            pa.list_(pa.bool_()),
        ),  # false where the policy did not write the token; null: it wrote all
    ]
)

REWARD_SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("sample_id", pa.int32()),
        ("turn", pa.int32()),
        ("role", pa.string()),
        ("verdict", pa.string()),  # AC WA TLE MLE OLE RE CE NF INFRA
        ("reward", pa.float32()),  # null: could not be scored, left out of the update
        ("well_formed", pa.bool_()),  # a closed code block was found
        ("tests_passed", pa.int32()),
        ("tests_total", pa.int32()),
        ("first_failure", pa.string()),  # JSON object, or null
        ("cpu_ms", pa.float32()),
        ("wall_ms", pa.float32()),
    ]
)

SECOND_MODE = "second-mode"
"""Folder beside an evaluation's rewards: the same rows, judged in the mode that `reward.mode` is not."""


@dataclass(frozen=True)
class Test:
    """One test of a problem; see TEST_TYPE for the meaning of each field."""

    __test__ = False  # keeps pytest from collecting it

    kind: str
    input: str
    output: str
    public: bool = False


@dataclass(frozen=True)
class Problem:
    """One problem row; see PROBLEM_SCHEMA."""

    problem_id: str
    source: str
    question: str
    tests: list[Test]
    starter_code: str = ""
    fn_name: str | None = None
    comparator: str = "lcb"
    time_limit_s: float = 6.0
    memory_limit_mb: int = 1024
    difficulty: str = "unknown"
    platform: str = ""
    contest_date: str | None = None
    reference_solutions: list[str] = field(default_factory=list)
    content_hash: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    def to_row(self) -> dict[str, Any]:
        """The row as `pa.Table.from_pylist(..., schema=PROBLEM_SCHEMA)` takes it."""
        row = {name: getattr(self, name) for name in PROBLEM_SCHEMA.names}
        row["tests"] = [vars(test) for test in self.tests]
        row["metadata"] = json.dumps(self.metadata, sort_keys=True)
        return row

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Problem:
        """The inverse of `to_row`."""
        values = dict(row)
        values["tests"] = [Test(**test) for test in row["tests"]]
        values["metadata"] = json.loads(row["metadata"] or "{}")
        return cls(**values)

    def sandbox_program(self, key: str, code: str | None, *, time_limit_s: float | None = None) -> dict[str, Any]:
        """This problem's tests with one candidate program, in the form that `sandbox.grade` takes.

        Args:
            key: comes back as the verdict's `id`.
            code: the program, or None if the answer held none (verdict NF). What `metadata` has as `prelude` and
                `driver` is put around it (problems whose tests are assertions).
            time_limit_s: CPU seconds a test; None for the problem's own.
        """
        tests = [self._sandbox_test(test) for test in self.tests]
        if code is not None and "driver" in self.metadata:
            code = f"{self.metadata.get('prelude', '')}\n{code}\n{self.metadata['driver']}"
        return {
            "id": key,
            "code": code,
            "tests": tests,
            "comparator": self.comparator,
            "checker": self.metadata.get("checker"),
            "time_limit_s": self.time_limit_s if time_limit_s is None else time_limit_s,
            "memory_limit_mb": self.memory_limit_mb,
        }

    def _sandbox_test(self, test: Test) -> dict[str, Any]:
        if test.kind != "function":
            return {"kind": "stdin", "input": test.input, "output": test.output}
        try:
            arguments, expected = json.loads(test.input), json.loads(test.output)
        except ValueError:
            arguments = expected = None  # no argument list: the sandbox answers INFRA, never a reward
        return {"kind": "function", "fn_name": self.fn_name, "input": arguments, "output": expected}


def graded_text(row: dict[str, Any]) -> str:
    """The text whose program a rollout row is graded by: a turn may stand for another's answer, as a judge's does."""
    text: str = row["text"] if row["answer"] is None else row["answer"]
    return text


def write_parquet(path: Path, rows: Iterable[dict[str, Any]], schema: pa.Schema) -> int:
    """Write rows to one zstd parquet file and return how many there were. The same rows give the same bytes."""
    table = pa.Table.from_pylist(list(rows), schema=schema)
    pq.write_table(table, path, compression="zstd")
    return table.num_rows


def read_parquet(path: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    """All rows of one file.

    Raises:
        UserError: the file is not parquet, or lacks a column of the schema.
    """
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, FileNotFoundError, OSError) as error:
        raise UserError(
            f"{path}: not readable as parquet ({error}). Delete its folder and run the step again."
        ) from error
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise UserError(f"{path}: lacks the column(s) {', '.join(missing)}; it has {', '.join(table.column_names)}.")
    return table.select(schema.names).to_pylist()


def read_parquet_dir(folder: Path, schema: pa.Schema) -> Iterator[dict[str, Any]]:
    """The rows of every `*.parquet` file of a folder, in the order of the file names."""
    for path in sorted(folder.glob("*.parquet")):
        yield from read_parquet(path, schema)


def read_problems(folder: Path) -> list[Problem]:
    """The problems of one split.

    Raises:
        UserError: the folder holds no problem.
    """
    problems = [Problem.from_row(row) for row in read_parquet_dir(folder, PROBLEM_SCHEMA)]
    if not problems:
        raise UserError(f"{folder}: holds no problem row; look at the filter counts in the dataset's manifest.json.")
    return problems
