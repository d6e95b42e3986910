"""Which comparison a problem needs, and which problems no comparison with one expected output can judge."""

from __future__ import annotations

import re

from components.core.config import DataConfig
from components.core.schema import Problem
from components.data_prep.rows import Reject

# LiveCodeBench's ERRATA.md, by question id (AtCoder) or title (LeetCode).
ERRATA_MANY_ANSWERS = {
    "abc311_c", "abc326_d", "abc327_b", "abc333_e", "abc343_e", "abc362_c", "abc343_a", "arc185_c",
}  # fmt: skip
ERRATA_ANY_ORDER = {
    "find-words-containing-character", "find-the-peaks", "generate-binary-strings-without-adjacent-zeros",
}  # fmt: skip
ERRATA_INTERACTIVE = {"abc337_e", "abc355_e"}
ERRATA_WRONG_TESTS = {"abc350_c", "apply-operations-to-make-string-empty", "most-frequent-ids", "arc189_a"}

_MANY_ANSWERS = re.compile(
    r"(?:there (?:are|is|exists?)|if (?:there are|you find|several|multiple))[^.]{0,40}"
    r"\b(?:multiple|several|many|more than one)\b[^.]{0,80}|"
    r"\b(?:print|output|find|return|report|choose)\s+any(?:\s+one)?(?:\s+of)?\b|"
    r"\bany of (?:them|those|the (?:answers|solutions))\b|\bany (?:valid|correct|suitable|such|possible) \w+ "
    r"(?:will|is|are|may|can)\b|\bin (?:any|arbitrary) order\b",
    re.IGNORECASE,
)
_TOLERANCE = re.compile(
    r"(?:absolute|relative)(?:\s*(?:or|and|/|,)\s*(?:absolute|relative))?\s+(?:error|difference|precision)|"
    r"\berror (?:of )?(?:at most|not exceeding|should not exceed|does not exceed|less than|within)\b|"
    r"\bprecision of\b",
    re.IGNORECASE,
)
_ANY_CASE = re.compile(
    r"(?:print|output) (?:each|every|the) (?:letter|character)s? (?:\w+ )?in (?:any|either) (?:register|case)|"
    r"in any (?:case|register)\b|\bcase[- ]insensitive|"
    r"(?:each|every) (?:letter|character) (?:of \w+ )?in (?:any|arbitrary) case|upper or lower",
    re.IGNORECASE,
)


def choose_comparator(problem: Problem, data: DataConfig) -> str:
    """The name of the sandbox's comparator for a problem.

    LiveCodeBench keeps its own exact comparison, so that scores compare with published ones, apart from its errata.

    Raises:
        Reject: `special_judge`, `interactive` or `wrong_tests`; unless `data.keep_special_judge`.
    """
    try:
        return _choose(problem)
    except Reject:
        if data.keep_special_judge:
            return "lcb"
        raise


def _choose(problem: Problem) -> str:
    names = {str(problem.metadata.get("question_id")), str(problem.metadata.get("title", "")).lower()}
    if problem.source.startswith("livecodebench"):
        if names & ERRATA_MANY_ANSWERS:
            raise Reject("special_judge", "LiveCodeBench erratum: many right answers")
        if names & ERRATA_INTERACTIVE:
            raise Reject("interactive", "LiveCodeBench erratum")
        if names & ERRATA_WRONG_TESTS:
            raise Reject("wrong_tests", "LiveCodeBench erratum")
        return "unordered" if names & ERRATA_ANY_ORDER else "lcb"
    label = problem.metadata.get("special_judge")
    if label == 1:
        raise Reject("special_judge", "labelled as having many right answers")
    if label == 2:
        return "yesno"
    if label == 3:
        return "floats"
    if label is None:
        return from_statement(problem.question)
    return "lcb"


def from_statement(question: str) -> str:
    """The comparator that a statement asks for in words.

    Raises:
        Reject: `special_judge`, it allows many answers.
    """
    if match := _MANY_ANSWERS.search(question):
        raise Reject("special_judge", f"question: says {match[0][:80]!r}")
    if _TOLERANCE.search(question):
        return "floats"
    return "yesno" if _ANY_CASE.search(question) else "lcb"
