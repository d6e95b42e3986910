"""livecodebench/code_generation_lite: public tests as JSON, private ones as base64 of zlib of a pickled string."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.core.schema import Problem
from components.data_prep.literals import decode_private_tests
from components.data_prep.normalize import as_dict, as_list, limits, need, tests_from_cases, text_or_none
from components.data_prep.rows import Reject, Source


def parse(row: Mapping[str, Any], source: Source, ordinal: int) -> Problem:
    """One row; public tests come first, as the official harness has them.

    Raises:
        Reject: with the reason and the key.
    """
    number = str(need(row, "question_id"))
    shown = as_list(need(row, "public_test_cases"), "public_test_cases")
    hidden = need(row, "private_test_cases")
    if isinstance(hidden, str):
        hidden = decode_private_tests(hidden, "private_test_cases") if hidden.strip() else []
    details = as_dict(row.get("metadata"), "metadata")
    cases = [_public(case, i) for i, case in enumerate(shown)] + as_list(hidden, "private_test_cases")
    tests, fn_name, _ = tests_from_cases(
        cases, "public_test_cases + private_test_cases", text_or_none(details.get("func_name"))
    )
    title = str(row.get("question_title") or "")
    return Problem(
        problem_id=f"{source.label}/{number}",
        source=source.label,
        question=str(need(row, "question_content") or ""),
        tests=tests,
        starter_code=str(row.get("starter_code") or ""),
        fn_name=fn_name,
        difficulty=str(row.get("difficulty") or "unknown").lower(),
        platform=str(row.get("platform") or ""),
        # Readers that guess types hand out a timestamp; its text starts with the date too.
        contest_date=str(need(row, "contest_date"))[:10],
        reference_solutions=list(source.solutions.get(number, [])),
        metadata={"question_id": number, "title": title, "contest_id": row.get("contest_id")},
        **limits(None, None),
    )


def _public(case: Any, index: int) -> dict[str, Any]:
    if not isinstance(case, Mapping):
        raise Reject("bad_tests", f"public_test_cases[{index}]: {type(case).__name__} is not an object")
    return {**case, "public": True}
