from __future__ import annotations

import json
from typing import Any

import pytest

from components.core.config import SourceConfig
from components.core.schema import Problem, Test
from components.data_prep.parsers import PARSERS
from components.data_prep.rows import Reject, Source
from tests.data_prep.rows import lcb_function_row, lcb_row, pi_row, taco_function_row, taco_row


def parse(format: Any, row: dict[str, Any], **source: Any) -> Problem:
    config = SourceConfig(format=format, path="x")
    return PARSERS[format](row, Source(format, config, **source), 7)


def rejected(format: str, row: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(Reject) as caught:
        parse(format, row)
    return caught.value.reason, caught.value.detail


def test_taco_stdin_row() -> None:
    problem = parse("taco", taco_row())
    assert problem.problem_id == "taco/7"
    assert problem.tests[3] == Test("stdin", "10 -3\n", "7\n")
    assert (problem.difficulty, problem.platform) == ("easy", "codeforces")
    assert (problem.time_limit_s, problem.memory_limit_mb) == (8.0, 2048)
    assert problem.metadata["time_limit"] == "8.0 seconds"
    assert problem.reference_solutions == ["a, b = map(int, input().split())\nprint(a + b)\n"]


def test_stated_limits_below_the_defaults_stay_in_the_metadata_only() -> None:
    problem = parse("taco", taco_row(time_limit="0.5 seconds", memory_limit="64000 KB"))
    assert (problem.time_limit_s, problem.memory_limit_mb) == (6.0, 1024)
    assert problem.metadata["memory_limit"] == "64000 KB"


def test_taco_inputs_may_be_lists_of_lines() -> None:
    columns = {"inputs": [["2", "3 4"], "5"], "outputs": [["7"], "5"]}
    problem = parse("taco", taco_row(input_output=json.dumps(columns)))
    assert problem.tests == [Test("stdin", "2\n3 4", "7"), Test("stdin", "5", "5")]


def test_taco_wrapped_outputs_are_decided_for_the_whole_problem() -> None:
    wrapped = parse("taco", taco_function_row("f", "", [([1], [1]), ([2], 5)]))
    assert [test.output for test in wrapped.tests] == ["[1]", "5"]
    assert wrapped.metadata["wrapped_outputs"]
    bare = parse("taco", taco_function_row("f", "", [([1], [1]), ([2], [1, 2])], wrap=False))
    assert [test.output for test in bare.tests] == ["[1]", "[1, 2]"]
    assert not bare.metadata["wrapped_outputs"]


def test_taco_verified_has_real_lists_and_python_text() -> None:
    row = taco_row(solutions=["print(1)"], input_output=repr({"inputs": ["1"], "outputs": ["1"]}))
    assert parse("taco", row).reference_solutions == ["print(1)"]


def test_taco_rows_that_cannot_be_used() -> None:
    assert rejected("taco", taco_row(input_output=""))[0] == "no_tests"
    assert rejected("taco", taco_row(input_output='{"inputs": [], "outputs": []}'))[0] == "no_tests"
    assert rejected("taco", taco_row(input_output='{"inputs": ["1"], "outputs": []}')) == (
        "unequal_tests",
        "input_output: 1 inputs, 0 outputs",
    )
    assert rejected("taco", taco_row(input_output='{"inputs": [{"a": 1}], "outputs": ["1"]}'))[0] == "bad_tests"
    row = taco_row()
    del row["input_output"]
    reason, detail = rejected("taco", row)
    assert reason == "missing_column"
    assert detail.startswith("input_output")


def test_primeintellect_function_row() -> None:
    problem = parse("primeintellect", pi_row(3))
    assert problem.problem_id == "primeintellect/vcp_3"
    assert problem.fn_name == "largest"
    assert problem.tests[2] == Test("function", "[[3, 1, 2]]", "3")
    assert problem.reference_solutions == ["def largest(values):\n    return max(values)"]
    assert problem.difficulty == "interview"


def test_primeintellect_stdin_row_and_other_forms_of_the_cases() -> None:
    case = {"type": "stdin_stdout", "input": "4 5\n", "output": "0.8\n"}
    expected = [Test("stdin", "4 5\n", "0.8\n")]
    struct = {"language": "Python", "test_cases": [case]}
    columns = {"language": "python", "test_cases": json.dumps({"inputs": ["4 5\n"], "outputs": ["0.8\n"]})}
    for info in (repr(struct), json.dumps(struct), struct, columns, json.dumps(columns)):
        assert parse("primeintellect", pi_row(verification_info=info)).tests == expected


def test_primeintellect_as_re_exported_with_text_in_every_field() -> None:
    case = {"type": "function_call", "fn_name": "f", "input": "[[1, 2], 3]", "output": "[4]"}
    other = {"type": "function_call", "fn_name": "f", "input": "[[], 0]", "output": "[4, 5]"}
    row = pi_row(verification_info={"language": "python", "test_cases": [case, other]})
    row["problem_statement"] = row.pop("prompt")
    problem = parse("primeintellect", row)
    assert problem.tests == [Test("function", "[[1, 2], 3]", "[4]"), Test("function", "[[], 0]", "[4, 5]")]


def test_primeintellect_text_values_beside_real_lists_are_strings() -> None:
    case = {"type": "function_call", "fn_name": "f", "input": ["a"], "output": "YES"}
    row = pi_row(verification_info=repr({"language": "python", "test_cases": [case]}))
    assert parse("primeintellect", row).tests == [Test("function", '["a"]', '"YES"')]


def test_primeintellect_rows_that_cannot_be_used() -> None:
    for language in ("cpp", "rust", "javascript"):
        info = repr({"language": language, "test_cases": []})
        assert rejected("primeintellect", pi_row(verification_info=info))[0] == "not_python"
    assert rejected("primeintellect", pi_row(gold_standard_solution="```cpp\nint main(){}\n```"))[0] == "not_python"
    assert rejected("primeintellect", pi_row(task_type="llm_judgeable"))[0] == "not_code"
    cases = [
        {"type": "stdin_stdout", "input": "", "output": ""},
        {"type": "function_call", "fn_name": "f", "input": [], "output": 1},
    ]
    mixed = repr({"language": "python", "test_cases": cases})
    assert rejected("primeintellect", pi_row(verification_info=mixed))[0] == "mixed_test_kinds"


def test_primeintellect_without_a_reference_has_none() -> None:
    assert parse("primeintellect", pi_row(gold_standard_solution=None)).reference_solutions == []


def test_livecodebench_stdin_row() -> None:
    problem = parse("livecodebench", lcb_row(), solutions={"abc999_a": ["print(2 * int(input()))"]})
    assert [test.public for test in problem.tests] == [True] + [False] * 5
    assert problem.tests[4] == Test("stdin", "400\n", "800\n")
    assert problem.contest_date == "2024-09-01"
    assert problem.reference_solutions == ["print(2 * int(input()))"]


def test_livecodebench_function_row_has_one_argument_a_line() -> None:
    problem = parse("livecodebench", lcb_function_row())
    assert problem.fn_name == "total"
    assert problem.tests[1] == Test("function", "[[1, 2], 3]", "6", public=True)


def test_livecodebench_integers_of_any_length_are_exact() -> None:
    huge = "7" * 5000
    cases = json.dumps([{"input": huge, "output": huge, "testtype": "functional"}])
    problem = parse("livecodebench", lcb_function_row(public_test_cases=cases, private_test_cases="[]"))
    assert problem.tests[0].input == f"[{huge}]"


@pytest.mark.parametrize(
    ("tests", "fn_name", "kind"),
    [
        ({"fn_name": "f", "inputs": [[1, 2]], "outputs": [[3]]}, "f", "function"),
        ({"inputs": ["1"], "outputs": ["2"]}, None, "stdin"),
        ([{"type": "function_call", "fn_name": "f", "input": [[1], 2], "output": 3}], "f", "function"),
        ([{"input": "[1]\n2", "output": "3", "testtype": "functional"}], "g", "function"),
        ([{"input": "3 30\n2 2 1", "output": "5"}], None, "stdin"),
    ],
)
@pytest.mark.parametrize("as_text", [True, False])
def test_deepcoder_takes_the_tests_of_all_its_configurations(
    tests: Any, fn_name: str | None, kind: str, as_text: bool
) -> None:
    row = {"problem": "p", "tests": json.dumps(tests) if as_text else tests, "metadata": {"func_name": "g"}}
    problem = parse("deepcoder", row | {"solutions": ["```python\nx\n```", "y"]})
    assert problem.fn_name == fn_name
    assert {test.kind for test in problem.tests} == {kind}
    assert problem.reference_solutions == ["x", "y"]
