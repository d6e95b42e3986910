"""MBPP (google-research-datasets/mbpp, full or sanitized) and MBPP+ (evalplus/mbppplus, and EvalPlus's own files)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from components.core.schema import Problem
from components.data_prep.normalize import as_list, need
from components.data_prep.parsers import evalplus
from components.data_prep.parsers.assertions import assertion_problem, first_assertion, function_parts, parsed
from components.data_prep.rows import Reject, Source


def parse(row: Mapping[str, Any], source: Source, ordinal: int) -> Problem:
    """One row; the first assertion is shown with the question, since only it names the function.

    Raises:
        Reject: with the reason and the key.
    """
    number = str(row.get("task_id", ordinal)).rpartition("/")[2]
    reference = str(need(row, "code", "canonical_solution"))
    if "base_input" in row:
        entry = str(need(row, "entry_point"))
        shown = first_assertion(str(need(row, "assertion")), "assertion")
        tests = evalplus.comparisons(row, evalplus.mbpp_types(int(number)))
        setup, helpers = "", evalplus.helpers(row, entry, reference)
    else:
        listed = [str(text) for text in as_list(need(row, "test_list"), "test_list")]
        if not listed:
            raise Reject("no_tests", "test_list: empty")
        shown, entry = listed[0], _tested(reference, listed)
        hidden = [str(row["test"])] if row.get("test") else listed[1:]
        tests = [(shown, True), *((text, False) for text in hidden)]
        # The asserted values may need these; a program may not count on them.
        imports = [str(line) for line in as_list(row.get("test_imports"), "test_imports")]
        setup, helpers = str(row.get("test_setup_code") or ""), "\n".join(imports)
    _, signature = function_parts(reference, entry, "code")
    text = str(need(row, "text", "prompt")).strip().strip("'\"").split("\nassert ")[0].strip()
    return assertion_problem(
        f"{source.label}/{number}",
        source.label,
        f"{text}\n\nThe function has to pass this test:\n\n```python\n{shown}\n```",
        tests,
        fn_name=entry,
        prelude=setup,
        helpers=helpers,
        starter_code=signature + "\n    ",
        time_limit_s=evalplus.TIME_LIMIT_S,
        platform="mbpp",
        reference_solutions=[reference],
        metadata={"question_id": number},
    )


def _tested(code: str, assertions: list[str]) -> str:
    """The function of the reference solution that the assertions call."""
    called = {
        node.id for text in assertions for node in ast.walk(parsed(text, "test_list")) if isinstance(node, ast.Name)
    }
    defined = [node.name for node in parsed(code, "code").body if isinstance(node, ast.FunctionDef)]
    for name in reversed(defined):
        if name in called:
            return name
    raise Reject("no_function_name", f"test_list: calls none of {', '.join(defined)}")
