"""Speed and peak memory of preparing N rows, against decoding the same rows with plain `json`.

python -m tests.data_prep.measure ROWS            prints one JSON line
python -m tests.data_prep.measure ROWS DIVISOR    with buffers that much smaller, to see growth in less time
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import components.core.tracking
from components.data_prep import output, readers
from components.data_prep.prepare import prepare
from tests.data_prep.conftest import QuietTracking
from tests.data_prep.rows import accept_all, lcb_row, make_config, taco_row

TEST_BYTES = 20_000
TESTS = 20


def rows(count: int) -> Iterator[dict[str, Any]]:
    """TACO rows of about TESTS × TEST_BYTES bytes, no two alike."""
    rng = random.Random(0)
    vocabulary = [f"word{i}" for i in range(5000)]
    for _ in range(count):
        inputs = [rng.randbytes(TEST_BYTES // 2).hex(" ", 3) for _ in range(TESTS)]
        columns = {"inputs": inputs, "outputs": [f"{rng.random()}\n" for _ in inputs]}
        yield taco_row(" ".join(rng.choices(vocabulary, k=200)), input_output=json.dumps(columns))


def measure(count: int, divisor: int = 1) -> dict[str, float]:
    """Prepare `count` rows in this process and its workers, with buffers of a `divisor`-th of their size.

    Returns:
        rows and megabytes a second, the ratio to plain JSON decoding in one process, and the peak resident megabytes
        of the largest process.
    """
    readers.BATCH_BYTES //= divisor
    output.SHARD_BYTES //= divisor
    components.core.tracking.Tracking = QuietTracking  # type: ignore[assignment,misc]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, held = folder / "train.jsonl", folder / "held.jsonl"
        with open(train, "w") as file:
            for row in rows(count):
                file.write(json.dumps(row) + "\n")
        held.write_text(json.dumps(lcb_row()) + "\n")
        size = train.stat().st_size / 1e6
        started = time.monotonic()
        with open(train) as file:
            for line in file:
                json.loads(line)
        plain = time.monotonic() - started
        sources = [{"format": "taco", "path": str(train)}, {"format": "livecodebench", "path": str(held)}]
        started = time.monotonic()
        pointer = prepare(
            config=make_config(folder, sources), output=str(folder / "out.json"), count_tokens=None, grade=accept_all
        )
        seconds = time.monotonic() - started
    assert pointer.rows == count + 1
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "rows": count,
        "megabytes": round(size, 1),
        "rows_per_s": round(count / seconds, 1),
        "megabytes_per_s": round(size / seconds, 2),
        "times_plain_json": round(seconds / plain, 2),
        "peak_rss_mb": round(peak / 1024, 1),
        "cores": len(os.sched_getaffinity(0)),
    }


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:]))), flush=True)
