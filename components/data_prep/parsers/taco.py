"""BAAI/TACO and likaixin/TACO-verified: all columns are text, tests are {inputs, outputs, fn_name?}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.core.schema import Problem
from components.data_prep.normalize import as_dict, as_list, fenced_code, limits, megabytes, need, tests_from_columns
from components.data_prep.rows import Reject, Source

_KEPT = ("name", "url", "tags", "raw_tags", "skill_types", "time_limit", "memory_limit", "picture_num")


def parse(row: Mapping[str, Any], source: Source, ordinal: int) -> Problem:
    """One TACO row; its id is its row number, as the data set has no other.

    Raises:
        Reject: with the reason and the key.
    """
    number = str(row.get("id", ordinal))
    columns = as_dict(need(row, "input_output"), "input_output")
    if not columns:
        raise Reject("no_tests", "input_output: empty")
    tests, fn_name, wrapped = tests_from_columns(columns, "input_output")
    references = [fenced_code(str(text)) for text in as_list(need(row, "solutions"), "solutions")]
    metadata: dict[str, Any] = {key: row[key] for key in _KEPT if row.get(key) not in (None, "", "[]")}
    metadata |= {"question_id": number, "wrapped_outputs": wrapped}
    if number in source.special_judge:
        metadata["special_judge"] = source.special_judge[number]
    return Problem(
        problem_id=f"{source.label}/{number}",
        source=source.label,
        question=str(need(row, "question") or ""),
        tests=tests,
        starter_code=str(row.get("starter_code") or ""),
        fn_name=fn_name,
        difficulty=str(row.get("difficulty") or "unknown").lower().removesuffix("_difficulty"),
        platform=str(row.get("source") or ""),
        contest_date=str(row["date"])[:10] if row.get("date") else None,
        reference_solutions=[text for text in references if text and text.strip()],
        metadata=metadata,
        **limits(row.get("time_limit"), megabytes(row.get("memory_limit"))),
    )
