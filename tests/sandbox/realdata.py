"""Public problems, programs and verdicts as lines for the sandbox; where the folder is absent its tests are skipped."""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("DEEPCODER_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))

needs_data = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"no real verdicts at {FOLDER}: set DEEPCODER_SHARED_DATA to the folder that holds them"
)

LCB_FILES = ("Qwen2.5-Ins-7B-ZeroShotCoT_codegeneration_eval_all.json", "Qwen2.5-Ins-7B_selfrepair_eval_all.json")
_METHOD = re.compile(r"def\s+(\w+)\s*\(\s*self")


def _json(path: str) -> Any:
    return json.loads((FOLDER / path).read_text(encoding="utf-8"))


def literal(value: Any) -> Any:
    """A value that a file holds as JSON or as Python text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return ast.literal_eval(value)


@cache
def lcb_public_tests() -> dict[str, list[dict[str, Any]]]:
    """Public tests by the problem's text without white space."""
    tests: dict[str, list[dict[str, Any]]] = {}
    for name in ("test_code_livecodebench_279_public", "train_code_livecodebench_580_public"):
        for row in _json(f"rllm/{name}.json"):
            tests[text_key(row["problem"])] = literal(row["tests"])
    return tests


def text_key(text: str) -> str:
    """What stays the same of a statement from one publication to the next."""
    return "".join(text.split())


def lcb_test(given: Any, expected: Any, fn_name: str | None) -> dict[str, Any]:
    """One test in the sandbox's form."""
    if fn_name is None:
        return {"kind": "stdin", "input": given, "output": expected}
    return {"kind": "function", "fn_name": fn_name, "input": given, "output": expected}


def _kept_failure(row: dict[str, Any], fn_name: str | None) -> dict[str, Any] | None:
    """The failing test that the harness wrote down, unless it cut it short."""
    try:
        kept = json.loads(literal(row["metadata"])[0])
    except (ValueError, SyntaxError):
        return None
    given, expected = kept.get("inputs"), kept.get("expected")
    if given is None or expected is None or "(truncated)" in given + expected:
        return None
    if fn_name is None:
        return lcb_test(given, expected, None)
    try:
        arguments = ast.literal_eval(given)
    except (ValueError, SyntaxError):
        return None
    try:
        value = ast.literal_eval(expected)
    except (ValueError, SyntaxError):
        value = expected
    return lcb_test(arguments, value, fn_name)


def lcb_programs() -> Iterator[dict[str, Any]]:
    """Every published program: id, question, passed, code, public tests, and its kept failing test or None."""
    public = lcb_public_tests()
    for file in LCB_FILES:
        for index, row in enumerate(_json(f"lcb/{file}")):
            found = _METHOD.search(row["starter_code"])
            fn_name = found[1] if found else None
            tests = []
            for test in public.get(text_key(row["question_content"]), []):
                output = json.loads(test["output"]) if fn_name else test["output"]
                tests.append(lcb_test(test["input"], output, fn_name))
            yield {
                "id": f"{file.split('_')[-3]}/{row['question_id']}/{index}",
                "question": row["question_id"],
                "passed": bool(literal(row["graded_list"])[0]),
                "code": literal(row["code_list"])[0],
                "public": tests,
                "failing": _kept_failure(row, fn_name),
                "metadata": row["metadata"],
            }


def problem_packages() -> Iterator[dict[str, Any]]:
    """Judge problems with full tests and programs filed by their verdict."""
    with gzip.open(FOLDER / "problem_packages.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            yield row | {name: literal(row[name]) for name in ("programs", "tests")}


def _stdin_of_nothing() -> list[dict[str, Any]]:
    return [{"kind": "stdin", "input": "", "output": ""}]


def humaneval_programs() -> Iterator[dict[str, Any]]:
    """Two models' HumanEval programs with the original assertions appended, and EvalPlus's base verdict."""
    with gzip.open(FOLDER / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        problems = {row["task_id"]: row for row in map(json.loads, file)}
    for path in sorted((FOLDER / "evalplus").glob("evalres_humaneval_*.json")):
        for task, (result, *_) in json.loads(path.read_text(encoding="utf-8"))["eval"].items():
            code = f"{result['solution']}\n\n{problems[task]['test']}\n\ncheck({problems[task]['entry_point']})\n"
            yield {
                "id": f"{path.stem.removeprefix('evalres_')}/{task}",
                "passed": result["base_status"] == "pass",
                "code": code,
                "tests": _stdin_of_nothing(),
            }


def mbpp_programs() -> Iterator[dict[str, Any]]:
    """Two models' MBPP programs with EvalPlus's base assertions appended, and its base verdict."""
    rows = (FOLDER / "evalplus" / "MbppPlus.jsonl").read_text(encoding="utf-8").splitlines()
    problems = {row["task_id"]: row for row in map(json.loads, rows)}
    for path in sorted((FOLDER / "evalplus").glob("evalres_mbpp_*.json")):
        for task, (result, *_) in json.loads(path.read_text(encoding="utf-8"))["eval"].items():
            if task in problems:
                yield {
                    "id": f"{path.stem.removeprefix('evalres_')}/{task}",
                    "passed": result["base_status"] == "pass",
                    "code": f"{result['solution']}\n{problems[task]['assertion']}",
                    "tests": _stdin_of_nothing(),
                }


# What LeetCode gives to every program, and how the data set's tests write lists and trees.
LEETCODE_NODES = """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next
class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
def list_node(values):
    head = None
    for value in reversed(values):
        head = ListNode(value, head)
    return head
def tree_node(values):
    nodes = [None if value is None else TreeNode(value) for value in values]
    waiting = nodes[::-1]
    root = waiting.pop() if waiting else None
    for node in nodes:
        if node is not None:
            if waiting: node.left = waiting.pop()
            if waiting: node.right = waiting.pop()
    return root
def is_same_list(a, b):
    while a and b and a.val == b.val:
        a, b = a.next, b.next
    return a is None and b is None
def is_same_tree(a, b):
    if a is None or b is None:
        return a is b
    return a.val == b.val and is_same_tree(a.left, b.left) and is_same_tree(a.right, b.right)
"""


def leetcode_references() -> Iterator[dict[str, Any]]:
    """LeetCodeDataset's reference solutions with their own `check` appended."""
    for index, row in enumerate(_json("rllm/train_code_leetcodedataset_1890.json")):
        tests = literal(row["tests"])["functional"]
        yield {"id": index, "code": f"{LEETCODE_NODES}\n{row['completion']}\n\n{tests}", "tests": _stdin_of_nothing()}


def primeintellect_solutions() -> Iterator[dict[str, Any]]:
    """PrimeIntellect's published solutions, each with the problem's tests."""
    for index, row in enumerate(_json("rllm/train_code_verify_10_primeintellect.json")):
        tests = [{"kind": "stdin", "input": t["input"], "output": t["output"]} for t in literal(row["tests"])]
        for number, text in enumerate(literal(row["solutions"])):
            yield {"id": f"{index}/{number}", "text": text, "tests": tests}
