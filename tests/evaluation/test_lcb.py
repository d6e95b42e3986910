"""LiveCodeBench's files in and out, on published ones where they are, and through the real sandbox."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from components.core.errors import UserError
from components.core.schema import PROBLEM_SCHEMA, Problem, Test, read_problems, write_parquet
from components.core.store import open_store
from components.data_prep import benchmark
from components.data_prep.benchmark import sniff
from components.evaluation.__main__ import main
from components.evaluation.lcb import eval_all, grade_generations, published_samples, read_generations, submission
from components.evaluation.numbers import summarize
from components.evaluation.samples import Graded
from sandbox import grade
from tests.data_prep.rows import make_config

DATA = Path(os.environ.get("DEEPCODER_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "lcb"
ZERO_SHOT = DATA / "Qwen2.5-Ins-7B-ZeroShotCoT_codegeneration_eval_all.json"
needs_data = pytest.mark.skipif(
    not ZERO_SHOT.is_file(), reason=f"no published file at {ZERO_SHOT}: set DEEPCODER_SHARED_DATA to its folder"
)


@needs_data
def test_published_numbers_come_out_as_published() -> None:
    result = summarize(published_samples(read_generations(ZERO_SHOT)), pass_k=[1], confidence=0.95)
    assert (result["problems"], result["samples"]) == (1055, 1055)
    assert result["pass@1"]["value"] == pytest.approx(252 / 1055)
    rows = json.loads(ZERO_SHOT.read_text())
    for group in result["by_difficulty"]:
        published = [row["pass@1"] for row in rows if row["difficulty"] == group["value"]]
        assert group["pass@1"]["value"] == pytest.approx(sum(published) / len(published))
    assert result["truncation_rate"] is None


@needs_data
def test_written_file_says_what_the_published_one_says(tmp_path: Path) -> None:
    written = eval_all(published_samples(read_generations(ZERO_SHOT)))
    published = sorted(json.loads(ZERO_SHOT.read_text()), key=lambda row: str(row["question_id"]))
    same = ("question_id", "question_title", "question_content", "platform", "contest_id", "starter_code", "difficulty",
            "code_list", "graded_list", "pass@1")  # fmt: skip
    assert [{key: row[key] for key in same} for row in written] == [
        {key: row[key] for key in same} for row in published
    ]
    assert all(
        ours["contest_date"][:10] == theirs["contest_date"][:10]
        for ours, theirs in zip(written, published, strict=True)
    )
    (tmp_path / "again.json").write_text(json.dumps(written))
    assert eval_all(published_samples(read_generations(tmp_path / "again.json"))) == written


@needs_data
def test_window_keeps_contests_of_its_dates_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = ["--since", "2024-08-01", "--until", "2025-01-31"]
    assert main(["scores", str(ZERO_SHOT), *window, "--out", str(tmp_path)]) == 0
    rows = [
        row for row in json.loads(ZERO_SHOT.read_text()) if "2024-08-01" <= row["contest_date"][:10] <= "2025-01-31"
    ]
    assert f"{len(rows)} problems, {len(rows)} graded answers" in capsys.readouterr().out
    assert "By month" in (tmp_path / "report.html").read_text()


@needs_data
@pytest.mark.parametrize("mode", ["real", "lcb"])
def test_published_passes_pass_on_the_public_tests_of_deepcoders_split(tmp_path: Path, mode: Any) -> None:
    def key(text: str) -> str:
        return "".join(text.split())

    path = DATA.parent / "rllm" / "test_code_livecodebench_279_public.json"
    assert sniff(str(path), None, "test") == "deepcoder"
    config = make_config(tmp_path, [{"format": "deepcoder", "path": str(path), "split": "test"}])
    pointer = benchmark.run(config=config, output=str(tmp_path / "pointer"))
    problems = {key(p.question): p for p in read_problems(open_store(config.store).fetch(pointer) / "test")}
    assert len(problems) == 279
    passed = [one for one in read_generations(ZERO_SHOT) if one.graded == [True]]
    pairs = [(one, problems[key(one.problem["question_content"])]) for one in passed
             if key(one.problem["question_content"]) in problems]  # fmt: skip
    assert len(pairs) > 30
    named = [replace(problem, metadata={"question_id": one.question_id}) for one, problem in pairs]
    found = grade_generations([one for one, _ in pairs[::4]], named, partial(grade, mode=mode, workers=1))
    assert [sample["verdict"] for sample in found.samples] == ["AC"] * len(pairs[::4])


def _problems(folder: Path) -> Path:
    tests = [Test("stdin", f"{i} {i}\n", f"{2 * i}\n", public=i == 0) for i in range(5)]
    rows = [
        Problem(f"lcb/{name}", "lcb", f"Add, {name}.", tests, platform="atcoder", difficulty="easy",
                contest_date="2024-09-01", metadata={"question_id": name, "title": name.upper(), "contest_id": "abc"})
        for name in ("abc_b", "abc_a")
    ]  # fmt: skip
    folder.mkdir()
    write_parquet(folder / "problems.parquet", [row.to_row() for row in rows], PROBLEM_SCHEMA)
    return folder


RIGHT = "a, b = map(int, input().split())\nprint(a + b)"
# The harness runs programs inside a function, where `exec` does not bind names: right for a process, not for it.
DIFFERS = "exec('a, b = map(int, input().split())')\nprint(a + b)"


def test_generations_are_graded_in_both_modes_and_the_differences_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "generations.json"
    rows = [
        {"question_id": "abc_a", "code_list": [RIGHT, "print(1)", ""]},
        {"question_id": "abc_b", "code_list": [DIFFERS, RIGHT, "print(1"]},
    ]
    file.write_text(json.dumps(rows))
    out = tmp_path / "out"
    problems = _problems(tmp_path / "test")
    assert (
        main(["grade", str(file), "--problems", str(problems), "--mode", "both", "--out", str(out), "--workers", "1"])
        == 0
    )
    printed = capsys.readouterr().out
    assert "1 programs on which the modes differ" in printed
    assert "lcb/abc_b sample 0: real AC, lcb RE" in printed
    graded = json.loads((out / "real" / "eval_all.json").read_text())
    assert [row["question_id"] for row in graded] == ["abc_a", "abc_b"]
    assert [row["graded_list"] for row in graded] == [[True, False, False], [True, True, False]]
    assert json.loads(graded[0]["metadata"][1])["error_code"] == -2
    assert "0 0" in (out / "real" / "report.html").read_text()

    assert main(["export", str(out / "real"), "--out", str(tmp_path / "export")]) == 0
    assert json.loads((tmp_path / "export" / "submission.json").read_text()) == rows


def test_infra_is_no_verdict_of_the_harness_and_left_out() -> None:
    question = {"problem_id": "p", "question": "", "platform": "", "contest_date": None, "starter_code": "",
                "difficulty": "", "metadata": "{}"}  # fmt: skip
    samples = [
        {"problem_id": "p", "verdict": verdict, "program": verdict, "cpu_ms": 1.0} for verdict in ("INFRA", "AC")
    ]
    rows = eval_all(Graded([question], samples, 0))
    assert (rows[0]["code_list"], rows[0]["graded_list"]) == (["AC"], [True])
    assert submission(Graded([question], samples, 0)) == [{"question_id": "p", "code_list": ["INFRA", "AC"]}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "not readable as JSON"),
        ({"a": 1}, "not a list of problems"),
        ([["print(1)"]], "entry 0: needs question_id and code_list"),
        ([{"question_id": "a", "code_list": ["x"], "graded_list": []}], "entry 0: 1 programs but 0 verdicts"),
        ([{"question_id": "a", "code_list": []}, {"question_id": "a", "code_list": []}], "question a is there twice"),
    ],
)
def test_file_in_another_form_is_refused_by_entry(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(UserError, match=message):
        read_generations(path)


def test_question_that_is_not_among_the_problems_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text(json.dumps([{"question_id": "zzz", "code_list": ["x"]}]))
    arguments = ["--problems", str(_problems(tmp_path / "test")), "--out", str(tmp_path / "out")]
    assert main(["grade", str(tmp_path / "x.json"), *arguments]) == 2
    assert "question zzz is not among the 2 problems" in capsys.readouterr().err
