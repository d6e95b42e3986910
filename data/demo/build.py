"""Writes the demo's raw files: the problems of `problems` in the three public sources' own schemas.

    python -m data.demo.build [--out DIR]

The files depend on the problem definitions alone, so a rebuild gives the same bytes. Expected outputs come from running
the reference solutions, which are this project's own code; nothing here runs what a model wrote.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import io
import json
import pickle
import sys
import zlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from data.demo.problems import held_out_problems, training_problems
from data.demo.problems.model import Problem

HERE = Path(__file__).resolve().parent
LCB_TRAIN_START = datetime(2023, 5, 6)
LCB_TEST_START = datetime(2024, 8, 3)
N_LCB_TRAIN = 16
N_PUBLIC = 2

Row = dict[str, Any]


def run_program(code: str, stdin: str) -> str:
    """What the program prints when it reads `stdin`."""
    out, saved = io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(stdin)
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code, "<reference>", "exec"), {"__name__": "__main__"})
    finally:
        sys.stdin = saved
    return out.getvalue()


def expected_outputs(problem: Problem) -> list[Any]:
    """The reference solution's answer to each input, in order."""
    if problem.kind == "stdin":
        return [run_program(problem.solution, text) for text in problem.inputs]
    namespace: dict[str, Any] = {}
    exec(compile(problem.solution, f"<{problem.name}>", "exec"), namespace)
    return [namespace[problem.name](*copy.deepcopy(args)) for args in problem.inputs]


def taco_row(problem: Problem, index: int) -> Row:
    """A row of BAAI/TACO; every column is text, function outputs are wrapped in a list as they are there."""
    outputs = expected_outputs(problem)
    tests: Row = {"inputs": list(problem.inputs), "outputs": outputs}
    if problem.kind == "function":
        tests = {"fn_name": problem.name, "inputs": list(problem.inputs), "outputs": [[value] for value in outputs]}
    return {
        "question": problem.statement,
        "solutions": json.dumps([problem.solution]),
        "starter_code": f"{problem.starter_code}\n\t" if problem.kind == "function" else "",
        "input_output": json.dumps(tests),
        "difficulty": "EASY",
        "raw_tags": "[]",
        "name": problem.name,
        "source": "deepcoder-demo",
        "tags": "[]",
        "skill_types": "[]",
        "url": f"https://example.org/demo/taco/{index}",
        "Expected Auxiliary Space": None,
        "time_limit": "2.0 seconds",
        "date": None,
        "picture_num": None,
        "memory_limit": "256.0 megabytes",
        "Expected Time Complexity": None,
    }


def primeintellect_row(problem: Problem, index: int) -> Row:
    """A row of PrimeIntellect/verifiable-coding-problems; `verification_info` and `metadata` are Python literals."""
    cases: list[Row] = []
    for given, output in zip(problem.inputs, expected_outputs(problem), strict=True):
        if problem.kind == "function":
            cases.append({"type": "function_call", "fn_name": problem.name, "input": given, "output": output})
        else:
            cases.append({"type": "stdin_stdout", "input": given, "output": output})
    return {
        "source": "deepcoder-demo",
        "task_type": "verifiable_code",
        "in_source_id": str(index),
        "prompt": problem.statement,
        "gold_standard_solution": f"```python\n{problem.solution}```",
        "verification_info": repr({"language": "python", "test_cases": cases}),
        "metadata": repr({"difficulty": "introductory", "memory_limit": "256 megabytes", "time_limit": "2 seconds"}),
        "problem_id": f"vcp_demo_{index}",
    }


def encode_private_tests(tests: list[Row]) -> str:
    """base64(zlib(pickle(JSON text))), uncompressed inside (level 0) so that any zlib gives the same bytes."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests), protocol=4), 0)).decode("ascii")


def livecodebench_row(problem: Problem, index: int, date: datetime) -> Row:
    """A row of livecodebench/code_generation_lite: arguments one JSON value a line, private tests encoded."""
    tests: list[Row] = []
    for given, output in zip(problem.inputs, expected_outputs(problem), strict=True):
        if problem.kind == "function":
            lines = "\n".join(json.dumps(value) for value in given)
            tests.append({"input": lines, "output": json.dumps(output), "testtype": "functional"})
        else:
            tests.append({"input": given, "output": output, "testtype": "stdin"})
    is_function = problem.kind == "function"
    return {
        "question_title": problem.name.replace("_", " "),
        "question_content": problem.statement,
        "platform": "leetcode" if is_function else "atcoder",
        "question_id": f"demo{index:03d}",
        "contest_id": f"demo-{date:%Y-%m-%d}",
        "contest_date": date.isoformat(),
        "starter_code": f"{problem.starter_code}\n    " if is_function else "",
        "difficulty": "easy",
        "public_test_cases": json.dumps(tests[:N_PUBLIC]),
        "private_test_cases": encode_private_tests(tests[N_PUBLIC:]),
        "metadata": json.dumps({"func_name": problem.name} if is_function else {}),
    }


def write_jsonl(path: Path, rows: Iterable[Row]) -> int:
    """Writes one JSON object a line and returns how many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return len(lines)


def build(out: Path) -> dict[str, int]:
    """Writes the four files under `out`; returns the number of rows of each."""
    training, held_out = training_problems(), held_out_problems()
    step = len(training) // N_LCB_TRAIN
    lcb_train = training[::step][:N_LCB_TRAIN]
    chosen = {problem.name for problem in lcb_train}
    rest = [problem for problem in training if problem.name not in chosen]
    dated = [(problem, LCB_TRAIN_START + timedelta(weeks=4 * i)) for i, problem in enumerate(lcb_train)]
    dated += [(problem, LCB_TEST_START + timedelta(days=2 * i)) for i, problem in enumerate(held_out)]
    lcb = [livecodebench_row(problem, i, date) for i, (problem, date) in enumerate(dated)]
    solutions = [
        {"question_id": row["question_id"], "solution": problem.solution}
        for row, (problem, _) in zip(lcb, dated, strict=True)
    ]
    files: dict[str, list[Row]] = {
        "taco/train.jsonl": [taco_row(problem, i) for i, problem in enumerate(rest[::2])],
        "primeintellect/train.jsonl": [primeintellect_row(problem, i) for i, problem in enumerate(rest[1::2])],
        "livecodebench/test.jsonl": lcb,
        "livecodebench/solutions.jsonl": solutions,
    }
    return {name: write_jsonl(out / name, rows) for name, rows in files.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to (default: this one)")
    for name, rows in build(parser.parse_args().out).items():
        print(f"{name}: {rows} rows")
