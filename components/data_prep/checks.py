"""Filters that look at one problem. Each raises Reject with a reason that is counted."""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import replace

from components.core.config import DataConfig
from components.core.schema import Problem, Test
from components.data_prep.judging import choose_comparator
from components.data_prep.rows import Reject, Source
from components.data_prep.signature import read_signature

_INTERACTIVE = re.compile(
    r"\b(?:this is an? interactive (?:problem|task)|interactive (?:problem|task)s?\b|interactor\b|"
    r"(?:do not|don't) forget to flush|flush (?:the )?(?:output|stdout|standard output))",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"<image>|<img\b[^>]*>|!\[[^\]]*\]\([^)]*\)", re.IGNORECASE)
_MIN_WORDS = 5
"""A statement with a picture and fewer words than this says what it wants in the picture."""
_SHOWN_CANDIDATES = 5
"""Samples come first in every source: only so many tests are looked for in the statement."""


def check(problem: Problem, source: Source, data: DataConfig) -> tuple[Problem, str]:
    """Run every filter that needs only the problem itself.

    Returns:
        the problem with its comparator, public tests and tidied tests, and the split it belongs to.

    Raises:
        Reject: the first filter that fails.
    """
    problem = check_text(problem)
    number = str(problem.metadata.get("question_id", ""))
    if number in source.excluded or problem.problem_id in source.excluded:
        raise Reject("known_bad", f"listed in {source.config.exclude}")
    check_window(problem, source)
    split = split_of(problem, source, data)
    check_statement(problem.question)
    problem = replace(problem, tests=tidy_tests(problem.tests))
    if len(problem.tests) < data.min_tests:
        raise Reject("too_few_tests", f"{len(problem.tests)} distinct, data.min_tests={data.min_tests}")
    problem = check_function(problem)
    if not any(test.public for test in problem.tests):
        problem = replace(problem, tests=mark_shown(problem.question, problem.tests))
    if not judges_itself(problem):
        problem = replace(problem, comparator=choose_comparator(problem, data))
    return problem, split


def judges_itself(problem: Problem) -> bool:
    """Whether a problem came with its own way of judging: a checker program, or assertions."""
    return problem.comparator == "checker" or "driver" in problem.metadata


def check_text(problem: Problem) -> Problem:
    """Refuse text that has no UTF-8 form, half of a surrogate pair; references with such are left out."""
    texts = [problem.problem_id, problem.question, problem.starter_code, problem.fn_name or ""]
    texts += [problem.difficulty, problem.platform, problem.contest_date or ""]
    texts += [text for test in problem.tests for text in (test.input, test.output)]
    if bad := next((text for text in texts if not _is_unicode(text)), None):
        raise Reject("bad_value", f"half of a surrogate pair in {bad[:60]!r}")
    return replace(problem, reference_solutions=[code for code in problem.reference_solutions if _is_unicode(code)])


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_window(problem: Problem, source: Source) -> None:
    """Refuse a problem whose contest is outside of its source's own dates (`since`, `until`)."""
    since, until = source.config.since, source.config.until
    day = problem.contest_date or ""
    if (since and day < since.isoformat()) or (until and not "" < day <= until.isoformat()):
        raise Reject("outside_dates", f"contest_date: {problem.contest_date}, source from {since} to {until}")


def split_of(problem: Problem, source: Source, data: DataConfig) -> str:
    """train | test: LiveCodeBench by contest date, the others by the configured split."""
    if source.config.format != "livecodebench":
        return "test" if source.config.split == "test" else "train"
    try:
        date = datetime.date.fromisoformat(problem.contest_date or "")
    except ValueError:
        raise Reject("bad_date", f"contest_date: {problem.contest_date!r} is not an ISO date") from None
    if data.train_from <= date <= data.train_until:
        return "train"
    if data.test_from <= date <= data.test_until:
        return "test"
    raise Reject("outside_dates", f"contest_date: {date}")


def check_statement(question: str) -> None:
    """Refuse statements that text alone does not pose, or that need a partner to talk to."""
    if not question.strip():
        raise Reject("empty_statement", "question: empty")
    words = len(re.findall(r"\w+", _IMAGE.sub(" ", question)))
    if words < _MIN_WORDS and _IMAGE.search(question):
        raise Reject("image_only", f"question: {words} words beside its pictures")
    if match := _INTERACTIVE.search(question):
        raise Reject("interactive", f"question: says {match[0]!r}")


def tidy_tests(tests: list[Test]) -> list[Test]:
    """Drop repeated tests, in order.

    Raises:
        Reject: `contradictory_tests`, the same input with two outputs: no program passes both.
    """
    seen: dict[str, int] = {}
    kept: list[Test] = []
    for test in tests:
        key = test.input.rstrip()
        if key not in seen:
            seen[key] = len(kept)
            kept.append(test)
            continue
        first = kept[seen[key]]
        if first.output.split() != test.output.split():
            raise Reject("contradictory_tests", f"input {test.input[:60]!r} has two outputs")
        if test.public and not first.public:
            kept[seen[key]] = replace(first, public=True)
    return kept


def check_function(problem: Problem) -> Problem:
    """Settle the name of the function, and refuse tests that its signature cannot take."""
    kinds = {test.kind for test in problem.tests}
    if len(kinds) > 1:
        raise Reject("mixed_test_kinds", "tests: stdin and function together")
    signature = read_signature(problem.starter_code)
    if kinds == {"stdin"}:
        if signature and "class Solution" in problem.starter_code:
            raise Reject("mixed_test_kinds", f"starter_code asks for {signature.name}(), the tests write to stdin")
        return problem if judges_itself(problem) else replace(problem, fn_name=None)
    name = problem.fn_name or (signature.name if signature else None)
    if not name or not name.isidentifier():
        raise Reject("no_function_name", "function tests, but no fn_name, metadata.func_name or starter_code")
    if signature and signature.name == name:
        for i, test in enumerate(problem.tests):
            if fault := signature.refuses(json.loads(test.input), json.loads(test.output)):
                raise Reject("wrong_arguments", f"tests[{i}]: {fault}")
    return replace(problem, fn_name=name)


def mark_shown(question: str, tests: list[Test]) -> list[Test]:
    """Mark as public the tests whose input and output both stand in the statement as lines of their own.

    Only LiveCodeBench says which tests are samples. For a function nothing is marked: a statement shows calls, not
    our JSON.
    """
    lines = "\n" + "\n".join(line.strip() for line in question.splitlines()) + "\n"

    def shown(text: str) -> bool:
        block = "\n".join(line.strip() for line in text.strip().splitlines())
        return bool(block) and f"\n{block}\n" in lines

    return [
        replace(test, public=True)
        if i < _SHOWN_CANDIDATES and test.kind == "stdin" and shown(test.input) and shown(test.output)
        else test
        for i, test in enumerate(tests)
    ]
