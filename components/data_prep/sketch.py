"""What makes two statements the same: their words, without markup, prompt wrappers and letter case."""

from __future__ import annotations

import hashlib
import re
import unicodedata

import numpy as np

from components.core.schema import Problem

SHINGLE = 4
"""Words in a shingle."""
_WORD = re.compile(r"[^\W_]+")
_COMMAND = re.compile(r"\\[a-zA-Z]+")  # LaTeX, which one copy of a statement has and another has not
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


def words(question: str) -> list[str]:
    """The statement's words in lower case, compatibility forms folded, markup and punctuation left out."""
    text = unicodedata.normalize("NFKC", _COMMAND.sub(" ", _WRAPPERS.sub(" ", question)))
    return _WORD.findall(text.lower())


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
