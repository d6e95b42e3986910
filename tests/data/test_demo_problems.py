"""The demo's raw files: reproducible, solvable, and free of held-out problems that restate a training one."""

from __future__ import annotations

import ast
import base64
import builtins
import copy
import io
import json
import pickle
import re
import subprocess
import sys
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DEMO = Path(__file__).resolve().parents[2] / "data" / "demo"
FILES = ["taco/train.jsonl", "primeintellect/train.jsonl", "livecodebench/test.jsonl", "livecodebench/solutions.jsonl"]
TEST_WINDOW = ("2024-08-01", "2025-02-01")
MIN_TESTS = 5
MAX_SAME_OUTPUT = 0.7
"""Share of a problem's tests with one and the same output, so that no constant comes near."""
MAX_STATEMENT_OVERLAP = 0.5
"""Jaccard similarity of word trigrams."""


@dataclass(frozen=True)
class Task:
    """What the tests need of a row, whatever its source."""

    key: str
    statement: str
    solution: str
    fn_name: str | None
    cases: list[tuple[Any, Any]]


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / name).read_text(encoding="utf-8").splitlines()]


def taco_tasks() -> list[Task]:
    tasks = []
    for row in read("taco/train.jsonl"):
        tests = json.loads(row["input_output"])
        outputs = tests["outputs"] if "fn_name" not in tests else [value for (value,) in tests["outputs"]]
        cases = list(zip(tests["inputs"], outputs, strict=True))
        tasks.append(Task(row["url"], row["question"], json.loads(row["solutions"])[0], tests.get("fn_name"), cases))
    return tasks


def primeintellect_tasks() -> list[Task]:
    tasks = []
    for row in read("primeintellect/train.jsonl"):
        cases = ast.literal_eval(row["verification_info"])["test_cases"]
        gold = row["gold_standard_solution"]
        assert gold.startswith("```python\n")
        assert gold.endswith("```")
        pairs = [(case["input"], case["output"]) for case in cases]
        tasks.append(Task(row["problem_id"], row["prompt"], gold[10:-3], cases[0].get("fn_name"), pairs))
    return tasks


def private_tests(encoded: str) -> list[dict[str, str]]:
    """Decodes LiveCodeBench's private tests; the pickle holds one string, so no global may be looked up."""

    class StringOnly(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            raise pickle.UnpicklingError(f"{module}.{name} in a test payload")

    tests: list[dict[str, str]] = json.loads(StringOnly(io.BytesIO(zlib.decompress(base64.b64decode(encoded)))).load())
    return tests


def livecodebench_tasks(held_out: bool) -> list[Task]:
    solutions = {row["question_id"]: row["solution"] for row in read("livecodebench/solutions.jsonl")}
    tasks = []
    for row in read("livecodebench/test.jsonl"):
        if (TEST_WINDOW[0] <= row["contest_date"] < TEST_WINDOW[1]) != held_out:
            continue
        tests = json.loads(row["public_test_cases"]) + private_tests(row["private_test_cases"])
        fn_name = json.loads(row["metadata"]).get("func_name")
        cases: list[tuple[Any, Any]] = [(test["input"], test["output"]) for test in tests]
        if fn_name:
            cases = [([json.loads(line) for line in text.split("\n")], json.loads(out)) for text, out in cases]
        tasks.append(Task(row["question_id"], row["question_content"], solutions[row["question_id"]], fn_name, cases))
    return tasks


TRAINING = taco_tasks() + primeintellect_tasks() + livecodebench_tasks(held_out=False)
HELD_OUT = livecodebench_tasks(held_out=True)
ALL = TRAINING + HELD_OUT


class _Canonical(ast.NodeTransformer):
    """Renames what the author chose (names, constants); keeps the operations, the methods and the builtins."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = "function"
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.names.setdefault(node.arg, f"name{len(self.names)}")
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not hasattr(builtins, node.id):
            node.id = self.names.setdefault(node.id, f"name{len(self.names)}")
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(type(node.value).__name__)


def structure(solution: str) -> str:
    """The shape of a solution: equal for two that differ in names and constants only."""
    return ast.dump(_Canonical().visit(ast.parse(solution)))


def shingles(statement: str) -> set[tuple[str, ...]]:
    """Word trigrams of the part that states the task, after "Write a Python function f(x) that"."""
    task = statement.split(" that ", 1)[-1].lower()
    words = re.findall(r"[a-z0-9]+", task)
    return {tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))}


def overlap(first: set[tuple[str, ...]], second: set[tuple[str, ...]]) -> float:
    """Jaccard similarity."""
    return len(first & second) / len(first | second)


def test_a_rebuild_gives_the_same_bytes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "data.demo.build", "--out", str(tmp_path)]
    subprocess.run(command, cwd=DEMO.parents[1], check=True, capture_output=True)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (DEMO / name).read_bytes(), f"{name}: run python -m data.demo.build"


def test_there_are_enough_problems_of_both_kinds() -> None:
    assert len(TRAINING) >= 150
    assert len(HELD_OUT) >= 72
    for tasks in (TRAINING, HELD_OUT):
        assert 0.5 < sum(task.fn_name is not None for task in tasks) / len(tasks) < 1
    assert 10 <= len(livecodebench_tasks(held_out=False)) <= 20


def test_dates_lie_in_the_two_windows() -> None:
    for row in read("livecodebench/test.jsonl"):
        assert "2023-05-01" <= row["contest_date"] < TEST_WINDOW[1]


def test_ids_statements_and_function_names_are_unique() -> None:
    for values in ([task.key for task in ALL], [task.statement for task in ALL], [t.fn_name for t in ALL if t.fn_name]):
        assert [value for value, count in Counter(values).items() if count > 1] == []


def test_no_two_problems_have_the_same_tests() -> None:
    counts = Counter(repr(task.cases) for task in ALL)
    assert [cases for cases, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.key.replace("/", "_"))
def test_the_reference_passes_tests_that_a_constant_does_not(task: Task) -> None:
    assert len({repr(given) for given, _ in task.cases}) == len(task.cases) >= MIN_TESTS
    assert max(Counter(repr(output) for _, output in task.cases).values()) <= MAX_SAME_OUTPUT * len(task.cases)
    if task.fn_name:
        namespace: dict[str, Any] = {}
        exec(compile(task.solution, task.fn_name, "exec"), namespace)
        for given, output in task.cases:
            assert namespace[task.fn_name](*copy.deepcopy(given)) == output
        return
    script = "import io, json, sys\nfor text in json.loads(sys.argv[1]):\n    sys.stdin = io.StringIO(text)\n"
    script += "    exec(compile(sys.argv[2], 'reference', 'exec'), {'__name__': '__main__'})\n    print(end='\\0')\n"
    texts = json.dumps([given for given, _ in task.cases])
    result = subprocess.run(
        [sys.executable, "-c", script, texts, task.solution], capture_output=True, text=True, check=True
    )
    assert result.stdout.split("\0")[:-1] == [output for _, output in task.cases]


def test_no_held_out_problem_restates_a_training_one() -> None:
    shapes = {structure(task.solution): task.statement for task in TRAINING}
    trained = [(task.statement, shingles(task.statement)) for task in TRAINING]
    twins = []
    for task in HELD_OUT:
        if (twin := shapes.get(structure(task.solution))) is not None:
            twins.append((task.statement, twin))
        words = shingles(task.statement)
        twins += [(task.statement, other) for other, seen in trained if overlap(words, seen) >= MAX_STATEMENT_OVERLAP]
    assert twins == []
