"""One form for the tests, limits and references of every source."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from components.core.schema import Test
from components.data_prep.literals import allow_long_integers, parse_literal
from components.data_prep.rows import Reject

DEFAULT_TIME_S = 6.0
DEFAULT_MEMORY_MB = 1024
MAX_TIME_S = 30.0
MAX_MEMORY_MB = 4096
_FENCE = re.compile(r"^\s*```[ \t]*(\w*)[^\n]*\n(.*?)\n?```\s*$", re.DOTALL)
_STDIN_TYPES = {"", "stdin", "stdin_stdout"}
_FUNCTION_TYPES = {"functional", "function_call", "function"}


def need(row: Mapping[str, Any], *keys: str) -> Any:
    """The first of `keys` that the row has.

    Raises:
        Reject: `missing_column`.
    """
    for key in keys:
        if key in row:
            return row[key]
    raise Reject("missing_column", f"{' or '.join(keys)}: not among {', '.join(sorted(map(str, row))[:20])}")


def text_of(value: Any, key: str) -> str:
    """Text as it is, a list of lines joined, a number as Python prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, Sequence) and all(isinstance(line, str | int | float) for line in value):
        return "\n".join(str(line) for line in value)
    raise Reject("bad_tests", f"{key}: {type(value).__name__} is not text")


def text_or_none(value: Any) -> str | None:
    """Text that is there; None for anything else."""
    return value if isinstance(value, str) and value else None


def as_list(value: Any, key: str) -> list[Any]:
    """A list, or the text of one; nothing counts as empty."""
    if isinstance(value, str):
        value = parse_literal(value, key) if value.strip() else []
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise Reject("bad_value", f"{key}: {type(value).__name__} is not a list")
    return list(value)


def as_dict(value: Any, key: str) -> dict[str, Any]:
    """A mapping, or the text of one; nothing counts as empty."""
    if isinstance(value, str):
        value = parse_literal(value, key) if value.strip() else {}
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Reject("bad_value", f"{key}: {type(value).__name__} is not a mapping")
    return dict(value)


