"""The program inside a completion."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^`\n]*?)[ \t]*$")
_PYTHON_LABELS = frozenset({"", "python", "python3", "py", "py3", "python2", "pypy", "pypy3", "cpython"})
_THINK_OPEN, _THINK_CLOSE = "<think>", "</think>"


def answer_part(text: str) -> str | None:
    """What follows the reasoning; None if the reasoning was never finished."""
    _, closed, answer = text.rpartition(_THINK_CLOSE)
    if not closed:
        answer = text
    if _THINK_OPEN in answer:
        return None
    return answer


def extract_code(text: str) -> str | None:
    """The last fenced block labelled Python, or not labelled, after `</think>`; None if there is none.

    A closing fence may be missing at the end, and fences may be indented or followed by spaces. A block with another
    label is passed over. Text inside an unfinished `<think>` is never searched, since a draft is no answer.
    """
    answer = answer_part(text)
    if answer is None:
        return None
    found: str | None = None
    opening: str | None = None
    lines: list[str] = []
    is_python = False
    # Not splitlines: a form feed or a Unicode line separator inside a string is part of the program.
    for line in answer.replace("\r\n", "\n").split("\n"):
        fence = _FENCE.match(line)
        if opening is None:
            if fence:
                opening, lines = fence[1], []
                label = fence[2].split()
                is_python = (label[0].lower().strip("{}.") if label else "") in _PYTHON_LABELS
        elif fence and fence[1][0] == opening[0] and len(fence[1]) >= len(opening) and not fence[2]:
            if is_python and (code := "\n".join(lines)).strip():
                found = code
            opening = None
        else:
            lines.append(line)
    if opening is not None and is_python and (code := "\n".join(lines)).strip():
        found = code
    return found
