"""The evaluate step on a made-up run, against numbers counted here from the same rows."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pyarrow.parquet as pq
import pytest
from mlflow.tracking import MlflowClient

from components.core.errors import UserError
from components.core.store import Pointer
from components.evaluation import evaluate
from tests.evaluation.synthetic import MadeUpRun, make_config, make_dataset, make_problems


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> MadeUpRun:
    return MadeUpRun(make_config(tmp_path_factory.mktemp("store")))


def _evaluate(made_up: MadeUpRun, folder: Path, label: str = "base", **changes: object) -> Pointer:
    values = {"config": made_up.config, "dataset": made_up.dataset, "policy": made_up.policy_of(label)}
    values |= {"rewards": made_up.rewards[label], "label": label}
    values |= {"output": str(folder / "pointer.json"), "html": str(folder / "html" / "page.html")}
    return evaluate.run(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def evaluated(made_up: MadeUpRun, tmp_path_factory: pytest.TempPathFactory) -> Pointer:
    return _evaluate(made_up, tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def result(evaluated: Pointer) -> dict:
    return json.loads((Path(evaluated.uri) / "result.json").read_text())


def test_pass_at_1_is_the_mean_of_the_problems_means_without_infra(made_up: MadeUpRun, result: dict) -> None:
    graded: dict[str, list[bool]] = {}
    for row in made_up.verdicts("base"):
        if row["verdict"] != "INFRA":
            graded.setdefault(row["problem_id"], []).append(row["verdict"] == "AC")
    assert result["pass@1"]["value"] == pytest.approx(fmean(map(fmean, graded.values())))
    assert result["samples"] == sum(map(len, graded.values()))
    assert result["infra_samples"] == 160 - result["samples"] > 0


def test_format_share_and_success_among_well_formed_are_told(made_up: MadeUpRun, result: dict) -> None:
    rows = [row for row in made_up.verdicts("base") if row["verdict"] != "INFRA"]
    formed = [row for row in rows if row["well_formed"]]
    assert result["format_share"]["value"] == pytest.approx(len(formed) / len(rows), abs=0.01)
    among = fmean(row["verdict"] == "AC" for row in formed)
    assert result["pass@1_well_formed"]["value"] == pytest.approx(among, abs=0.01)


def test_pass_k_above_n_is_left_out(result: dict) -> None:
    assert list(result["pass@k"]) == ["1", "2", "4"]
    values = [estimate["value"] for estimate in result["pass@k"].values()]
    assert values == sorted(values)


@pytest.mark.parametrize("grouping", ["difficulty", "platform", "source", "month"])
def test_groups_hold_every_problem_once(result: dict, grouping: str) -> None:
    groups = result[f"by_{grouping}"]
    assert sum(group["problems"] for group in groups) == result["problems"]
    weighted = sum(group["problems"] * group["pass@1"]["value"] for group in groups) / result["problems"]
    assert weighted == pytest.approx(result["pass@1"]["value"])


def test_verdicts_add_up_and_carry_the_response_lengths(result: dict) -> None:
    assert sum(row["samples"] for row in result["by_verdict"]) == 160
    assert sum(row["share"] for row in result["by_verdict"]) == pytest.approx(1)
    assert all(20 <= row["response_tokens"]["median"] <= 64 for row in result["by_verdict"])


def test_output_is_the_numbers_the_samples_and_the_page(evaluated: Pointer, made_up: MadeUpRun) -> None:
    folder = Path(evaluated.uri)
    assert evaluated.uri.endswith("runs/made-up-1/eval/base/result")
    assert (evaluated.kind, evaluated.rows, evaluated.extra["global_step"]) == ("evaluation", 160, 0)
    samples = pq.read_table(folder / "samples.parquet").to_pylist()
    assert {row["correct"] for row in samples if row["verdict"] == "INFRA"} == {None}
    assert all(bool(row["program"]) != bool(row["excerpt"]) for row in samples)
    failure = next(row["first_failure"] for row in samples if row["verdict"] == "WA")
    assert json.loads(failure) == {"test": "2 of 5", "input": "1 2\n", "expected": "3\n"}
    page = (folder / "report.html").read_text()
    assert "print their sum modulo" in page
    assert "Read 2 integers &lt;from one line&gt; &amp; print" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "| pass@1 |" in (folder / "summary.md").read_text()


def test_second_run_does_nothing_but_leaves_pointer_and_page(
    evaluated: Pointer, made_up: MadeUpRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = _evaluate(made_up, tmp_path)
    assert again == evaluated == Pointer.read(tmp_path / "pointer.json")
    assert "complete already" in capsys.readouterr().out
    assert (tmp_path / "html" / "page.html").read_bytes() == (Path(evaluated.uri) / "report.html").read_bytes()


def test_numbers_are_in_mlflow_at_the_policys_optimizer_step(evaluated: Pointer, made_up: MadeUpRun) -> None:
    client = MlflowClient(made_up.config.shared_tracking_uri())
    experiment = client.get_experiment_by_name("deepcoder")
    runs = client.search_runs([experiment.experiment_id], "tags.`deepcoder.run` = 'made-up-1'")
    history = client.get_metric_history(runs[0].info.run_id, "eval/pass_at_1")
    assert [(point.step, point.value) for point in history] == [(0, evaluated.extra["metrics"]["pass@1"])]


def test_rewards_of_other_problems_are_refused(tmp_path: Path) -> None:
    other = MadeUpRun(make_config(tmp_path / "store"), problems=4)
    strange = [replace(problem, problem_id=f"x{problem.problem_id}") for problem in make_problems(4)]
    other.store.delete("datasets/made-up")
    with pytest.raises(UserError, match="is not in the held-out split"):
        _evaluate(other, tmp_path, dataset=make_dataset(other.store, strange))


def test_shard_given_twice_is_refused(made_up: MadeUpRun, tmp_path: Path) -> None:
    twice = made_up.rewards["stage-1"][:1] * 2
    with pytest.raises(UserError, match="is in another shard too"):
        _evaluate(made_up, tmp_path, label="stage-1", rewards=twice)


def test_heavy_libraries_stay_out_of_the_import() -> None:
    code = (
        "import sys, components.evaluation.evaluate; "
        "print([m for m in ('torch', 'transformers', 'pandas', 'matplotlib', 'scipy', 'mlflow') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
