from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from components.core.config import SourceConfig
from components.core.store import LocalStore
from components.data_prep.rows import Entry, RawBatch, Source
from components.data_prep.spool import parse_batch, spooled
from components.data_prep.verify import Verdicts, read_as, verify
from tests.data_prep.rows import make_config, taco_function_row, taco_row

CASES: list[tuple[list[Any], Any]] = [([n], [n]) for n in range(6)]


class Grader:
    """Judges by a marker in the program, and remembers what it ran."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.ran: list[str] = []
        self._stop = stop_after

    def __call__(self, programs: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for program in programs:
            if self._stop is not None and len(self.ran) >= self._stop:
                raise KeyboardInterrupt
            self.ran.append(program["code"])
            bare = program["tests"][0]["output"] == [0]
            verdict = "AC" if program["code"] in ("good", "bare" if bare else "wrapped") else program["code"]
            yield {"id": program["id"], "verdict": verdict if verdict in ("AC", "TLE", "INFRA") else "WA"}


def parsed(tmp_path: Path, rows: list[dict[str, Any]]) -> list[Entry]:
    config = make_config(tmp_path, [{"format": "taco", "path": "x"}])
    source = Source("taco", SourceConfig(format="taco", path="x"))
    batch = RawBatch("f", 0, 0, rows)
    return parse_batch(batch, source, config, None, 0, tmp_path).entries


NUMBERS = count()


def with_solutions(*codes: str, question: str = "") -> dict[str, Any]:
    question = question or f"Statement number {next(NUMBERS)} of a problem."
    return taco_row(question, solutions=json.dumps(list(codes)))


def test_a_problem_stays_if_any_reference_passes(tmp_path: Path) -> None:
    rows = [with_solutions("good"), with_solutions("no", "TLE", "good"), with_solutions("no", "TLE")]
    entries = parsed(tmp_path, rows)
    counts = verify(entries, tmp_path, Grader(), Verdicts(LocalStore(str(tmp_path)), "v"))
    assert [entry.solution for entry in entries] == [0, 2, None]
    assert (entries[2].reason, entries[2].detail) == ("reference_failed", "solutions: none of 2 passes (TLE, WA)")
    assert counts == {"run": 6, "known": 0}


def test_tests_that_the_sandbox_cannot_grade_have_a_reason_of_their_own(tmp_path: Path) -> None:
    entries = parsed(tmp_path, [with_solutions("INFRA")])
    verify(entries, tmp_path, Grader(), Verdicts(LocalStore(str(tmp_path)), "v"))
    assert entries[0].reason == "not_gradable"


def test_outputs_are_read_both_ways_before_a_problem_is_given_up(tmp_path: Path) -> None:
    # Every expected value is a list of one: wrapped values, or a function that returns such lists?
    entries = parsed(tmp_path, [taco_function_row("f", code, CASES, wrap=False) for code in ("wrapped", "bare", "no")])
    verify(entries, tmp_path, Grader(), Verdicts(LocalStore(str(tmp_path)), "v"))
    assert [(entry.variant, entry.solution) for entry in entries] == [(0, 0), (1, 0), (0, None)]
    outputs = [read_as(problem, entry.variant).tests[3].output for entry, problem in spooled(entries, tmp_path)]
    assert outputs == ["3", "[3]", "3"]


def test_a_killed_verification_goes_on_where_it_stopped(tmp_path: Path) -> None:
    rows = [with_solutions("good" if n % 2 else "no", "good") for n in range(10)]
    store = LocalStore(str(tmp_path))
    verdicts = Verdicts(store, "v")
    with pytest.raises(KeyboardInterrupt):
        verify(parsed(tmp_path, rows), tmp_path, Grader(stop_after=7), verdicts)
    verdicts.save()
    grader = Grader()
    entries = parsed(tmp_path, rows)
    again = Verdicts(store, "v")
    assert len(again) == 7
    verify(entries, tmp_path, grader, again)
    whole = parsed(tmp_path, rows)
    verify(whole, tmp_path, Grader(), Verdicts(LocalStore(str(tmp_path / "other")), "v"))
    assert [(e.solution, e.reason, e.detail) for e in entries] == [(e.solution, e.reason, e.detail) for e in whole]
    assert len(grader.ran) == 8  # three of the first round, five of the second


def test_equal_programs_of_equal_problems_are_judged_once(tmp_path: Path) -> None:
    rows = [with_solutions("good", question="The same words for both.") for _ in range(2)]
    counts = verify(parsed(tmp_path, rows), tmp_path, Grader(), Verdicts(LocalStore(str(tmp_path)), "v"))
    assert counts == {"run": 1, "known": 1}


def test_time_limits_are_tried_anew(tmp_path: Path) -> None:
    verdicts = Verdicts(LocalStore(str(tmp_path)), "v")
    for verdict in ("AC", "TLE", "INFRA", "WA"):
        verdicts.put(verdict, verdict)
    verdicts.save()
    again = Verdicts(LocalStore(str(tmp_path)), "v")
    assert [again.get(key) for key in ("AC", "TLE", "INFRA", "WA")] == ["AC", None, None, "WA"]


def test_a_grader_that_loses_programs_is_an_error(tmp_path: Path) -> None:
    def lossy(programs: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for program in list(programs)[1:]:
            yield {"id": program["id"], "verdict": "AC"}

    entries = parsed(tmp_path, [with_solutions("good"), with_solutions("good too")])
    with pytest.raises(RuntimeError, match="no verdict on 1 programs"):
        verify(entries, tmp_path, lossy, Verdicts(LocalStore(str(tmp_path)), "v"))
