"""Which comparison a problem needs, and which problems no comparison with one expected output can judge."""

from __future__ import annotations

import re

from components.core.config import DataConfig
from components.core.schema import Problem, Test
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

_SAYS = r"\b(?:print|output|return|report|display|list|give|produce|construct|provide|show)(?:ing|ed|s)?\b"
_ANSWER = r"(?:answers?|solutions?|outputs?|sequences?|arrays?|strings?|ways?|variants?|options?|pairs?|permutations?)"
_MANY_ANSWERS = re.compile(
    # print any; find any such grid; print any of them
    rf"{_SAYS}\s+(?:out\s+)?(?:any|whichever)(?: ?one)?\b(?!\s+(?:other|more|additional|extra|case|register))|"
    r"\bfind any(?: ?one| such| of (?:them|these|those)|\s*[.;,)])|"
    rf"{_SAYS}[^.\n]{{0,60}}\b(?:any|either) (?:one )?of (?:them|these|those|the|such)\b|"
    # any valid answer will be accepted; if there are several answers, any one will do
    r"\b(?:any|all|either)(?: of)?(?: (?:the|these|them|valid|correct|suitable|possible|such|optimal|one))* "
    rf"{_ANSWER}?\s*(?:will|would|is|are|may|can|should)(?: be)? (?:also )?(?:accepted|acceptable|allowed|fine|ok)\b|"
    rf"\b(?:multiple|several|many|more than one)(?: \w+){{0,3}} {_ANSWER}\b[^.]{{0,80}}"
    r"\b(?:any ?one|any|either|arbitrary|accepted)\b",
    re.IGNORECASE,
)
"""An invitation to print one of several right answers."""
_ANY_ORDER = re.compile(rf"{_SAYS}[^.]{{0,90}}\bin (?:any|arbitrary) order\b", re.IGNORECASE)
_TOLERANCE = re.compile(
    r"(?:absolute|relative)\W+(?:(?:or|and)\W+(?:absolute|relative)\W+)?(?:error|precision|tolerance)|"
    r"(?:absolute|relative) difference[^.]{0,90}\b(?:at most|less than|exceed|within)\W+(?:10\s*\^|1e|10\s*[-−]|0\.0)|"
    r"\berrors? (?:(?:of|is|are|must|should|may|can|does|do|shall|will|be|not|by|no|more|at|than|exceed|in) )*"
    r"(?:at most|exceed|less than|within|up to|\$?10|1e|0\.0)|"
    r"\bprecision (?:of|up to|not less)\b|\bdiffers? from .{0,60}by (?:no|not|at|less)",
    re.IGNORECASE,
)
_ANY_CASE = re.compile(
    r"\bin (?:any|either|arbitrary) (?:letter )?(?:case|register)\b(?!,)|\bcase[- ]insensitive|"
    r"\b(?:print|output)[^.\n]{0,100}\b(?:upper|lower)(?:[ -]?case)? or (?:in )?(?:upper|lower)",
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
    if "livecodebench" in problem.source or "lcb" in problem.source:  # the latter: DeepCoder's copy
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
    return from_statement(problem.question, problem.tests) if label is None else "lcb"


def from_statement(question: str, tests: list[Test]) -> str:
    """The comparator that a statement asks for in words.

    Raises:
        Reject: `special_judge`, it allows many answers.
    """
    if match := _MANY_ANSWERS.search(question):
        raise Reject("special_judge", f"question: says {match[0][:80]!r}")
    if match := _ANY_ORDER.search(question):
        # A list may come in any order; in printed text it is not clear what the parts are.
        if all(test.kind == "function" and test.output.startswith("[") for test in tests):
            return "unordered"
        raise Reject("special_judge", f"question: says {match[0][:80]!r}")
    if _TOLERANCE.search(question):
        return "floats"
    return "yesno" if _ANY_CASE.search(question) else "lcb"
