"""One parser a source: a raw row in, a problem out, or Reject with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from components.core.schema import Problem
from components.data_prep.parsers import (
    codeforces,
    deepcoder,
    humaneval,
    livecodebench,
    mbpp,
    primeintellect,
    problems,
    taco,
)
from components.data_prep.rows import Source

Parser = Callable[[Mapping[str, Any], Source, int], Problem]
"""(row, source, row number in the source) -> problem; raises Reject."""

PARSERS: dict[str, Parser] = {
    "taco": taco.parse,
    "primeintellect": primeintellect.parse,
    "livecodebench": livecodebench.parse,
    "deepcoder": deepcoder.parse,
    "humaneval": humaneval.parse,
    "mbpp": mbpp.parse,
    "codeforces": codeforces.parse,
    "problems": problems.parse,
}

LICENSES = {
    "taco": "Apache-2.0",
    "primeintellect": "not stated by the data set",
    "livecodebench": "CC (as its card says); the statements belong to AtCoder, LeetCode and Codeforces",
    "deepcoder": "MIT",
    "humaneval": "MIT (HumanEval), Apache-2.0 (HumanEval+)",
    "mbpp": "CC BY 4.0 (MBPP), Apache-2.0 (MBPP+)",
    "codeforces": "CC BY 4.0",
    "problems": "those of the sources it was made from",
}
"""Of the published data sets; a source with `license` set says its own."""
