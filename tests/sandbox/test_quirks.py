"""lcb mode agrees with the official harness row by row; real mode differs where a real process does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import Grader
from tests.sandbox import quirks

OFFICIAL = os.environ.get("LIVECODEBENCH_CHECKOUT", "")


def _passed(grader: Grader) -> dict[str, bool]:
    verdicts = list(grader.grade([row.program() for row in quirks.ALL]))
    assert not [v for v in verdicts if v["verdict"] == "INFRA"]
    return {v["id"]: v["verdict"] == "AC" for v in verdicts}


def test_lcb_mode_gives_the_official_verdict_on_every_row_and_pays_no_hack(lcb: Grader) -> None:
    assert _passed(lcb) == {row.name: row.lcb and not row.hack for row in quirks.ALL}


def test_real_mode_differs_from_the_official_harness_on_the_listed_rows_only(real: Grader) -> None:
    assert _passed(real) == {row.name: row.real and not row.hack for row in quirks.ALL}


@pytest.mark.slow
@pytest.mark.skipif(not OFFICIAL, reason="LIVECODEBENCH_CHECKOUT names no checkout of the official harness")
def test_the_official_harness_itself_gives_the_verdicts_of_the_table() -> None:
    script = """
import json, sys
import numpy as np
from lcb_runner.evaluation.compute_code_generation_metrics import evaluate_generations
if __name__ == "__main__":
    rows = json.load(sys.stdin)
    samples = [{"input_output": json.dumps(row["io"])} for row in rows]
    results, _ = evaluate_generations(samples, [[row["code"]] for row in rows], num_process_evaluate=2, timeout=2)
    print("RESULT " + json.dumps([bool(np.all(np.array(results[i][0]) > 0)) for i in range(len(rows))]))
"""
    rows = [
        {
            "code": row.code,
            "io": {
                "inputs": [given for given, _ in row.pairs],
                "outputs": [expected for _, expected in row.pairs],
                "fn_name": row.fn_name,
            },
        }
        for row in quirks.ALL
    ]
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(OFFICIAL).resolve()), "PATH": os.environ["PATH"]},
        timeout=200,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    assert dict(zip((r.name for r in quirks.ALL), json.loads(line[7:]), strict=True)) == {
        r.name: r.lcb for r in quirks.ALL
    }
