"""Programs, tests and verdicts: reading what comes in, and the shape of what goes out."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Mode = Literal["real", "lcb"]
VERDICTS = ("AC", "WA", "TLE", "MLE", "OLE", "RE", "CE", "NF", "INFRA")
"""Accepted; wrong answer; time, memory or output limit; runtime or compile error; no code or no function found;
INFRA: the grader or the problem is at fault, so that no reward may be derived."""

WRAPPINGS = ("auto", "bare", "wrapped")

DEFAULT_MEMORY_MB = 512
DEFAULT_TIME_S: dict[Mode, float] = {"real": 4.0, "lcb": 6.0}

# Integers above the interpreter's default of 4300 digits are part of published tests.
INT_DIGITS = 50_000


class BadProgram(ValueError):
    """A line that cannot be graded; the message says what is wrong with it."""


@dataclass(frozen=True)
class Test:
    """One test; `expected` never leaves the judge."""

    kind: Literal["stdin", "function"]
    input: bytes
    """Standard input, or the JSON list of arguments."""
    expected: Any
    """Text for stdin, any JSON value for a function."""


@dataclass(frozen=True)
class Program:
    """A candidate with everything needed to judge it."""

    id: Any
    code: str | None
    tests: tuple[Test, ...]
    fn_name: str
    comparator: str
    options: Mapping[str, Any]
    time_limit_s: float
    memory_limit_mb: int
    problem_key: str
    """Hash of the tests and how they are compared: what all programs of one problem share."""
    key: str
    """Hash of everything that decides the verdict."""

    @property
    def kind(self) -> str:
        """stdin or function; a program has tests of one kind."""
        return self.tests[0].kind


@dataclass
class Verdict:
    """The outcome of one program; see as_dict for the line that is written."""

    id: Any
    verdict: str
    passed: int = 0
    total: int = 0
    first_failure: int | None = None
    """Index, in the order given, of the first test seen to fail."""
    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    reason: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The JSON line: a compact, stable order of keys."""
        line = {
            "id": self.id,
            "verdict": self.verdict,
            "passed": self.passed,
            "total": self.total,
            "first_failure": self.first_failure,
            "cpu_ms": round(self.cpu_ms, 2),
            "wall_ms": round(self.wall_ms, 2),
        }
        if self.reason:
            line["reason"] = self.reason
        return line | self.extra


def allow_long_integers() -> None:
    """Raise the interpreter's limit on the digits of an integer, never lower it."""
    current = sys.get_int_max_str_digits()
    if current and current < INT_DIGITS:
        sys.set_int_max_str_digits(INT_DIGITS)


def _text(value: Any, what: str) -> str:
    # TACO gives stdin as a list of lines in places.
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise BadProgram(f"{what} is {type(value).__name__}, not text")
    return value


class HarnessError(ValueError):
    """A test that the official harness fails every program on, however right; only in lcb mode."""


def _arguments(value: Any, mode: Mode) -> bytes:
    """Arguments as JSON; text is LiveCodeBench's form, one JSON value a line."""
    if isinstance(value, str):
        lines = value.split("\n")
        if mode == "real":
            lines = [line for line in lines if line.strip()]
        try:
            value = [json.loads(line) for line in lines]
        except ValueError as error:
            if mode == "lcb":
                raise HarnessError(f"Error during testing: {error}") from None
            raise
    if not isinstance(value, list):
        raise BadProgram(f"function input is {type(value).__name__}, not the list of arguments")
    return json.dumps(value).encode("ascii")


