"""Many lanes over several judging processes give what one gives, and survive the loss of a judge."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sandbox import Grader
from sandbox.cores import available_cores
from sandbox.fanout import LANES_PER_JUDGE, Fanout
from tests.sandbox.quirks import ADD

TESTS = [{"kind": "stdin", "input": "1 2", "output": "3"}]


@pytest.fixture(scope="module")
def wide() -> Iterator[Grader]:
    with Grader(workers=LANES_PER_JUDGE + 1) as grader:
        assert isinstance(grader._pool, Fanout)
        yield grader


def test_every_program_gets_one_verdict_under_its_own_id_and_equal_ones_are_graded_once(wide: Grader) -> None:
    lines = [{"id": ["row", i], "code": f"{ADD}  # {i % 10}", "tests": TESTS} for i in range(40)]
    verdicts = list(wide.grade([*lines, None, 7, {"id": "no tests", "code": "x"}, {"id": "a set", "tests": {1}}]))
    assert Counter(v["verdict"] for v in verdicts) == {"AC": 40, "INFRA": 4}
    assert sorted(v["id"] for v in verdicts if v["verdict"] == "AC") == [["row", i] for i in range(40)]
    assert sum("duplicate" in v for v in verdicts) == 30


def test_a_lost_judge_costs_no_verdict(wide: Grader) -> None:
    code = f"import time\ntime.sleep(0.1)\n{ADD}"
    stream = wide.grade([{"id": i, "code": f"{code}  # {i}", "tests": TESTS} for i in range(20)])
    verdicts = [next(stream)]
    psutil.Process().children()[-1].kill()
    verdicts += list(stream)
    assert sorted(v["id"] for v in verdicts) == list(range(20))
    assert {v["verdict"] for v in verdicts} == {"AC"}


@pytest.mark.parametrize("workers", [1, LANES_PER_JUDGE + 1])
def test_a_stream_that_is_left_in_the_middle_does_not_run_on_into_the_next(workers: int) -> None:
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    with Grader(workers=workers) as grader:
        stream = grader.grade({"id": i, "code": f"{ADD}  # {i}", "tests": TESTS} for i in range(20))
        next(stream)
        del stream
        assert [v["id"] for v in grader.grade([{"id": "last", "code": ADD, "tests": TESTS}])] == ["last"]
    time.sleep(0.1)
    assert {p.pid for p in psutil.Process().children(recursive=True)} <= before


def test_a_pods_cpu_quota_bounds_the_lanes(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    assert available_cores(tmp_path) == 1
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert available_cores(tmp_path) == 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert available_cores(tmp_path) == available_cores(tmp_path / "nothing")
