"""One parser a source: a raw row in, a problem out, or Reject with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from components.core.schema import Problem
from components.data_prep.parsers import deepcoder, livecodebench, primeintellect, taco
from components.data_prep.rows import Source

Parser = Callable[[Mapping[str, Any], Source, int], Problem]
"""(row, source, row number in the source) -> problem; raises Reject."""

PARSERS: dict[str, Parser] = {
    "taco": taco.parse,
    "primeintellect": primeintellect.parse,
    "livecodebench": livecodebench.parse,
    "deepcoder": deepcoder.parse,
}

LICENSES = {
    "taco": "Apache-2.0",
    "primeintellect": "not stated by the data set",
    "livecodebench": "CC (as its card says); the statements belong to AtCoder, LeetCode and Codeforces",
    "deepcoder": "MIT",
}
"""Of the published data sets; a source with `license` set says its own."""
