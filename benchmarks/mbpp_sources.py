"""Turns MBPP+ tasks into raw source files, so that the demo profile trains and evaluates on them.

    python -m benchmarks.mbpp_sources TASKS.json MbppPlus.jsonl FOLDER
    deepcoder run --profile demo "data.sources=[{format: livecodebench, path: FOLDER/test.jsonl, solutions:
        FOLDER/solutions.jsonl}, {format: taco, path: FOLDER/train.jsonl}]"

TASKS.json lists [MBPP id, statement, assertions]. Every other task is for training, the rest are held out.
"""

from __future__ import annotations

import argparse
import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

MAX_TESTS = 12


def tests_of(task: dict[str, Any]) -> list[tuple[list[Any], Any]]:
    """(arguments, result) pairs by running the task's own reference; those that JSON would change are left out."""
    space: dict[str, Any] = {}
    exec(task["canonical_solution"], space)
    found: list[tuple[list[Any], Any]] = []
    for arguments in [*task["base_input"], *task["plus_input"]]:
        result = space[task["entry_point"]](*json.loads(json.dumps(arguments)))
        pair = (arguments, list(result) if isinstance(result, tuple) else result)
        try:
            unchanged = json.loads(json.dumps(pair)) == list(pair)
        except TypeError:
            unchanged = False
        if unchanged and pair not in found:
            found.append(pair)
    return found[:MAX_TESTS]


def taco_row(number: int, statement: str, task: dict[str, Any]) -> dict[str, Any]:
    """A row in the schema of BAAI/TACO."""
    pairs = tests_of(task)
    tests = {"fn_name": task["entry_point"], "inputs": [a for a, _ in pairs], "outputs": [[r] for _, r in pairs]}
    blank = dict.fromkeys(["name", "date", "Expected Auxiliary Space", "Expected Time Complexity"])
    return {
        **blank,
        "question": statement,
        "solutions": json.dumps([task["canonical_solution"]]),
        "starter_code": f"def {task['entry_point']}",
        "input_output": json.dumps(tests),
        "difficulty": "EASY",
        "raw_tags": "[]",
        "tags": "[]",
        "skill_types": "[]",
        "source": "mbpp",
        "url": f"mbpp/{number}",
        "time_limit": None,
        "memory_limit": None,
        "picture_num": None,
    }


def livecodebench_row(number: int, statement: str, task: dict[str, Any]) -> dict[str, Any]:
    """A row in the schema of livecodebench/code_generation_lite, dated inside the held-out window."""
    cases = [
        {
            "input": "\n".join(json.dumps(argument) for argument in arguments),
            "output": json.dumps(result),
            "testtype": "functional",
        }
        for arguments, result in tests_of(task)
    ]
    private = base64.b64encode(zlib.compress(pickle.dumps(json.dumps(cases[2:])))).decode()
    return {
        "question_title": task["entry_point"],
        "question_content": statement,
        "platform": "mbpp",
        "question_id": f"mbpp{number}",
        "contest_id": "mbpp",
        "contest_date": "2024-09-01T00:00:00",
        "starter_code": f"def {task['entry_point']}",
        "difficulty": "easy",
        "public_test_cases": json.dumps(cases[:2]),
        "private_test_cases": private,
        "metadata": json.dumps({"func_name": task["entry_point"]}),
    }


def main() -> None:
    """Write train.jsonl, test.jsonl and solutions.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("mbpp", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    with open(options.mbpp) as lines:
        mbpp = {row["task_id"]: row for row in map(json.loads, lines)}
    chosen = [row for row in json.loads(options.tasks.read_text()) if f"Mbpp/{row[0]}" in mbpp]
    pairs = [(number, statement, mbpp[f"Mbpp/{number}"]) for number, statement, _ in chosen]
    held_out = [livecodebench_row(*pair) for pair in pairs[1::2]]
    solutions = [{"question_id": f"mbpp{n}", "solution": task["canonical_solution"]} for n, _, task in pairs[1::2]]
    files = {"train": [taco_row(*pair) for pair in pairs[::2]], "test": held_out, "solutions": solutions}
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        (options.folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"{options.folder}: {len(files['train'])} for training, {len(held_out)} held out")


if __name__ == "__main__":
    main()
