from __future__ import annotations

import base64
import pickle
import zlib
from typing import Any

import pytest

from components.data_prep.literals import decode_private_tests, parse_literal
from components.data_prep.rows import Reject
from tests.data_prep.rows import encode_private


@pytest.mark.parametrize(
    "value",
    [
        {"language": "python", "test_cases": [{"input": "4 5\n", "output": 'it\'s "0.8"\n'}]},
        [True, False, None, "True, None and (1, 2)", "back\\slash\t\x00", "é", "'"],
        {"nested": [[[]], {}, "", -1.5, 10**30]},
        "plain",
    ],
)
def test_python_text_and_json_text_of_a_value_give_that_value(value: Any) -> None:
    import json

    assert parse_literal(repr(value), "k") == value
    assert parse_literal(json.dumps(value), "k") == value


def test_tuples_become_lists_and_keys_that_json_lacks_stay() -> None:
    assert parse_literal("((1, 2), (3,), ())", "k") == [[1, 2], [3], []]
    assert parse_literal("{1: 'a', (2, 3): 'b'}", "k") == {1: "a", (2, 3): "b"}


def test_integers_beyond_the_interpreters_digit_limit_are_read() -> None:
    digits = "9" * 6000
    assert parse_literal(f"[{digits}]", "k")[0] % 10**5 == 99999


def test_a_large_python_literal_takes_no_syntax_tree() -> None:
    import tracemalloc

    text = "[" + ", ".join(["(1, 'x')"] * 20_000) + "]"
    tracemalloc.start()
    assert len(parse_literal(text, "k")) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * len(text)  # ast.literal_eval takes several hundred times the text


@pytest.mark.parametrize("text", ["{'a': ", "__import__('os').getcwd()", "[1, x]", "[" * 100_000])
def test_what_is_no_literal_is_rejected_with_its_key(text: str) -> None:
    with pytest.raises(Reject) as caught:
        parse_literal(text, "verification_info")
    assert caught.value.reason == "bad_value"
    assert caught.value.detail.startswith("verification_info:")


def test_private_tests_are_decoded_from_either_form() -> None:
    cases = [{"input": "1", "output": "2", "testtype": "stdin"}]
    assert decode_private_tests(encode_private(cases), "k") == cases
    assert decode_private_tests('[{"input": "1"}]', "k") == [{"input": "1"}]


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("ran",))


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def test_a_pickle_that_names_anything_is_refused_and_does_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Reject) as caught:
        decode_private_tests(_packed(pickle.dumps(_Evil())), "private_test_cases")
    assert caught.value.reason == "unsafe_pickle"
    assert "builtins.print" in caught.value.detail
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("text", ["!!", "AAAA", _packed(b"no pickle"), _packed(pickle.dumps("[1"))[:-8] + "AAAA", ""])
def test_damaged_private_tests_are_rejected(text: str) -> None:
    with pytest.raises(Reject) as caught:
        decode_private_tests(text, "private_test_cases")
    assert caught.value.reason == "bad_value"
    assert "private_test_cases" in caught.value.detail
