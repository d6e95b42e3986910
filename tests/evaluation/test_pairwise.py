"""Two evaluations of the same problems, compared."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.core.pairwise import read_folder, verdict_differences
from components.evaluation.__main__ import main
from components.evaluation.numbers import summarize
from components.evaluation.samples import QUESTION_SCHEMA, SAMPLE_SCHEMA, Graded


def _write(folder: Path, label: str, verdicts: dict[str, list[str]]) -> Path:
    questions = [
        dict.fromkeys(QUESTION_SCHEMA.names) | {"problem_id": problem, "difficulty": "easy"}
        for problem in sorted(verdicts)
    ]
    samples = [
        dict.fromkeys(SAMPLE_SCHEMA.names)
        | {"problem_id": problem, "sample_id": index, "verdict": verdict, "well_formed": True, "finish_reason": "stop"}
        | {
            "correct": None if verdict == "INFRA" else verdict == "AC",
            "response_tokens": 9,
            "program": f"print({index})",
        }
        for problem in sorted(verdicts)
        for index, verdict in enumerate(verdicts[problem])
    ]
    folder.mkdir()
    result = summarize(Graded(questions, samples, 0), pass_k=[1], confidence=0.95)
    (folder / "result.json").write_text(json.dumps(result | {"label": label, "global_step": 0}))
    pq.write_table(pa.Table.from_pylist(samples, SAMPLE_SCHEMA), folder / "samples.parquet")
    pq.write_table(pa.Table.from_pylist(questions, QUESTION_SCHEMA), folder / "problems.parquet")
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    first = _write(tmp_path / "a", "real", {"p": ["AC", "WA"], "q": ["WA", "WA"], "r": ["AC", "AC"]})
    second = _write(tmp_path / "b", "lcb", {"p": ["AC", "AC"], "q": ["TLE", "AC"], "s": ["AC", "AC"]})
    return first, second


def test_only_the_problems_of_both_are_compared(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(folders[0]), str(folders[1])]) == 0
    out = capsys.readouterr().out
    # p: 0.5 -> 1, q: 0 -> 0.5.
    assert "second - first, paired over 2 problems: +50.0" in out
    assert "better on 2 problems, worse on 0" in out
    assert "easy" in out


def test_same_program_with_another_verdict_is_listed(folders: tuple[Path, Path]) -> None:
    first, second = (read_folder(folder, str(folder)) for folder in folders)
    changed = [(row["problem_id"], row["sample_id"], row["first"], row["second"])
               for row in verdict_differences(first, second)]  # fmt: skip
    assert changed == [("p", 1, "WA", "AC"), ("q", 0, "WA", "TLE"), ("q", 1, "WA", "AC")]


def test_folder_that_is_no_evaluation_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["compare", str(tmp_path / "empty"), str(tmp_path / "absent")]) == 2
    assert "empty: not the result folder of an evaluation" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "absent"), str(tmp_path / "empty")]) == 2
    assert not (tmp_path / "absent").exists()
