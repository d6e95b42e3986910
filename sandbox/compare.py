"""Does an output match the expected one? Pure functions, run in the judge only.

Every comparator takes text for stdin tests (`match_text`) or decoded values for function tests (`match_value`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from math import isfinite, isinf
from typing import Any

MAX_TOKEN = 50_000
"""Characters of a number: Decimal and int are quadratic in it, and the official limit on digits is the same."""


_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
"""A line as `str.splitlines` sees it."""


class GraderError(Exception):
    """The comparison itself failed, as the official harness does on a signalling NaN; a fail, not an accident."""


def stripped_lines(text: str) -> list[str]:
    """The lines without surrounding space, after the text's own was taken off."""
    return [line.strip() for line in text.strip().split("\n")]


def _split_as(output: str, want: list[str]) -> list[str] | None:
    """The tokens of an output if there are as many as wanted; never many more are made."""
    got = output.split(maxsplit=len(want))
    return got if len(got) == len(want) else None


def _decimals(line: str) -> list[Decimal] | None:
    tokens = line.split()
    if any(len(token) > MAX_TOKEN for token in tokens):
        return None
    try:
        return [Decimal(token) for token in tokens]
    except InvalidOperation:
        return None


def lcb(output: str, expected: str, _options: Mapping[str, Any]) -> bool:
    """LiveCodeBench: equal lines, or lines whose tokens are all numbers and exactly equal ones."""
    # What a program prints may be far longer than what is expected: counted before anything is split.
    if output.strip().count("\n") != expected.strip().count("\n"):
        return False
    got, want = stripped_lines(output), stripped_lines(expected)
    for got_line, want_line in zip(got, want, strict=True):
        if got_line == want_line:
            continue
        if _split_as(got_line, want_line.split()) is None:
            return False
        got_numbers = _decimals(got_line)
        want_numbers = _decimals(want_line) if got_numbers is not None else None
        try:
            if got_numbers is None or got_numbers != want_numbers:
                return False
        except InvalidOperation:
            raise GraderError("a signalling NaN cannot be compared") from None
    return True


def tokens(output: str, expected: str, _options: Mapping[str, Any]) -> bool:
    """Equal sequences of whitespace-separated tokens, lines not counted."""
    want = expected.split()
    return _split_as(output, want) == want


def _is_written_as_float(token: str) -> bool:
    return any(mark in token for mark in ".eE")


def _close(got: str, want: str, options: Mapping[str, Any]) -> bool:
    if got == want:
        return True
    # Two integers stay exact: tolerance would make 50000000000000001 equal 50000000000000000.
    if not (_is_written_as_float(want) or _is_written_as_float(got)) or len(got) > 400 or len(want) > 400:
        return False
    try:
        return close_numbers(float(got), float(want), options)
    except ValueError:
        return False


def close_numbers(got: float, want: float, options: Mapping[str, Any]) -> bool:
    """Absolute or relative tolerance (abs_tol, rel_tol; 1e-6 each); NaN equals nothing, infinity itself."""
    if isinf(got) or isinf(want):
        return got == want
    if not isfinite(got) or not isfinite(want):
        return False
    absolute, relative = float(options.get("abs_tol", 1e-6)), float(options.get("rel_tol", 1e-6))
    return abs(got - want) <= max(absolute, relative * abs(want))


def floats(output: str, expected: str, options: Mapping[str, Any]) -> bool:
    """Tokens, with tolerance only where one of the two is written as a float."""
    want = expected.split()
    got = _split_as(output, want)
    return got is not None and all(_close(g, w, options) for g, w in zip(got, want, strict=True))


def unordered(output: str, expected: str, _options: Mapping[str, Any]) -> bool:
    """The same lines, as often each, in any order; blank lines and the space inside a line do not count."""

    want = Counter(tuple(line.split()) for line in expected.splitlines() if line.strip())
    longest = max(map(len, want), default=0)
    for match in _LINE.finditer(output):  # one at a time, up to the first that is not wanted
        key = tuple(match[0].split(maxsplit=longest))
        if not key:
            continue
        if not want[key]:
            return False
        want[key] -= 1
    return not any(want.values())


def yesno(output: str, expected: str, _options: Mapping[str, Any]) -> bool:
    """Tokens, the letter case of which does not count where the expected one is yes or no."""
    want = expected.split()
    got = _split_as(output, want)
    return got is not None and all(same_answer(g, w) for g, w in zip(got, want, strict=True))


def same_answer(got: str, want: str) -> bool:
    """Equal, or equal but for letter case where yes or no is wanted."""
    return got == want or (want.lower() in ("yes", "no") and got.lower() == want.lower())


TextComparator = Callable[[str, str, Mapping[str, Any]], bool]
COMPARATORS: dict[str, TextComparator] = {
    "lcb": lcb,
    "tokens": tokens,
    "floats": floats,
    "unordered": unordered,
    "yesno": yesno,
}
CUSTOM = "checker"
"""The comparator's name for a problem with its own checker program, which runs sandboxed."""


def match_text(name: str, output: str, expected: str, options: Mapping[str, Any]) -> bool:
    """Compare what a program printed; GraderError where the official harness would fail itself."""
    if output.rstrip() == expected.rstrip():
        return True
    return COMPARATORS[name](output, expected, options)
