"""Comparators and readings, without a process; and the mutation suite: no wrong output is accepted."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from typing import Any

import pytest

from sandbox import compare, values
from sandbox.case import Case
from sandbox.inside.encode import TooLarge, encode
from sandbox.model import BadProgram, parse_program


def _match(name: str, got: str, want: str, **options: Any) -> bool:
    return compare.match_text(name, got, want, options)


@pytest.mark.parametrize(
    ("name", "got", "want", "same"),
    [
        ("tokens", "1\n2 3", "1 2\n3\n", True),
        ("tokens", "1 2", "1 2 3", False),
        ("tokens", "1.0", "1", False),
        ("floats", "0.3333333", "0.33333333333", True),
        ("floats", "0.3334", "0.3333333", False),
        ("floats", "1", "1.0", True),
        # Only what is written as a float is measured with a tolerance: the neighbour of an integer stays wrong.
        ("floats", "1000001", "1000000", False),
        ("floats", "0.9999999999", "1", True),
        ("floats", "50000000000000001", "50000000000000000", False),
        ("floats", "1000002.0", "1000000", False),
        ("floats", "nan", "1.0", False),
        ("floats", "nan", "nan", True),
        ("floats", "inf", "1e400", True),
        ("floats", "-inf", "1e400", False),
        ("floats", "Case 1: 0.50", "Case 1: 0.5", True),
        ("floats", "YES 0.5", "NO 0.5", False),
        ("unordered", "b\na\n\n", "a\nb\n", True),
        ("unordered", "a\na\nb", "a\nb\nb", False),
        ("unordered", "a b", "b a", False),
        ("yesno", "yes\nNo", "YES\nNO", True),
        ("yesno", "no", "YES", False),
        ("yesno", "abc", "ABC", False),
        ("lcb", "YES", "Yes", False),
    ],
)
def test_a_comparator_relaxes_exactly_what_its_name_says(name: str, got: str, want: str, same: bool) -> None:
    assert _match(name, got, want) is same


def test_a_wider_tolerance_is_the_problems_to_give() -> None:
    assert _match("floats", "0.334", "0.3333", abs_tol=1e-2)
    assert not _match("floats", "0.334", "0.3333", abs_tol=1e-9, rel_tol=1e-9)


def test_a_line_of_a_million_digits_is_compared_without_quadratic_work() -> None:
    assert not _match("lcb", "1" * 1_000_000, "2" * 1_000_000)
    assert _match("lcb", "1" * 1_000_000, "1" * 1_000_000 + "\n")


EXPECTED = {
    "lcb": ["3\n1 2 3\nYES\n", "12345678901234567890123\n", "0.5 1.25\nNO\n", "5\n4\n3\n"],
    "tokens": ["3\n1 2 3\nYES\n", "12345678901234567890123\n", "5\n4\n3\n"],
    "floats": ["3\n1 2 3\nYES\n", "12345678901234567890123\n", "0.5 1.25\nNO\n", "5\n4\n3\n"],
    "yesno": ["3\n1 2 3\nYES\n", "12345678901234567890123\n", "5\n4\n3\n"],
    "unordered": ["3\n1 2 3\nYES\n", "12345678901234567890123\n", "5\n4\n3\n"],
}


def _text_mutants(text: str) -> dict[str, str]:
    """Wrong outputs near a right one; a change that changes nothing is left out."""
    lines = text.splitlines()
    numbers = [token for token in text.split() if token.lstrip("-").replace(".", "", 1).isdigit()]
    first = numbers[0]
    plus = str(int(first) + 1) if first.isdigit() else str(float(first) + 1)
    near = f"{float(numbers[-1]) * (1 + 1e-5):.12g}" if "." in numbers[-1] else str(int(numbers[-1]) + 1)
    mutants = {
        "yes for no": text.replace("YES", "\0").replace("NO", "YES").replace("\0", "NO"),
        "lines in another order": "\n".join([*lines[1:], lines[0]]),
        "integer plus one": text.replace(first, plus, 1),
        "relative 1e-5, or the next integer": near.join(text.rsplit(numbers[-1], 1)),
        "prefix": text[: len(text) // 2],
        "last line dropped": "\n".join(lines[:-1]),
        "nothing": "",
        "a line more": text + "0\n",
        "twice": text * 2,
    }
    return {name: mutant for name, mutant in mutants.items() if mutant.split() != text.split()}


@pytest.mark.parametrize("name", EXPECTED)
def test_no_mutant_of_a_right_output_is_accepted(name: str) -> None:
    accepted = []
    for text in EXPECTED[name]:
        assert _match(name, text, text)
        for mutation, mutant in _text_mutants(text).items():
            if name == "unordered" and mutation == "lines in another order":
                continue  # what this comparator is for
            if _match(name, mutant, text):
                accepted.append((mutation, text, mutant))
    assert accepted == []


def _value_mutants(value: Any) -> dict[str, Any]:
    mutants: dict[str, Any] = {"in a list": [value], "none": None, "as text": str(value) + " "}
    if isinstance(value, list) and value:
        mutants |= {"first element only": value[0], "last dropped": value[:-1], "twice": value * 2}
        if value[::-1] != value:
            mutants["reversed"] = value[::-1]
    if isinstance(value, bool):
        mutants["negated"] = not value
    elif isinstance(value, int):
        mutants |= {"plus one": value + 1, "negative": -value - 1}
    elif isinstance(value, float):
        mutants["relative 1e-5"] = value * (1 + 1e-5)
    return mutants


def _verdict(name: str, outputs: list[Any], results: list[Any], **options: Any) -> bool:
    """Whether results pass, judged as the grader judges them: encoded by the child, decoded by the judge."""
    tests = [{"kind": "function", "fn_name": "f", "input": [i], "output": v} for i, v in enumerate(outputs)]
    program = parse_program({"code": "x", "tests": tests, "comparator": name} | options, "real")
    case = Case(program, "real", Counter(), early_exit=True)
    while not case.finished:
        case.record(case.judge_value(encode(results[case.current], 1 << 20), lambda *_: pytest.fail("no checker")))
    return case.failure is None


@pytest.mark.parametrize("name", ["lcb", "tokens", "floats"])
def test_no_mutant_of_a_right_result_is_accepted(name: str) -> None:
    outputs = [7, [1, 2, 3], 10**30, [[1, 2], [3]], True, "ab", 0.25, [5]]
    assert _verdict(name, outputs, outputs)
    accepted = [
        (value, mutation)
        for i, value in enumerate(outputs)
        for mutation, mutant in _value_mutants(value).items()
        if _verdict(name, outputs, [*outputs[:i], mutant, *outputs[i + 1 :]])
    ]
    assert accepted == []


def test_wrapped_or_bare_is_one_reading_for_all_tests_of_a_problem() -> None:
    wrapped = [[3], [[1, 2]], [9]]
    assert _verdict("lcb", wrapped, [3, [1, 2], 9])
    assert _verdict("lcb", wrapped, wrapped)
    assert not _verdict("lcb", wrapped, [3, [[1, 2]], 9]), "each test may not choose its own reading"
    assert not _verdict("lcb", [[3], [1, 2]], [3, [1, 2]]), "one output with two elements: nothing is wrapped here"
    assert not _verdict("lcb", wrapped, [3, [1, 2], 9], wrapping="bare")
    assert not _verdict("lcb", wrapped, wrapped, wrapping="wrapped")


def test_outside_of_lcb_tuples_are_lists_and_keys_are_as_json_writes_them() -> None:
    assert _verdict("tokens", [[[1, 2]], {"1": "a"}], [[(1, 2)], {1: "a"}])
    assert not _verdict("lcb", [[[1, 2]], {"1": "a"}], [[(1, 2)], {1: "a"}])


def test_a_result_that_is_not_plain_equals_nothing() -> None:
    class Equal(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    assert values.decode(encode(Equal(3), 100)) == 3, "a subclass is read as the built-in it is"
    for value in (object(), {1}, (n for n in "a")):
        decoded = values.decode(encode(value, 100))
        assert not values.match_value("lcb", decoded, None, {})
        assert decoded != decoded


def test_what_a_child_sends_is_length_capped_and_only_the_encoders_form_is_read() -> None:
    with pytest.raises(TooLarge):
        encode([0] * 1000, 100)
    with pytest.raises(TooLarge):
        encode(10**1000, 100)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(TooLarge):
        encode(deep, 1 << 20)
    for payload in (
        b"",
        b"[",
        b'{"t": 3}',
        b'{"a": 1}',
        b'{"t": [], "s": []}',
        b"\xff",
        b'{"d": [[[1], 2]]}',
        b"[" * 10**6,
    ):
        with pytest.raises(values.Undecodable):
            values.decode(payload)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"code": "x", "tests": []}, "no tests"),
        ({"code": "x"}, "not a list"),
        ({"code": 3, "tests": [{"input": "", "output": ""}]}, "not text"),
        ({"code": "x", "tests": [{"input": ""}]}, "no input or no output"),
        ({"code": "x", "tests": [{"kind": "magic", "input": "", "output": ""}]}, "unknown kind"),
        ({"code": "x", "tests": [{"kind": "function", "fn_name": "f", "input": "[1", "output": 1}]}, "not JSON"),
        ({"code": "x", "tests": [{"kind": "function", "input": [1], "output": 1}]}, "fn_name"),
        ({"code": "x", "tests": [{"input": "", "output": ""}], "time_limit_s": -1}, "positive"),
        (
            {"code": "x", "tests": [{"input": "", "output": ""}, {"fn_name": "f", "input": [], "output": 1}]},
            "stdin and function",
        ),
        ({"code": "x", "tests": [{"input": "", "output": ""}], "abs_tol": "small"}, "positive"),
        ({"code": "x", "tests": [{"input": "", "output": ""}], "wrapping": ["bare"]}, "wrapping"),
        ({"code": "x", "tests": [{"input": "", "output": ""}], "checker": 3}, "source text"),
        ([], "an object"),
    ],
)
def test_a_line_that_cannot_be_graded_says_why(line: Any, reason: str) -> None:
    with pytest.raises(BadProgram, match=reason):
        parse_program(line, "real")


def test_integers_of_more_than_4300_digits_survive_the_way_through_json() -> None:
    from sandbox.model import allow_long_integers

    allow_long_integers()
    big = 10**10_000 + 7
    assert values.decode(json.dumps(big).encode()) == big


def _case(expected: list[Any]) -> Case:
    tests = [{"kind": "function", "fn_name": "f", "input": [], "output": value} for value in expected]
    return Case(parse_program({"code": "x", "tests": tests}, "real"), "real", Counter(), early_exit=True)


def _no_checker(*_: Any) -> Any:
    raise AssertionError


# What a candidate sends can be made to cost the judge, which serves all lanes: hours, if it were quadratic.


def test_keys_that_all_have_one_hash_are_refused() -> None:
    prime = 2**61 - 1
    pairs = [[k * prime, 0] for k in range(1, 100_000)]
    with pytest.raises(values.Undecodable, match="collide"):
        values.decode(json.dumps({"d": pairs}).encode())


def test_a_list_in_the_worst_order_is_matched_in_one_pass() -> None:
    expected = [[i, {"a": i}] for i in range(30_000)]
    assert values.match_value("unordered", expected[::-1], expected, {})
    assert not values.match_value("unordered", [*expected[:0:-1], [0, {"a": 1}]], expected, {})


@pytest.mark.parametrize(
    ("result", "expected", "same"),
    [
        ([1, True, 1.0], [1.0, 1, 1], True),
        ([[2], {"a": [1]}], [{"a": [True]}, [2]], True),
        ([1, 1, 2], [1, 2, 2], False),
        ([[1, 2]], [[2, 1]], False),
        ([{1}], [[1]], False),
    ],
)
def test_unordered_lists_hold_equal_values_as_often_each(result: Any, expected: Any, same: bool) -> None:
    decoded = values.decode(encode(result, 1000))
    assert values.match_value("unordered", decoded, json.loads(json.dumps(expected)), {}) is same


@pytest.mark.parametrize("expected", [True, [1, 2], "x", {"a": 1}])
def test_a_result_far_longer_than_the_expected_one_is_not_decoded(
    expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = _case([expected])
    monkeypatch.setattr(values, "decode", None)
    assert case.judge_value(b"[" + b"[]," * (5 << 20) + b"[]]", _no_checker).verdict == "WA"


def test_integers_of_more_digits_than_any_expected_one_are_not_read() -> None:
    expected = [0] * 100_000
    payload = b"[" + b",".join([b"9" * 49_999] * 300) + b"]"
    assert _case([expected]).judge_value(payload, _no_checker).verdict == "WA"
    longest = values.longest_integer(payload, expected)
    assert isinstance(values.decode(payload, longest)[0], values.Opaque)
    equal = [10**2000] * 100  # of more than 64 KiB, and long integers that are right
    assert _case([equal]).judge_value(json.dumps(equal).encode(), _no_checker).passed


def test_the_longest_way_to_write_an_equal_value_is_still_decoded() -> None:
    expected = [1e308] * 10_000
    case = _case([expected])
    payload = encode([int(1e308)] * 10_000, 16 << 20)
    assert case.judge_value(payload, _no_checker).passed


@pytest.mark.parametrize("name", sorted(compare.COMPARATORS))
@pytest.mark.parametrize("output", ["a\n" * (1 << 23), "ab " * (1 << 22), "\n" * (1 << 24)])
def test_sixteen_megabytes_are_not_taken_apart_to_find_them_wrong(name: str, output: str) -> None:
    tracemalloc.start()
    try:
        assert not _match(name, output, "1 2\n3\n")
        assert tracemalloc.get_traced_memory()[1] < 100 << 20  # eight million strings would be half a gigabyte
    finally:
        tracemalloc.stop()


def test_an_exception_forged_as_a_huge_value_is_unreadable() -> None:
    from sandbox.slot import _message

    assert _message(b'["E", [' + b"[]," * 10**6 + b"[]]]") == "unreadable"
    assert _message(b'["E", "why"]') == "E: why"
