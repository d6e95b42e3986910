"""Data preparation: rows and megabytes a second against plain `json` over the same rows; memory at 1×, 4× and 16×.

python benchmarks/bench_data.py [--rows 250]        writes benchmarks/data.json and data.md

Rows are of about 400 KB, and every reference counts as right at once: what is measured is reading, parsing, checking,
deduplicating and writing, not the running of programs, which `bench_sandbox.py` measures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FACTORS = (1, 4, 16)


def measure(rows: int) -> dict[str, Any]:
    """One size, in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, "-m", "tests.data_prep.measure", str(rows)]
    done = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def as_markdown(result: dict[str, Any]) -> str:
    """The results as a table."""
    lines = [
        "| rows | MB | rows/s | MB/s | times the time of plain json | peak memory, MB |",
        "|---|---|---|---|---|---|",
    ]
    keys = ("rows", "megabytes", "rows_per_s", "megabytes_per_s", "times_plain_json", "peak_rss_mb")
    lines += ["| " + " | ".join(str(row[key]) for key in keys) + " |" for row in result["sizes"]]
    about = f"{result['machine']}, load {result['load']} at the end. Peak memory is that of the largest process."
    return "\n".join(["# The speed and memory of data preparation", "", about, "", *lines, ""])


def main() -> None:
    """Run every size and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=250, help="of the smallest size (default: %(default)s)")
    options = parser.parse_args()
    sizes = [measure(options.rows * factor) for factor in FACTORS]
    result = {
        "machine": f"{platform.system()} {platform.release()}, {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "sizes": sizes,
    }
    (HERE / "data.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (HERE / "data.md").write_text(as_markdown(result), encoding="utf-8")
    print(as_markdown(result))


if __name__ == "__main__":
    main()
