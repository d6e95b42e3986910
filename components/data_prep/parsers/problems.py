"""This project's own problem rows (PROBLEM_SCHEMA), for example the `test/` folder of a prepared dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.core.schema import PROBLEM_SCHEMA, Problem
from components.data_prep.rows import Reject, Source


def parse(row: Mapping[str, Any], source: Source, ordinal: int) -> Problem:
    """One row, as it is; names and ids stay those it has.

    Raises:
        Reject: a column is missing or is not what the schema says.
    """
    missing = [name for name in PROBLEM_SCHEMA.names if name not in row]
    if missing:
        raise Reject("missing_column", f"{', '.join(missing)}: see PROBLEM_SCHEMA")
    try:
        return Problem.from_row({name: row[name] for name in PROBLEM_SCHEMA.names})
    except (TypeError, ValueError) as error:
        raise Reject("bad_value", f"row: {error}") from None
