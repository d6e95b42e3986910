"""PrimeIntellect/verifiable-coding-problems, SYNTHETIC-1 and their re-exports.

`verification_info` and `metadata` are Python literals, JSON or structs; the cases are a list of {type, input, output,
fn_name?}, or JSON text of {inputs, outputs, fn_name?} in the INTELLECT-2 form.
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
    megabytes,
    need,
    tests_from_cases,
    tests_from_columns,
)
from components.data_prep.rows import Reject, Source


def parse(row: Mapping[str, Any], source: Source, ordinal: int) -> Problem:
    """One row.

    Raises:
        Reject: with the reason and the key.
    """
    task = row.get("task_type")
    if task not in (None, "", "verifiable_code"):
        raise Reject("not_code", f"task_type: {task}")
    info = as_dict(need(row, "verification_info"), "verification_info")
    language = str(info.get("language") or "python").lower()
    if language not in ("python", "python3"):
        raise Reject("not_python", f"verification_info.language: {language}")
    cases = info.get("test_cases")
    if isinstance(cases, str):
        cases = parse_literal(cases, "verification_info.test_cases")
    if isinstance(cases, Mapping):
        tests, fn_name, wrapped = tests_from_columns(cases, "verification_info.test_cases")
    else:
        key = "verification_info.test_cases"
        tests, fn_name, wrapped = tests_from_cases(as_list(cases, key), key, None)
    gold = row.get("gold_standard_solution")
    code = fenced_code(gold)
    if gold and code is None:
        raise Reject("not_python", "gold_standard_solution: not a fenced Python block")
    details = as_dict(row.get("metadata"), "metadata")
    number = str(row.get("problem_id") or ordinal)
    memory = details.get("memory_limit")
    if isinstance(details.get("memory_limit_bytes"), int | float):
        memory = details["memory_limit_bytes"] / (1 << 20)
    return Problem(
        problem_id=f"{source.label}/{number}",
        source=source.label,
        question=str(need(row, "prompt", "problem_statement", "problem") or ""),
        tests=tests,
        starter_code=str(row.get("starter_code") or ""),
        fn_name=fn_name,
        difficulty=str(details.get("difficulty") or "unknown").lower(),
        platform=str(row.get("source") or ""),
        reference_solutions=[code] if code and code.strip() else [],
        metadata={
            "question_id": number,
            "in_source_id": row.get("in_source_id"),
            "wrapped_outputs": wrapped,
            **{key: details[key] for key in ("time_limit", "memory_limit", "problem_url") if details.get(key)},
        },
        **limits(details.get("time_limit"), megabytes(memory)),
    )
