"""Published sets in their own columns become problems that the sandbox grades as their authors do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.core.config import SourceConfig
from components.core.errors import UserError
from components.core.schema import PROBLEM_SCHEMA, Problem, read_problems, write_parquet
from components.core.store import open_store
from components.data_prep import benchmark
from components.data_prep.parsers import PARSERS
from components.data_prep.rows import Reject, Source
from sandbox import grade
from tests.data_prep.rows import lcb_row, make_config, shared, taco_row, write_jsonl


def _parse(form: str, row: dict[str, Any]) -> Problem:
    return PARSERS[form](row, Source(form, SourceConfig(format=form, path="x")), 0)


def _verdicts(programs: list[dict[str, Any]], mode: str = "real") -> dict[str, str]:
    return {verdict["id"]: verdict["verdict"] for verdict in grade(programs, mode=mode, workers=1)}  # type: ignore[arg-type]


HUMANEVAL = {
    "task_id": "HumanEval/900",
    "entry_point": "shift_back",
    "prompt": "from typing import List\n\ndef shift(s):\n    return s[1:] + s[:1]\n\n\ndef shift_back(s: str) -> str:\n"
    '    """Undo shift.\n    >>> shift_back("bca")\n    "abc"\n    """\n',
    "canonical_solution": "    return s[-1:] + s[:-1]\n",
    "test": "def check(candidate):\n    for s in ('abc', '', 'xy'):\n        assert candidate(shift(s)) == s\n",
}
RIGHT = "def shift_back(s):\n    print('noise')\n    return s[-1:] + s[:-1]\n\nif __name__ == '__main__':\n    input()"


@pytest.mark.parametrize("mode", ["real", "lcb"])
def test_humaneval_programs_are_judged_by_its_check_with_the_prompts_helpers(mode: str) -> None:
    problem = _parse("humaneval", HUMANEVAL)
    programs = {
        "AC": RIGHT,
        "WA": "def shift_back(s):\n    return s",
        "leaves early": "import sys\nsys.exit(0)",
        "raises": "def shift_back(s):\n    return s[7]",
        "no function": "x = 1",
        "prints what the driver would": "print('passed')",
    }
    found = _verdicts([problem.sandbox_program(name, code) for name, code in programs.items()], mode)
    assert found["AC"] == "AC"
    assert "AC" not in {verdict for name, verdict in found.items() if name != "AC"}
    assert found["WA"] == "WA"
    assert problem.starter_code == "def shift_back(s: str) -> str:\n    "
    assert "check(" not in problem.question


def test_mbpp_shows_one_assertion_and_keeps_the_others() -> None:
    row = {
        "task_id": 7,
        "text": "Write a function to double a number.",
        "code": "def helper(x):\n    return x\n\ndef double(x):\n    return 2 * helper(x)",
        "test_list": ["assert double(2) == 4", "assert math.isclose(double(0.5), 1)"],
        "test_setup_code": "",
        "test_imports": ["import math"],
    }
    problem = _parse("mbpp", row)
    assert (problem.fn_name, [test.public for test in problem.tests]) == ("double", [True, False])
    assert "double(2) == 4" in problem.question
    assert "0.5" not in problem.question
    programs = {"AC": "def double(x):\n    return x + x", "WA": "def double(x):\n    return 4"}
    assert _verdicts([problem.sandbox_program(name, code) for name, code in programs.items()]) == {
        "AC": "AC",
        "WA": "WA",
    }


def _humaneval_plus() -> Iterator[dict[str, Any]]:
    with gzip.open(shared("humaneval/HumanEval.jsonl.gz"), "rt", encoding="utf-8") as file:
        problems = [json.loads(line) for line in file]
    plus = _lines("evalplus/HumanEvalPlus_2023-04.jsonl")
    inputs = {row["task_id"]: row["inputs"] for row in _lines("evalplus/HumanEvalPlusInputs_2023-04.jsonl")}
    for problem, more in zip(problems, plus, strict=True):
        yield {
            **{key: problem[key] for key in ("task_id", "prompt", "entry_point")},
            **{key: more[key] for key in ("contract", "base_input", "atol")},
            "canonical_solution": more["reference"],
            "plus_input": inputs.get(problem["task_id"].replace("/", "_"), []),
        }


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shared(name).read_text(encoding="utf-8").splitlines()]


# EvalPlus's verdict on these is another one than ours, for a reason that each entry names.
IMPORTS = "uses a module without importing it: names of the usual ones are there for every program here"
HUMANEVAL_EXPLAINED = dict.fromkeys(["HumanEval/4", "HumanEval/8", "HumanEval/128"], IMPORTS)
MBPP_EXPLAINED = {
    **dict.fromkeys(["Mbpp/82", "Mbpp/233", "Mbpp/276", "Mbpp/312", "Mbpp/596"], IMPORTS),
    "Mbpp/566": "recurses once a digit, 101 deep on the recorded input: right in a plain interpreter too",
    "Mbpp/583": "right but slow: seconds for one input, where EvalPlus allows about one",
    "Mbpp/599": "program and reference add up ranges of 10**8: over 15 s for all inputs together",
}


def _compare(form: str, rows: list[dict[str, Any]], explained: dict[str, str]) -> None:
    """Published passes pass; published failures fail on the first failing input if that one is here."""
    problems = {row["task_id"]: (row, _parse(form, row)) for row in rows}
    programs, expected = [], {}
    for path in sorted(shared("evalplus/MbppPlus.jsonl").parent.glob(f"evalres_{form}_*.json")):
        for task, (published, *_) in json.loads(path.read_text())["eval"].items():
            if task not in problems:
                continue
            row, problem = problems[task]
            passed = published["base_status"] == published["plus_status"] == "pass"
            failing = published["base_fail_tests"] + published["plus_fail_tests"]
            given = row["base_input"] + list(row["plus_input"])
            if passed or any(arguments in given for arguments in failing):
                name = f"{path.stem}/{task}"
                expected[name] = passed
                program = problem.sandbox_program(name, published["solution"])
                # What has to fail need not take its whole time to do so.
                programs.append(program if passed else {**program, "time_limit_s": 5})
    assert len(programs) > len(rows)
    found = {name: verdict == "AC" for name, verdict in _verdicts(programs).items()}
    wrong = {name for name in found if found[name] != expected[name]}
    assert {name.split("/", 1)[1] for name in wrong} <= set(explained), wrong


# The tasks take a minute of one core each for all; one in eight is enough to see that the rules are the same.
some_and_all = pytest.mark.parametrize(
    "step", [pytest.param(8, id="one in eight"), pytest.param(1, id="all", marks=pytest.mark.long)]
)


@some_and_all
def test_humaneval_plus_verdicts_are_evalplus_own(step: int) -> None:
    _compare("humaneval", list(_humaneval_plus())[::step], HUMANEVAL_EXPLAINED)


@some_and_all
def test_mbpp_plus_verdicts_are_evalplus_own(step: int) -> None:
    _compare("mbpp", _lines("evalplus/MbppPlus.jsonl")[::step], MBPP_EXPLAINED)


CHECKER = """
import sys