def parse_test(raw: Any, index: int, mode: Mode) -> Test:
    """Read one test; BadProgram if it is not one."""
    if not isinstance(raw, Mapping):
        raise BadProgram(f"test {index} is {type(raw).__name__}, not an object")
    kind = raw.get("kind", "function" if "fn_name" in raw else "stdin")
    if "input" not in raw or "output" not in raw:
        raise BadProgram(f"test {index} has no input or no output")
    if kind == "stdin":
        text = _text(raw["input"], f"input of test {index}")
        return Test("stdin", text.encode("utf-8", "surrogatepass"), _text(raw["output"], f"output of test {index}"))
    if kind != "function":
        raise BadProgram(f"test {index} is of unknown kind {kind!r}")
    try:
        arguments = _arguments(raw["input"], mode)
        # Through JSON, so that a tuple given in process compares like one read from a file.
        expected = json.loads(json.dumps(raw["output"]))
    except HarnessError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise BadProgram(f"test {index} is not JSON: {error}") from None
    return Test("function", arguments, expected)


def _positive(raw: Mapping[str, Any], name: str, default: float) -> float:
    value = raw.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise BadProgram(f"{name}={value!r}: a positive number is needed")
    return float(value)


def _options(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What refines the comparison."""
    options: dict[str, Any] = {}
    for name in ("abs_tol", "rel_tol"):
        if raw.get(name) is not None:
            options[name] = 0.0 if raw[name] == 0 else _positive(raw, name, 0.0)
    if raw.get("checker") is not None:
        if not isinstance(raw["checker"], str):
            raise BadProgram(f"checker is {type(raw['checker']).__name__}, not source text")
        options["checker"] = raw["checker"]
    if raw.get("wrapping") is not None:
        if raw["wrapping"] not in WRAPPINGS:
            raise BadProgram(f"wrapping={raw['wrapping']!r}: one of {', '.join(WRAPPINGS)}")
        options["wrapping"] = raw["wrapping"]
    return options


def parse_program(raw: Any, mode: Mode) -> Program:
    """Read a program; keys beyond the known ones are ignored, missing ones have defaults.

    Raises BadProgram with the reason; zero tests are one.
    """
    if not isinstance(raw, Mapping):
        raise BadProgram(f"a program is an object, not {type(raw).__name__}")
    if "unreadable" in raw and "tests" not in raw:
        raise BadProgram(str(raw["unreadable"]))
    code = raw.get("code")
    if code is not None and not isinstance(code, str):
        raise BadProgram(f"code is {type(code).__name__}, not text")
    raw_tests = raw.get("tests")
    if not isinstance(raw_tests, (list, tuple)):
        raise BadProgram(f"tests is {type(raw_tests).__name__}, not a list")
    if not raw_tests:
        raise BadProgram("no tests: nothing was shown")
    tests = tuple(parse_test(test, i, mode) for i, test in enumerate(raw_tests))
    if len({test.kind for test in tests}) > 1:
        raise BadProgram("stdin and function tests in one program")
    fn_name = ""
    if tests[0].kind == "function":
        names = {str(test.get("fn_name") or raw.get("fn_name") or "") for test in raw_tests}
        if len(names) != 1 or not (fn_name := names.pop()):
            raise BadProgram("function tests need one fn_name for all of them")
    time_limit = _positive(raw, "time_limit_s", DEFAULT_TIME_S[mode])
    memory_mb = max(1, int(_positive(raw, "memory_limit_mb", DEFAULT_MEMORY_MB)))
    comparator = raw.get("comparator") or "lcb"
    options = _options(raw)
    shared = json.dumps([fn_name, str(comparator), options, time_limit, memory_mb], sort_keys=True)
    problem = _hash_tests(tests, shared)
    own = hashlib.sha256(f"{problem}{mode}".encode())
    own.update((code or "").encode("utf-8", "surrogatepass"))
    return Program(
        raw.get("id"), code, tests, fn_name, str(comparator), options, time_limit, memory_mb, problem, own.hexdigest()
    )


def _hash_tests(tests: tuple[Test, ...], shared: str) -> str:
    digest = hashlib.sha256(shared.encode())
    for test in tests:
        expected = test.expected if isinstance(test.expected, str) else json.dumps(test.expected)
        encoded = expected.encode("utf-8", "surrogatepass")
        digest.update(b"%d %d %s " % (len(test.input), len(encoded), test.kind.encode()))
        digest.update(test.input)
        digest.update(encoded)
    return digest.hexdigest()
