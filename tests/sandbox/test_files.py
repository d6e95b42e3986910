"""The command: lines in, lines out, and going on after a kill."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sandbox.files import committed, grade_file, read_programs

ROOT = Path(__file__).resolve().parents[2]
TEST = {"kind": "stdin", "input": "1", "output": "2"}


def _start(programs: Path, verdicts: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sandbox", "grade", str(programs), str(verdicts), "--workers", "2", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def _write(path: Path, lines: list[Any]) -> None:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_grader_killed_amid_a_thousand_programs_loses_and_repeats_nothing_committed(tmp_path: Path) -> None:
    programs, verdicts = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines = [
        {"id": i, "code": f"print(int(input()) + {1 + (i % 7 == 0)})  # {i}", "tests": [TEST]} for i in range(1000)
    ]
    _write(programs, lines)
    kept: list[str] = []
    for wanted in (100, 500):
        grader = _start(programs, verdicts)
        while not verdicts.exists() or verdicts.read_bytes().count(b"\n") < wanted:
            assert grader.poll() is None, grader.communicate()[1]
            time.sleep(0.02)
        grader.send_signal(signal.SIGKILL)
        grader.communicate()
        now = verdicts.read_text().split("\n")[:-1]
        assert now[: len(kept)] == kept, "what was committed before is untouched"
        kept = now
        # As if the kill had come in the middle of a write.
        with verdicts.open("a") as file:
            file.write('{"id": 99')
    last = _start(programs, verdicts)
    assert last.wait(timeout=200) == 0
    rows = _rows(verdicts)
    assert [json.dumps(row) for row in rows[: len(kept)]] == kept
    assert Counter(row["id"] for row in rows) == Counter(range(1000))
    assert all((row["verdict"] == "WA") == (row["id"] % 7 == 0) for row in rows)


def test_unreadable_lines_are_infra_and_the_others_are_graded(tmp_path: Path) -> None:
    programs, verdicts = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    good = {"id": "good", "code": "print(2)", "tests": [TEST], "unknown key": [1]}
    _write(
        programs, [good, "{torn", "[1, 2]", "", {"id": "no tests", "code": "x"}, {"code": "print(2)", "tests": [TEST]}]
    )
    grader = _start(programs, verdicts)
    words = grader.communicate(timeout=60)[1]
    assert grader.returncode == 0, words
    assert {row["id"]: row["verdict"] for row in _rows(verdicts)} == {
        "good": "AC",
        1: "INFRA",
        2: "INFRA",
        "no tests": "INFRA",
        5: "AC",
    }
    assert all(row["reason"] for row in _rows(verdicts) if row["verdict"] == "INFRA")
    assert "AC 2" in words


def test_a_terminal_gets_a_progress_bar(tmp_path: Path) -> None:
    programs = tmp_path / "in.jsonl"
    _write(programs, [{"id": i, "code": f"print(2)  # {i}", "tests": [TEST]} for i in range(3)])
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "sandbox", "grade", str(programs), str(tmp_path / "out.jsonl"), "--workers", "1"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    assert subprocess.run(command, cwd=ROOT, env=environment, stderr=theirs, check=False, timeout=100).returncode == 0
    shown = os.read(ours, 1 << 16).decode()
    os.close(theirs)
    os.close(ours)
    assert "#" * 30 + "] 3/3" in shown
    assert "AC 3" in shown


def test_a_rerun_of_a_finished_file_starts_no_grader_and_changes_nothing(tmp_path: Path) -> None:
    programs, verdicts = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    _write(programs, [{"id": 1, "code": "print(2)", "tests": [TEST]}])
    assert _start(programs, verdicts).wait(timeout=60) == 0
    before = verdicts.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sandbox.files.grade", lambda *_, **__: pytest.fail("a grader was started"))
        assert grade_file(str(programs), str(verdicts)) == {}
    assert verdicts.read_bytes() == before


@pytest.mark.parametrize("tail", ['{"id": 3, "verd', '{"id": 3, "verdict": "AC"}'])
def test_a_row_without_its_newline_was_not_committed(tmp_path: Path, tail: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text('{"id": 1, "verdict": "AC"}\n{"id": "x", "verdict": "WA"}\n' + tail)
    done = committed(str(path))
    assert done.total() == 2
    assert path.read_text().endswith('"WA"}\n')
    lines = [json.dumps({"id": i}).encode() for i in (1, "x", 3, 1)]
    assert [program["id"] for program in read_programs(lines, done)] == [3, 1], "the second 1 is another program"
