from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from components.core.config import DataConfig, SourceConfig
from components.core.schema import Problem, Test
from components.data_prep.checks import check
from components.data_prep.judging import from_statement
from components.data_prep.parsers import PARSERS
from components.data_prep.rows import Reject, Source
from tests.data_prep.rows import lcb_function_row, lcb_row, shared, taco_row

TACO = Source("taco", SourceConfig(format="taco", path="x"))
LCB = Source("livecodebench", SourceConfig(format="livecodebench", path="x"))
DATA = DataConfig(sources=[SourceConfig(format="taco", path="x")])


def taco(question: str = "", **changes: Any) -> Problem:
    return PARSERS["taco"](taco_row(question, **changes), TACO, 0)


def lcb(row: dict[str, Any]) -> Problem:
    return PARSERS["livecodebench"](row, LCB, 0)


def reason(problem: Problem, source: Source = TACO, data: DataConfig = DATA) -> str:
    with pytest.raises(Reject) as caught:
        check(problem, source, data)
    assert caught.value.detail
    return caught.value.reason


def test_a_sound_problem_stays() -> None:
    problem, split = check(taco(), TACO, DATA)
    assert (problem.comparator, split, len(problem.tests)) == ("lcb", "train", 6)


@pytest.mark.parametrize(
    ("date", "split"),
    [
        ("2023-05-01", "train"),
        ("2024-07-31T23:00:00", "train"),
        ("2024-08-01", "test"),
        ("2025-01-31T00:00:00", "test"),
    ],
)
def test_contest_dates_decide_the_split_up_to_the_last_day(date: str, split: str) -> None:
    assert check(lcb(lcb_row(date=date)), LCB, DATA)[1] == split


def test_dates_outside_both_windows_or_no_dates_leave() -> None:
    for date in ("2023-04-30", "2025-02-01"):
        assert reason(lcb(lcb_row(date=date)), LCB) == "outside_dates"
    assert reason(lcb(lcb_row(date="soon")), LCB) == "bad_date"


def test_other_sources_are_held_out_where_the_configuration_says_so() -> None:
    source = Source("taco", SourceConfig(format="taco", path="x", split="test"))
    assert check(taco(), source, DATA)[1] == "test"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (" \n", "empty_statement"),
        ("![pic](https://example.org/1.png)", "image_only"),
        ("<image> Find x.", "image_only"),
        ("This is an interactive problem. Guess the number that the judge has in mind.", "interactive"),
        ("Find a path through the maze. If there are multiple answers, print any of them.", "special_judge"),
    ],
)
def test_statements_that_cannot_be_posed_or_judged_leave(question: str, expected: str) -> None:
    assert reason(replace(taco(), question=question)) == expected


def test_a_picture_beside_a_full_statement_does_no_harm() -> None:
    check(taco("<image> Given the two sides of the shown rectangle, print its area as one integer."), TACO, DATA)


def test_repeated_tests_count_once_and_contradictions_leave() -> None:
    tests = [Test("stdin", "1\n", "2\n")] * 9 + [Test("stdin", "2", "4", True), Test("stdin", "2\n", "4\n")]
    assert reason(replace(taco(), tests=tests)) == "too_few_tests"
    assert reason(replace(taco(), tests=[Test("stdin", "1", "2"), Test("stdin", "1\n", "3")])) == "contradictory_tests"


def test_min_tests_is_configurable() -> None:
    few = replace(taco(), tests=taco().tests[:4])
    assert reason(few) == "too_few_tests"
    check(few, TACO, DATA.model_copy(update={"min_tests": 4}))


def test_ids_listed_as_bad_leave() -> None:
    source = Source("taco", SourceConfig(format="taco", path="x", exclude="bad.json"), excluded=frozenset({"0"}))
    assert reason(taco(), source) == "known_bad"


