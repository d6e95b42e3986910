"""Turns numbers into a self-contained HTML page: no request leaves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from components.core.groupings import VERDICTS

VERDICT_WORDS = {
    "AC": "accepted",
    "WA": "wrong answer",
    "TLE": "time limit",
    "MLE": "memory limit",
    "OLE": "output limit",
    "RE": "runtime error",
    "CE": "compile error",
    "NF": "no code found",
    "INFRA": "could not be judged",
}
"""For people who do not know the judges' abbreviations."""

_LONGEST_VALUE = 1100
"""Characters shown of one field of a failing test."""


def percent(share: float | None) -> str:
    """A share as percent with one digit, without the sign."""
    return "–" if share is None else f"{100 * share:.1f}"


def span(estimate: dict[str, float] | None, sign: str = "") -> str:
    """`33.1 ± 4.2` of an Estimate as plain data, in percent; a dash for none.

    An interval that the bounds of what is possible cut on one side is written `97.5 (91.0 to 100.0)`.
    """
    if estimate is None:
        return "–"
    value, low, high = (100 * estimate[name] for name in ("value", "low", "high"))
    if abs((high - value) - (value - low)) > 0.05:
        return f"{value:{sign}.1f} ({low:{sign}.1f} to {high:{sign}.1f})"
    return f"{value:{sign}.1f} ± {(high - low) / 2:.1f}"


def signed(estimate: dict[str, float] | None) -> str:
    """`+21.0 ± 8.1`: a difference in percentage points."""
    return span(estimate, "+")


def duration(seconds: float) -> str:
    """`3 h 12 min`, `4 min 05 s`, `7.3 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min {int(seconds % 60):02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def failure(text: str | None) -> list[tuple[str, str]]:
    """The fields of a first failing test, in order, each cut to what a reader can take in."""
    if not text:
        return []
    try:
        values = json.loads(text)
    except ValueError:
        values = text
    fields = values if isinstance(values, dict) else {"failing test": values}
    shown = []
    for key, value in fields.items():
        if value is None or value == "":
            continue
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(words) > _LONGEST_VALUE:
            words = f"{words[:_LONGEST_VALUE]} … ({len(words)} characters)"
        shown.append((str(key).replace("_", " "), words))
    return shown


def render(template: Path, **values: Any) -> str:
    """Fill a template; its folder and this one are searched for what it extends and imports."""
    environment = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,  # programs and statements are untrusted text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=percent, span=span, signed=signed, duration=duration, failure=failure)
    environment.globals.update(verdicts=VERDICTS, verdict_words=VERDICT_WORDS)
    return environment.get_template(template.name).render(**values)
