"""agentica-org/DeepCoder-Preview-Dataset: the three sources once more, in one looser schema.

`tests` is JSON text or the value: {inputs, outputs, fn_name?} from TACO, a list of cases from the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.core.schema import Problem
from components.data_prep.literals import parse_literal
from components.data_prep.normalize import (
    as_dict,
    as_list,
    fenced_code,
    limits,
    need,
    tests_from_cases,
    tests_from_columns,
    text_or_none,
)
from components.data_prep.rows import Source


def parse(row: Mapping[str, Any], source: Source, ordinal: int) -> Problem:
    """One row of any of the four configurations.

    Raises:
        Reject: with the reason and the key.
    """
    tests_value = need(row, "tests")
    if isinstance(tests_value, str):
        tests_value = parse_literal(tests_value, "tests")
    details = as_dict(row.get("metadata"), "metadata")
    if isinstance(tests_value, Mapping):
        tests, fn_name, wrapped = tests_from_columns(tests_value, "tests")
    else:
        tests, fn_name, wrapped = tests_from_cases(
            as_list(tests_value, "tests"), "tests", text_or_none(details.get("func_name"))
        )
    number = str(row.get("question_id") or ordinal)
    given = [fenced_code(str(text)) for text in as_list(row.get("solutions"), "solutions")]
    date = row.get("contest_date")
    return Problem(
        problem_id=f"{source.label}/{number}",
        source=source.label,
        question=str(need(row, "problem") or ""),
        tests=tests,
        starter_code=str(row.get("starter_code") or ""),
        fn_name=fn_name,
        difficulty=str(details.get("difficulty") or "unknown").lower(),
        platform=str(details.get("platform") or ""),
        contest_date=str(date)[:10] if date else None,
        reference_solutions=[text for text in given if text and text.strip()] + source.solutions.get(number, []),
        metadata={"question_id": number, "wrapped_outputs": wrapped},
        **limits(None, None),
    )
