"""What makes two statements the same: their words, without markup, prompt wrappers and letter case."""

from __future__ import annotations

import hashlib
import re
import unicodedata

import numpy as np

from components.core.schema import Problem

SHINGLE = 4
"""Words in a shingle."""
_WORD = re.compile(r"\w+")
# LaTeX, which one copy of a statement has and another has not: commands say little, and i_0, i_{0} and i0 are one.
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_JOINED = str.maketrans("", "", "_^{}$")
# Wrappers that a data set puts around statements of other origin.
_WRAPPERS = re.compile(
    r"solve the following coding problem using the programming language python:?|"
    r"the input will be (?:given via stdin|stdin) and (?:you should print your solution to stdout|"
    r"the output should be printed to stdout[^.\n]*)\.?|"
    r"the input will be given via stdin and the output should be printed to stdout by your code\.?|"
    r"now solve the problem (?:and return the code|by providing the code)\.?|"
    r"please solve the programming task below using a self-contained code snippet in a markdown code block\.?|"
    r"the solution will be evaluated by calling it via the `?\w+`? function[^\n]*",
    re.IGNORECASE,
)

# Where a statement's body ends: one copy has examples and constraints, another has them in another form, or none.
_SECTION = re.compile(
    r"^[\W_]*(?:examples?|samples?|sample (?:inputs?|tests?|cases?)|inputs?|outputs?|constraints?|"
    r"(?:input|output) (?:format|specification)|subtasks?|starter code|function signature)\b[^\n]{0,24}$|"
    r"^please complete the following",
    re.IGNORECASE | re.MULTILINE,
)
_MIN_BODY = 24
"""Words; a shorter body says too little, then the whole statement counts."""

_VERSION = re.compile(
    r"\b(?:this|it) is (?:the|an?) (easy|easier|simple|simpler|medium|hard|harder|extreme)\b", re.IGNORECASE
)


def version_of(question: str) -> str:
    """ "hard" for a statement that says it is the hard version of a problem; empty for most."""
    match = _VERSION.search(question)
    return match[1].lower() if match else ""


def body(question: str) -> str:
    """The statement up to its first section of examples, formats or constraints."""
    match = _SECTION.search(question)
    if match is None or len(words(question[: match.start()])) < _MIN_BODY:
        return question
    return question[: match.start()]


def words(question: str) -> list[str]:
    """The statement's words in lower case, compatibility forms folded, markup and punctuation left out."""
    text = unicodedata.normalize("NFKC", _COMMAND.sub(" ", _WRAPPERS.sub(" ", question)))
    return _WORD.findall(text.lower().translate(_JOINED))


def _hash64(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def shingles(tokens: list[str]) -> np.ndarray:
    """Sorted, distinct uint64 hashes of every run of SHINGLE words.

    The text is padded at both ends, so that its first and last words count as much as the others: "the volume of a
    cone" is not nearly "the volume of a sphere".
    """
    edge = [""] * (SHINGLE - 1)
    tokens = [*edge, *tokens, *edge]
    hashes = {_hash64(" ".join(tokens[i : i + SHINGLE])) for i in range(len(tokens) - SHINGLE + 1)}
    return np.array(sorted(hashes), dtype=np.uint64)


def statement_hash(tokens: list[str]) -> str:
    """Equal for statements that differ in case, markup and spacing only."""
    return hashlib.sha256(" ".join(tokens).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def content_hash(problem: Problem) -> str:
    """Of all that a reader, a policy or the sandbox sees of a problem; not of its id or references."""
    digest = hashlib.sha256()
    parts = [problem.question, problem.starter_code, problem.fn_name or "", problem.comparator]
    parts += [str(problem.time_limit_s), str(problem.memory_limit_mb)]
    for test in problem.tests:
        parts += [test.kind, test.input, test.output]
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


def tests_hash(problem: Problem) -> str:
    """Of the set of tests, whatever their order and outer spacing."""
    pairs = sorted(f"{test.input.strip()}\x1f{test.output.strip()}" for test in problem.tests)
    return hashlib.sha256("\x1e".join(pairs).encode("utf-8", "surrogatepass")).hexdigest()[:16]
