"""Raw rows by hand, in the form of each source, and the configuration to prepare them with."""

from __future__ import annotations

import base64
import json
import os
import pickle
import random
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from components.core.config import Config, parse_config

SHARED = Path(os.environ.get("DEEPCODER_SHARED_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


def shared(name: str) -> Path:
    """A file of the shared data; skips the test where it is absent."""
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{path} is absent: set DEEPCODER_SHARED_DATA to the folder that SOURCES.md describes")
    return path


def make_config(folder: Path, sources: list[dict[str, Any]], **data: Any) -> Config:
    """A small run over the given sources, with its store below `folder`."""
    return parse_config(
        {
            "profile": "test",
            "model_name": "random:1x32",
            "learning_rate": 1e-5,
            "batch_size": 1,
            "context_length": 4096,
            "store": str(folder / "store"),
            "data": {"sources": sources, **data},
            "stages": [{"name": "16", "max_response_length": 16, "iterations": 1}],
            "policy_update": {"ppo_mini_batch_size": 1},
            "evaluation": {"max_response_length": 16},
        },
        "test",
    )


def write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def taco_row(question: str = "", **changes: Any) -> dict[str, Any]:
    """A stdin problem: print the sum of two integers."""
    pairs = [(1, 2), (0, 0), (5, 7), (10, -3), (100, 250), (9, 9)]
    columns = {"inputs": [f"{a} {b}\n" for a, b in pairs], "outputs": [f"{a + b}\n" for a, b in pairs]}
    row: dict[str, Any] = {
        "question": question or "Read two integers from one line of the standard input and print their sum.",
        "solutions": json.dumps(["a, b = map(int, input().split())\nprint(a + b)\n"]),
        "starter_code": "",
        "input_output": json.dumps(columns),
        "difficulty": "EASY",
        "raw_tags": "[]",
        "name": None,
        "source": "codeforces",
        "tags": "['Mathematics']",
        "skill_types": "[]",
        "url": "https://example.org/1",
        "Expected Auxiliary Space": None,
        "time_limit": "8.0 seconds",
        "date": None,
        "picture_num": None,
        "memory_limit": "2048.0 megabytes",
        "Expected Time Complexity": None,
    }
    return row | changes


def words(seed: int) -> str:
    vocabulary = ["alpha", "beta", "gamma", "delta", "graph", "tree", "array", "query", "value", "path", "cost", "move"]
    return " ".join(random.Random(seed).choices(vocabulary, k=60))


def sum_row(seed: int, **changes: Any) -> dict[str, Any]:
    """A sum problem with its own statement and tests."""
    pairs = [(seed, n) for n in range(6)]
    columns = {"inputs": [f"{a} {b}\n" for a, b in pairs], "outputs": [f"{a + b}\n" for a, b in pairs]}
    return taco_row(words(seed), input_output=json.dumps(columns)) | changes


def taco_function_row(name: str, code: str, cases: list[tuple[list[Any], Any]], wrap: bool = True) -> dict[str, Any]:
    """A function problem; outputs are wrapped in lists of one, as most of TACO's are."""
    columns = {
        "fn_name": name,
        "inputs": [arguments for arguments, _ in cases],
        "outputs": [[value] if wrap else value for _, value in cases],
    }
    return taco_row(
        f"Write the function {name}; see its name for what it has to return to the caller.",
        starter_code=f"def {name}(x):\n\t",
        input_output=json.dumps(columns),
        solutions=json.dumps([code]),
    )


def pi_row(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A function problem: the largest of a list."""
    lists = [[1], [1, 2], [3, 1, 2], [-5, -7], [0, 0], [8, 9, 4]]
    cases = [{"type": "function_call", "fn_name": "largest", "input": [x], "output": max(x)} for x in lists]
    row: dict[str, Any] = {
        "source": "apps",
        "task_type": "verifiable_code",
        "in_source_id": "1",
        "prompt": "Solve the following coding problem using the programming language python:\n\n"
        "Write largest(values) that returns the greatest element of a list which is never empty.",
        "gold_standard_solution": "```python\ndef largest(values):\n    return max(values)\n```",
        "verification_info": repr({"language": "python", "test_cases": cases}),
        "metadata": "{'difficulty': 'interview', 'time_limit': None}",
        "problem_id": f"vcp_{number}",
    }
    return row | changes


def encode_private(cases: list[dict[str, Any]]) -> str:
    """LiveCodeBench's encoding."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(cases)))).decode()


def lcb_row(number: str = "abc999_a", date: str = "2024-09-01T00:00:00", **changes: Any) -> dict[str, Any]:
    """A stdin problem: print a number doubled; one public test, five private ones."""
    cases = [{"input": f"{n}\n", "output": f"{2 * n}\n", "testtype": "stdin"} for n in (1, 2, 5, 10, 400, 7)]
    row: dict[str, Any] = {
        "question_title": "A. Twice",
        "question_content": "You are handed one integer on the standard input. Print twice that integer.",
        "platform": "atcoder",
        "question_id": number,
        "contest_id": "abc999",
        "contest_date": date,
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps(cases[:1]),
        "private_test_cases": encode_private(cases[1:]),
        "metadata": "{}",
    }
    return row | changes


def lcb_function_row(number: str = "3000", date: str = "2024-09-02T00:00:00", **changes: Any) -> dict[str, Any]:
    """A LeetCode-like problem of two arguments, one JSON value a line."""
    cases = [{"input": f"[{n}, {n + 1}]\n3", "output": str(2 * n + 4), "testtype": "functional"} for n in range(6)]
    return (
        lcb_row(
            number,
            date,
            question_title="sum-and-add",
            question_content="Given a list of integers and one more integer k, return the sum of all of them together.",
            platform="leetcode",
            starter_code="class Solution:\n    def total(self, nums: List[int], k: int) -> int:\n        ",
            public_test_cases=json.dumps(cases[:2]),
            private_test_cases=json.dumps(cases[2:]),
            metadata=json.dumps({"func_name": "total"}),
        )
        | changes
    )


def accept_all(programs: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A grader that finds every program right."""
    for program in programs:
        yield {"id": program["id"], "verdict": "AC"}
