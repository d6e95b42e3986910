"""How results are cut into groups, and the order of verdicts, wherever numbers are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VERDICTS = ("AC", "WA", "TLE", "MLE", "OLE", "RE", "CE", "NF", "INFRA")
"""In the order in which tables and bars show them; sandbox/model.py says what each means."""


def month_of(question: dict[str, Any]) -> str:
    """`2024-08`, or `unknown` for a problem without contest date."""
    return (question["contest_date"] or "unknown")[:7]


GROUPINGS: dict[str, Callable[[dict[str, Any]], str]] = {
    "difficulty": lambda question: question["difficulty"] or "unknown",
    "platform": lambda question: question["platform"] or "unknown",
    "source": lambda question: question["source"] or "unknown",
    "month": month_of,
}
