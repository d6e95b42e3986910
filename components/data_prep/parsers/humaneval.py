"""HumanEval (openai/openai_humaneval) and HumanEval+ (evalplus/humanevalplus, and EvalPlus's own files)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.core.schema import Problem
from components.data_prep.normalize import need
from components.data_prep.parsers import evalplus
from components.data_prep.parsers.assertions import assertion_problem, function_parts
from components.data_prep.rows import Source


def parse(row: Mapping[str, Any], source: Source, ordinal: int) -> Problem:
    """One row; imports and helpers of the prompt stand in front of a candidate, as in the original harness.

    Raises:
        Reject: with the reason and the key.
    """
    entry, prompt = str(need(row, "entry_point")), str(need(row, "prompt"))
    number = str(row.get("task_id", ordinal))
    prelude, signature = function_parts(prompt, entry, "prompt")
    solution = str(need(row, "canonical_solution"))
    plus = "base_input" in row
    tests = evalplus.comparisons(row) if plus else [(f"{need(row, 'test')}\n\ncheck({entry})\n", False)]
    return assertion_problem(
        f"{source.label}/{number.rpartition('/')[2]}",
        source.label,
        f"Complete this Python function:\n\n```python\n{prompt.strip()}\n```",
        tests,
        fn_name=entry,
        prelude=prelude,
        helpers=evalplus.helpers(row, entry, f"{prompt}{row.get('contract', '')}{solution}") if plus else "",
        starter_code=signature + "\n    ",
        time_limit_s=evalplus.TIME_LIMIT_S,
        platform="humaneval",
        reference_solutions=[prompt + solution],
        metadata={"question_id": number},
    )