def to_json(value: Any, key: str) -> str:
    """A test's value as JSON text."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Reject("bad_tests", f"{key}: has no JSON form ({error})") from None


def function_tests(inputs: list[Any], outputs: list[Any], public: list[bool]) -> tuple[list[Test], bool]:
    """Function tests from lists of arguments and values, and whether the values were unwrapped.

    Some sources wrap each value in a list of one. That is decided for a problem as a whole: if every value is such
    a list, it is read as wrapped; verification tries the other reading when no reference passes.
    """
    wrapped = bool(outputs) and all(isinstance(output, list) and len(output) == 1 for output in outputs)
    tests = []
    for i, (arguments, output, shown) in enumerate(zip(inputs, outputs, public, strict=True)):
        if not isinstance(arguments, list):
            raise Reject("bad_tests", f"inputs[{i}]: {type(arguments).__name__} is not the list of arguments")
        value = output[0] if wrapped else output
        tests.append(Test("function", to_json(arguments, f"inputs[{i}]"), to_json(value, f"outputs[{i}]"), shown))
    return tests, wrapped


def tests_from_columns(value: Mapping[str, Any], key: str) -> tuple[list[Test], str | None, bool]:
    """Tests written as {inputs, outputs, fn_name?}, the form of APPS and TACO.

    Returns:
        the tests, the function's name or None, and whether the outputs were unwrapped.
    """
    inputs, outputs = as_list(value.get("inputs"), f"{key}.inputs"), as_list(value.get("outputs"), f"{key}.outputs")
    if len(inputs) != len(outputs):
        raise Reject("unequal_tests", f"{key}: {len(inputs)} inputs, {len(outputs)} outputs")
    if not inputs:
        raise Reject("no_tests", f"{key}: holds none")
    fn_name = value.get("fn_name")
    if fn_name:
        # A mapping of argument names keeps its order; a lone value is the only argument.
        lists = [list(i.values()) if isinstance(i, Mapping) else i if isinstance(i, list) else [i] for i in inputs]
        tests, wrapped = function_tests(lists, outputs, [False] * len(lists))
        return tests, str(fn_name), wrapped
    return (
        [
            Test("stdin", text_of(i, f"{key}.inputs[{n}]"), text_of(o, f"{key}.outputs[{n}]"))
            for n, (i, o) in enumerate(zip(inputs, outputs, strict=True))
        ],
        None,
        False,
    )


def tests_from_cases(cases: list[Any], key: str, fn_name: str | None) -> tuple[list[Test], str | None, bool]:
    """Tests written one by one, as LiveCodeBench (testtype) and PrimeIntellect (type) do.

    A case may carry `public`. Kinds may differ between cases: that is for the filters to refuse.
    """
    if not cases:
        raise Reject("no_tests", f"{key}: holds none")
    kinds: list[str] = []
    for i, case in enumerate(cases):
        if not isinstance(case, Mapping) or "input" not in case or "output" not in case:
            raise Reject("bad_tests", f"{key}[{i}]: not an object with input and output")
        named = str(case.get("testtype") or case.get("type") or ("function" if case.get("fn_name") else ""))
        if named not in _STDIN_TYPES | _FUNCTION_TYPES:
            raise Reject("bad_tests", f"{key}[{i}]: unknown type {named!r}")
        kinds.append("function" if named in _FUNCTION_TYPES else "stdin")
    if len(set(kinds)) > 1:
        raise Reject("mixed_test_kinds", f"{key}: {kinds.count('stdin')} stdin, {kinds.count('function')} function")
    public = [bool(case.get("public")) for case in cases]
    if kinds[0] == "stdin":
        return (
            [
                Test(
                    "stdin",
                    text_of(case["input"], f"{key}[{i}].input"),
                    text_of(case["output"], f"{key}[{i}].output"),
                    p,
                )
                for i, (case, p) in enumerate(zip(cases, public, strict=True))
            ],
            None,
            False,
        )
    names = {str(case["fn_name"]) for case in cases if case.get("fn_name")}
    if len(names) > 1:
        raise Reject("bad_tests", f"{key}: tests call {', '.join(sorted(names))}")
    # LiveCodeBench writes one JSON value a line and never wraps; the others give the list of arguments.
    by_line = [isinstance(case["input"], str) and case.get("testtype") is not None for case in cases]
    inputs, outputs = [], []
    for i, (case, line) in enumerate(zip(cases, by_line, strict=True)):
        inputs.append(_arguments(case["input"], line, f"{key}[{i}].input"))
        # Where arguments are text, so is the value; where they are a list, text is a string value.
        value = case["output"]
        outputs.append(_value(value, f"{key}[{i}].output") if isinstance(case["input"], str) else value)
    if any(by_line):
        tests = [
            Test("function", to_json(i, key), to_json(o, key), p)
            for i, o, p in zip(inputs, outputs, public, strict=True)
        ]
        return tests, names.pop() if names else fn_name, False
    tests, wrapped = function_tests(inputs, outputs, public)
    return tests, names.pop() if names else fn_name, wrapped


def _arguments(value: Any, by_line: bool, key: str) -> list[Any]:
    if by_line:
        return [_value(line, key) for line in value.split("\n") if line.strip()]
    if isinstance(value, str):
        value = parse_literal(value, key)
    if not isinstance(value, list | tuple):
        raise Reject("bad_tests", f"{key}: {type(value).__name__} is not the list of arguments")
    return list(value)


def _value(value: Any, key: str) -> Any:
    """A value given as JSON text, or as it is."""
    if not isinstance(value, str):
        return value
    allow_long_integers()
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise Reject("bad_tests", f"{key}: not JSON ({value[:60]!r})") from None


def fenced_code(text: Any) -> str | None:
    """The program of a fenced block labelled Python; text without a fence is the program. None: not Python."""
    if not isinstance(text, str):
        return None
    match = _FENCE.match(text)
    if match is None:
        return None if "```" in text else text
    return match[2] if match[1].lower() in ("", "python", "python3", "py") else None


def first_number(value: Any) -> float | None:
    """The number in "2.0 seconds", 2, or None; a number that is not above 0 counts as absent."""
    if isinstance(value, str):
        match = re.search(r"\d+(?:\.\d+)?", value[:100])
        value = float(match[0]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e15:
        return None
    return float(value)


def seconds(value: Any) -> float | None:
    """The time in "2.0 seconds", "1500 ms" or a plain number of seconds."""
    number = first_number(value)
    if number is None:
        return None
    return number / 1000 if isinstance(value, str) and re.search(r"\d\s*m(?:s|illi)", value) else number


def megabytes(value: Any) -> float | None:
    """The size in "256.0 megabytes", "262144 KB", "268435456 bytes" or a plain number of megabytes."""
    number = first_number(value)
    if number is None:
        return None
    text = value.lower() if isinstance(value, str) else ""
    if re.search(r"\d\s*b(?:ytes?)?\b", text):
        return number / (1 << 20)
    return (
        number / 1024 if "kilo" in text or "kb" in text else number * 1024 if "giga" in text or "gb" in text else number
    )


def limits(time_limit: Any, memory_mb: float | None) -> dict[str, Any]:
    """The limits of a problem row from the stated ones, which were set for compiled languages.

    Stated limits only raise the defaults, and not beyond what a test is worth; the stated values themselves are kept
    in the metadata.
    """
    time_s = max(DEFAULT_TIME_S, seconds(time_limit) or 0.0)
    memory = max(DEFAULT_MEMORY_MB, memory_mb or 0.0)
    return {"time_limit_s": min(time_s, MAX_TIME_S), "memory_limit_mb": int(min(memory, MAX_MEMORY_MB))}
