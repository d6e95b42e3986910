"""`deepcoder eval`, from a set in its published form to numbers, page and LiveCodeBench's files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from components.core.config import Config
from components.core.paths import evaluation_path, shard_path
from components.core.schema import ROLLOUT_SCHEMA, read_parquet_dir, read_problems, write_parquet
from components.core.store import Pointer, open_store
from components.rollout import generate
from pipelines.cli import main
from tests.data_prep.rows import encode_private, lcb_row, write_jsonl

SMALL = [
    "rollout.shards=1", "rollout.chunk_prompts=4", "evaluation.n=2", "evaluation.max_response_length=8",
    "data.max_prompt_length=2000", "context_length=2048", "reward.workers=1", "evaluation.pass_k=[1, 2]",
    "rollout.engine=transformers", "rollout.dtype=float32",
]  # fmt: skip
CANARY = "918273645"
"""Stands in every private test, and nowhere else."""


def _problems(path: Path) -> Path:
    """Two LiveCodeBench rows whose private tests, and nothing else, hold the canary."""
    numbers = [int(f"{CANARY}{n}") for n in range(3)]
    hidden = [{"input": f"{n}\n", "output": f"{2 * n}\n", "testtype": "stdin"} for n in numbers]
    rows = []
    for name, day in (("abc1_a", "2024-09-01"), ("abc2_a", "2024-11-01")):
        row = lcb_row(name, f"{day}T00:00:00", private_test_cases=encode_private(hidden), question_title=name)
        rows.append(row | {"question_content": f"{name}: you are handed one integer. Print twice that integer."})
    return write_jsonl(path, rows)


def _eval(tmp_path: Path, *more: str) -> int:
    paths = ["--dataset", str(tmp_path / "set.jsonl"), "--out", str(tmp_path / "out")]
    return main(["eval", "--model-path", "random:1x32", *paths, *more, f"store={tmp_path / 'store'}", *SMALL])


def test_untrained_policy_is_evaluated_end_to_end_without_seeing_a_private_test_and_not_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _problems(tmp_path / "set.jsonl")
    assert _eval(tmp_path) == 0
    printed = capsys.readouterr().out
    assert "| pass@1 | 0.0 (0.0 to 84.2) |" in printed
    assert "2 problems, 4 graded answers" in printed
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert {row["value"] for row in result["by_verdict"]} <= {"NF", "CE"}
    assert len(json.loads((tmp_path / "out" / "submission.json").read_text())) == 2
    [rollouts] = (tmp_path / "store" / "runs").glob("*/eval/set.jsonl-test/rollout/shard-00")
    [tokenizer] = (tmp_path / "store" / "policies").glob("*/hf/tokenizer.json")
    decode = Tokenizer.from_file(str(tokenizer)).decode
    prompts = [decode(row["prompt_ids"]) for row in read_parquet_dir(rollouts, ROLLOUT_SCHEMA)]
    assert all("Print twice that integer" in prompt for prompt in prompts)
    assert not any(CANARY in prompt for prompt in prompts)
    assert _eval(tmp_path) == 0
    assert capsys.readouterr().out.count("complete already") == 4  # set, rollout, reward, evaluate


RIGHT = "```python\nn = int(input())\nprint(2 * n)\n```"
# A process reads one line; the official harness hands out an empty one more.
DIFFERS = "```python\nimport sys\nlines = sys.stdin.readlines()\nassert len(lines) == 1\nprint(2 * int(lines[0]))\n```"
ONLY_THE_SAMPLE = "```python\nprint(2)\n```"


def _answering(answer: Callable[[str, int], str]) -> Callable[..., Pointer]:
    """In the place of the rollout: `answer(problem_id, sample)` for every held-out problem."""

    def run_evaluation(
        *, config: Config, dataset: Pointer, policy: Pointer, label: str, shard: int, output: str
    ) -> Pointer:
        store = open_store(config.store)
        rows = [
            {
                "policy_version": "base", "problem_id": problem.problem_id, "sample_id": sample, "turn": 0,
                "role": "solver",
                "prompt_ids": [1], "response_ids": [2] * 9, "rollout_logprobs": [-1.0] * 9, "finish_reason": "stop",
                "temperature": 0.6, "top_p": 0.95, "text": answer(problem.problem_id, sample), "seconds": 1.0,
            }
            for problem in read_problems(store.fetch(dataset) / "test")
            for sample in range(config.evaluation.n)
        ]  # fmt: skip
        where = shard_path(evaluation_path(config, label), "rollout", shard)
        with store.scratch() as scratch:
            write_parquet(scratch / "rows", rows, ROLLOUT_SCHEMA)
            store.put(scratch / "rows", f"{where}/chunk-00000.parquet")
        return store.commit(where, kind="rollouts", step="rollout", rows=len(rows), key="k", phase="eval")

    return run_evaluation


def _always(text: str) -> Callable[..., Pointer]:
    return _answering(lambda problem, sample: text)


def test_both_modes_stand_side_by_side_with_the_programs_that_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _problems(tmp_path / "set.jsonl")
    answers = {"livecodebench/abc1_a": (RIGHT, RIGHT), "livecodebench/abc2_a": (DIFFERS, ONLY_THE_SAMPLE)}
    monkeypatch.setattr(generate, "run_evaluation", _answering(lambda problem, sample: answers[problem][sample]))
    assert _eval(tmp_path) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["pass@1"]["value"] == 0.75
    modes = result["modes"]
    assert {name: estimate["value"] for name, estimate in modes["pass@1"].items()} == {"real": 0.75, "lcb": 0.5}
    assert modes["programs"] == [{"problem_id": "livecodebench/abc2_a", "sample_id": 0, "first": "AC", "second": "RE"}]
    assert "verdicts differ on 1 of 4 programs" in capsys.readouterr().out
    rows = json.loads((tmp_path / "out/eval_all.json").read_text())
    assert {row["question_id"]: row["graded_list"] for row in rows} == {"abc1_a": [True, True], "abc2_a": [True, False]}
    # The failing test is shown to people, after the fact.
    assert CANARY in (tmp_path / "out" / "report.html").read_text()


def test_two_models_are_compared_on_the_same_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _problems(tmp_path / "set.jsonl")
    printed = ""
    for seed, answer in enumerate((ONLY_THE_SAMPLE, RIGHT)):
        found = re.search(r"run (\S+), store (\S+)", printed)
        compare = ["--compare-with", f"{found[2]}/runs/{found[1]}/eval/set.jsonl-test/result"] if found else []
        monkeypatch.setattr(generate, "run_evaluation", _always(answer))
        assert _eval(tmp_path, *compare, f"seed={seed}") == 0
        printed = capsys.readouterr().out
    assert "second - first, paired over 2 problems: +100.0 (" in printed
    assert "better on 2 problems, worse on 0: McNemar p = 0.5" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset", "absent/dir/x.jsonl"], "no such file or directory"),
        (["--dataset", "set.jsonl", "--format", "tacos"], "data.sources.0.format"),
        (["--dataset", "set.jsonl", "--since", "2030-01-01"], "no problem that can be graded"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_words(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    _problems(tmp_path / "set.jsonl")
    monkeypatch.chdir(tmp_path)
    command: list[Any] = ["eval", "--model-path", "random:1x32", *arguments, f"store={tmp_path / 'store'}", *SMALL]
    assert main(command) == 1
    assert message in capsys.readouterr().err
