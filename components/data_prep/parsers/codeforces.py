"""open-r1/codeforces: statements in parts, official tests, and for many right answers a generated checker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from components.core.schema import Problem
from components.data_prep.normalize import as_list, limits, need, tests_from_cases, text_or_none
from components.data_prep.rows import Reject, Source

# The checker is a program: checker.py INPUT EXPECTED OUTPUT prints 1, or 100 where it scores. Here the three files
# are in memory, since a checker can open none.
_CHECKER = """
def check(input, output, expected):
    import builtins, contextlib, io, sys
    files = {{"input.txt": input, "correct_output.txt": expected, "solution_output.txt": output}}
    printed = io.StringIO()
    names = {{"__name__": "__main__", "open": lambda path, *_, **__: io.StringIO(files[str(path)])}}
    sys.argv = ["checker.py", *files]
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        exec({source!r}, names)
    words = printed.getvalue().split()
    return bool(words) and float(words[-1]) in (1.0, 100.0)
"""


def parse(row: Mapping[str, Any], source: Source, ordinal: int) -> Problem:
    """One row; examples are public, and come first.

    Raises:
        Reject: with the reason and the key.
    """
    number = str(need(row, "id"))
    if text_or_none(row.get("interaction_format")):
        raise Reject("interactive", "interaction_format: needs a partner to talk to")
    if (row.get("input_mode") or "stdio") != "stdio":
        raise Reject("bad_value", f"input_mode: {row['input_mode']}, programs here read standard input")
    shown = [{**case, "public": True} for case in as_list(row.get("examples"), "examples")]
    seen = {case["input"].strip() for case in shown if isinstance(case.get("input"), str)}
    official = as_list(need(row, "official_tests"), "official_tests")
    hidden = [case for case in official if not isinstance(case, Mapping) or str(case.get("input")).strip() not in seen]
    tests, _, _ = tests_from_cases(shown + hidden, "examples + official_tests", None)
    checker = text_or_none(row.get("generated_checker"))
    metadata = {
        "question_id": number,
        "title": row.get("title"),
        "contest_id": row.get("contest_id"),
        "rating": row.get("rating"),
        "tags": list(row.get("tags") or []),
        # Long tests are left out of the published rows: passing those that are there proves less.
        "tests_complete": bool(row.get("official_tests_complete")),
    }
    if checker:
        metadata["checker"] = _CHECKER.format(source=checker)
    return Problem(
        problem_id=f"{source.label}/{number}",
        source=source.label,
        question=_statement(row, shown),
        tests=tests,
        comparator="checker" if checker else "lcb",
        difficulty=_difficulty(row.get("rating")),
        platform="codeforces",
        contest_date=_day(row.get("contest_start")),
        metadata=metadata,
        **limits(row.get("time_limit"), row.get("memory_limit")),
    )


def _statement(row: Mapping[str, Any], examples: list[dict[str, Any]]) -> str:
    description = str(need(row, "description") or "")
    if not description.strip():
        raise Reject("empty_statement", "description: empty")
    parts = [description]
    for key, heading in (("input_format", "Input"), ("output_format", "Output")):
        if text_or_none(row.get(key)):
            parts.append(f"{heading}\n\n{row[key]}")
    for case in examples:
        parts.append(f"Sample Input\n\n{str(case['input']).strip()}\n\nSample Output\n\n{str(case['output']).strip()}")
    if text_or_none(row.get("note")):
        parts.append(f"Note\n\n{row['note']}")
    return "\n\n".join(part.strip() for part in parts)


def _difficulty(rating: Any) -> str:
    """A band of 400 rating points."""
    if not isinstance(rating, int | float) or rating != rating or rating <= 0:
        return "unknown"
    low = int(rating) // 400 * 400
    return f"{low}–{low + 399}"


def _day(seconds: Any) -> str | None:
    """The date of a time in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat() if isinstance(seconds, int | float) else None
