"""The program inside a completion."""

from __future__ import annotations

_PYTHON_LABELS = frozenset({"", "python", "python3", "py", "py3", "python2", "pypy", "pypy3", "cpython"})
_THINK_OPEN, _THINK_CLOSE = "<think>", "</think>"


def _fence(line: str) -> tuple[str, str] | None:
    """The marks and the label of a line that is a fence.

    Not a regular expression: on a long run of spaces its time would grow with the cube of their number.
    """
    text = line.strip(" \t")
    if not text.startswith(("```", "~~~")):
        return None
    label = text.lstrip(text[0])
    marks, label = text[: len(text) - len(label)], label.strip(" \t")
    return None if "`" in label else (marks, label)


def answer_part(text: str) -> str | None:
    """What follows the reasoning; None if the reasoning was never finished."""
    _, closed, answer = text.rpartition(_THINK_CLOSE)
    if not closed:
        answer = text
    if _THINK_OPEN in answer:
        return None
    return answer


def opened_thought(prompt: str) -> str:
    """The `<think>` that a prompt ends with, and the space after it; empty if it ends otherwise."""
    _, opened, rest = prompt.rpartition(_THINK_OPEN)
    return opened + rest if opened and not rest.strip() else ""


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
        fence = _fence(line)
        if opening is None:
            if fence:
                opening, lines = fence[0], []
                label = fence[1].split()
                is_python = (label[0].lower().strip("{}.") if label else "") in _PYTHON_LABELS
        elif fence and fence[0][0] == opening[0] and len(fence[0]) >= len(opening) and not fence[1]:
            if is_python and (code := "\n".join(lines)).strip():
                found = code
            opening = None
        else:
            lines.append(line)
    if opening is not None and is_python and (code := "\n".join(lines)).strip():
        found = code
    return found