def test_tests_that_the_signature_cannot_take_leave() -> None:
    row = lcb_function_row()
    one_argument = json.dumps([{"input": str(n), "output": "1", "testtype": "functional"} for n in range(6)])
    assert reason(lcb(row | {"public_test_cases": one_argument}), LCB) == "wrong_arguments"
    stdin = json.dumps([{"input": str(n), "output": "1", "testtype": "stdin"} for n in range(6)])
    changed = lcb(row | {"public_test_cases": stdin, "private_test_cases": "[]"})
    assert reason(changed, LCB) == "mixed_test_kinds"


def test_the_functions_name_may_come_from_the_starter_code() -> None:
    problem, _ = check(lcb(lcb_function_row(metadata="{}")), LCB, DATA)
    assert problem.fn_name == "total"
    nameless = replace(problem, fn_name=None, starter_code="")
    assert reason(nameless, LCB) == "no_function_name"


def test_samples_shown_in_the_statement_become_public() -> None:
    shown = taco("Print the sum.\n\nInput\n1 2\nOutput\n3\n\nExplained above, at length and in words.")
    problem, _ = check(shown, TACO, DATA)
    assert [test.public for test in problem.tests] == [True] + [False] * 5


def test_livecodebench_errata_get_the_right_comparator_or_leave() -> None:
    assert reason(lcb(lcb_row("abc343_e")), LCB) == "special_judge"
    assert reason(lcb(lcb_row("abc337_e")), LCB) == "interactive"
    assert reason(lcb(lcb_row("arc189_a")), LCB) == "wrong_tests"
    titled = lcb(lcb_row("3111", question_title="find-the-peaks"))
    assert check(titled, LCB, DATA)[0].comparator == "unordered"
    keep = DATA.model_copy(update={"keep_special_judge": True})
    assert check(lcb(lcb_row("abc343_e")), LCB, keep)[0].comparator == "lcb"


def test_livecodebench_keeps_the_official_comparison_whatever_the_statement_says() -> None:
    question = "Print the root of the number; an absolute error of at most 1e-6 is tolerated by the judge."
    assert check(lcb(lcb_row(question_content=question)), LCB, DATA)[0].comparator == "lcb"
    assert check(taco(question), TACO, DATA)[0].comparator == "floats"


def test_a_function_that_may_return_its_list_in_any_order_is_compared_so() -> None:
    question = "Return all the pairs of equal numbers that stand in the list. You may return them in any order."
    lists = [Test("function", f"[{n}]", f"[{n}, 1]") for n in range(5)]
    assert from_statement(question, lists) == "unordered"
    for other in ([*lists, Test("function", "[1]", "7")], [Test("stdin", "1", "[1]")]):
        with pytest.raises(Reject):
            from_statement(question, other)


def test_labels_of_special_judges_are_taken_over_the_statement() -> None:
    for case, comparator in ((0, "lcb"), (2, "yesno"), (3, "floats")):
        problem = replace(taco(), metadata={"special_judge": case})
        assert check(problem, TACO, DATA)[0].comparator == comparator
    assert reason(replace(taco(), metadata={"special_judge": 1})) == "special_judge"


def test_statements_agree_with_tacos_labels_of_a_thousand_problems() -> None:
    prompts = json.loads(shared("taco/taco_generation_example.json").read_text())
    labels = [json.loads(line) for line in shared("taco/output_spj.jsonl").read_text().splitlines()]
    agreed = {kind: [0, 0] for kind in range(4)}
    for prompt, label in zip(prompts, labels, strict=True):
        try:
            found = {"lcb": 0, "yesno": 2, "floats": 3}[from_statement(prompt["prompt"], [Test("stdin", "", "")])]
        except Reject:
            found = 1
        kind = label["case"] if label["special_judge"] else 0
        agreed[kind][0] += found == kind
        agreed[kind][1] += 1
    shares = {kind: right / total for kind, (right, total) in agreed.items()}
    # A problem without a label must not be lost; of those with many answers some say so nowhere.
    assert shares[0] >= 0.98
    assert shares[1] >= 0.80
    assert shares[2] >= 0.95
    assert shares[3] >= 0.90