def numbers(i):
    with open(sys.argv[i]) as file:
        return list(map(int, file.read().split()))

def main():
    (n,), out = numbers(1), numbers(3)
    print(1 if len(out) == 2 and min(out) > 0 and sum(out) == n else 0)

if __name__ == "__main__":
    main()
"""
CODEFORCES: dict[str, Any] = {
    "id": "1/A", "aliases": None, "contest_id": "1", "contest_start": 1_700_000_000, "index": "A", "time_limit": 1.0,
    "memory_limit": 256.0, "title": "Split", "description": "Write n as a sum of two positive integers; any will do.",
    "input_format": "n.", "output_format": "Two integers.", "interaction_format": None, "note": None, "rating": 1234,
    "tags": ["math"], "examples": [{"input": "2\n", "output": "1 1\n"}], "official_tests_complete": False,
    "official_tests": [{"input": "2", "output": "1 1"}, {"input": "5\n", "output": "2 3\n"}], "input_mode": "stdio",
    "generated_checker": CHECKER,
}  # fmt: skip


def test_codeforces_answers_go_to_the_problems_own_checker() -> None:
    problem = _parse("codeforces", CODEFORCES)
    assert [(test.input, test.public) for test in problem.tests] == [("2\n", True), ("5\n", False)]
    assert (problem.difficulty, problem.contest_date, problem.comparator) == ("1200–1599", "2023-11-14", "checker")
    assert "Sample Output\n\n1 1" in problem.question
    assert "2 3" not in problem.question
    programs = {"other answer": "n = int(input())\nprint(1, n - 1)", "wrong": "print(1, 1)", "unreadable": "print('a')"}
    found = _verdicts([problem.sandbox_program(name, code) for name, code in programs.items()])
    assert found == {"other answer": "AC", "wrong": "WA", "unreadable": "WA"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"interaction_format": "Ask."}, "interactive"), ({"input_mode": "file"}, "bad_value"),
     ({"official_tests": [], "examples": []}, "no_tests"), ({"description": " "}, "empty_statement")],
)  # fmt: skip
def test_codeforces_rows_that_cannot_be_graded_say_why(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(Reject) as error:
        _parse("codeforces", CODEFORCES | change)
    assert error.value.reason == reason


def _dated(question: str, day: str) -> dict[str, Any]:
    return lcb_row(question, f"{day}T00:00:00")


def test_release_and_dates_pick_the_problems_and_the_manifest_counts_the_rest(tmp_path: Path) -> None:
    releases = tmp_path / "lite"
    days = {"test": ["2024-07-31", "2024-08-01"], "test2": ["2025-01-31", "2025-02-01"], "test3": ["2024-12-01"]}
    for name, rows in days.items():
        write_jsonl(releases / f"{name}.jsonl", [_dated(f"{name}-{i}", day) for i, day in enumerate(rows)])
    source = {"format": "livecodebench", "path": str(releases), "name": "release_v2", "split": "test"}
    config = make_config(tmp_path, [{**source, "since": "2024-08-01", "until": "2025-01-31"}])
    pointer = benchmark.run(config=config, output=str(tmp_path / "pointer"))
    folder = open_store(config.store).fetch(pointer)
    assert [p.metadata["question_id"] for p in read_problems(folder / "test")] == ["test-1", "test2-0"]
    counts = json.loads((folder / "manifest.json").read_text())["counts"]
    assert counts == {"livecodebench": {"rows": 4, "dropped": {"outside_dates": 2}}}


def test_a_set_is_told_from_its_columns_and_kept_whole(tmp_path: Path) -> None:
    many = taco_row("Print any permutation of the numbers; if there are several answers, print any of them.")
    rows = {
        "taco": [many, many], "humaneval": [HUMANEVAL], "codeforces": [CODEFORCES], "livecodebench": [lcb_row("a")],
    }  # fmt: skip
    for form, values in rows.items():
        path = write_jsonl(tmp_path / form / "rows.jsonl", values)
        assert benchmark.sniff(str(path), None, "test") == form
        config = make_config(tmp_path / form, [{"format": form, "path": str(path), "split": "test"}])
        assert benchmark.run(config=config, output=str(tmp_path / "pointer")).rows == len(values)
    write_jsonl(tmp_path / "other.jsonl", [{"prompt": "x"}])
    with pytest.raises(UserError, match="columns prompt are those of no known set"):
        benchmark.sniff(str(tmp_path / "other.jsonl"), None, "test")


def test_problem_parquet_is_taken_as_it_is_and_by_split(tmp_path: Path) -> None:
    for split in ("train", "test"):
        problem = _parse("humaneval", HUMANEVAL)
        row = problem.to_row() | {"problem_id": f"mine/{split}"}
        (tmp_path / "set" / split).mkdir(parents=True)
        write_parquet(tmp_path / "set" / split / "problems.parquet", [row], PROBLEM_SCHEMA)
    assert benchmark.sniff(str(tmp_path / "set"), None, "test") == "problems"
    config = make_config(tmp_path, [{"format": "problems", "path": str(tmp_path / "set"), "split": "train"}])
    pointer = benchmark.run(config=config, output=str(tmp_path / "pointer"))
    assert [p.problem_id for p in read_problems(open_store(config.store).fetch(pointer) / "test")] == ["mine/train"]


def test_set_without_a_problem_that_can_be_graded_says_why(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [CODEFORCES | {"interaction_format": "Ask."}])
    config = make_config(tmp_path, [{"format": "codeforces", "path": str(path)}])
    with pytest.raises(UserError, match=r"no problem that can be graded\n.*rows.jsonl row 0: interactive"):
        benchmark.run(config=config, output=str(tmp_path / "pointer"))
