"""The report step on a made-up run, against numbers counted here from the same rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import scipy.stats
from mlflow.tracking import MlflowClient

from components.core.errors import UserError
from components.core.store import Pointer, open_store
from components.evaluation import evaluate
from components.report import report
from components.report.collect import left_out, step_times, training_curves
from components.report.summary import summary_markdown
from tests.evaluation.synthetic import MadeUpRun, make_config


class Reported:
    """A made-up run with its evaluations and its report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = MadeUpRun(make_config(folder / "store"))
        self.evaluations = [
            evaluate.run(
                config=self.run.config,
                dataset=self.run.dataset,
                policy=self.run.policy_of(label),
                rewards=rewards,
                label=label,
                output=str(folder / f"{label}.json"),
            )
            for label, rewards in self.run.rewards.items()
        ]
        # Evaluations come in any order out of a pipeline.
        self.pointer = self.report(self.evaluations[::-1])
        self.summary: dict[str, Any] = json.loads((Path(self.pointer.uri) / "summary.json").read_text())
        self.page = (Path(self.pointer.uri) / "report.html").read_text()

    def report(self, evaluations: list[Pointer]) -> Pointer:
        return report.run(
            config=self.run.config,
            evaluations=evaluations,
            policies=self.run.policies,
            output=str(self.folder / "report.json"),
            html=str(self.folder / "html" / "report.html"),
        )

    def problem_means(self, label: str) -> dict[str, float]:
        graded: dict[str, list[bool]] = {}
        for row in self.run.verdicts(label):
            if row["verdict"] != "INFRA":
                graded.setdefault(row["problem_id"], []).append(row["verdict"] == "AC")
        return {name: fmean(values) for name, values in graded.items()}


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    return Reported(tmp_path_factory.mktemp("run"))


def test_policies_are_in_the_order_of_training(reported: Reported) -> None:
    policies = reported.summary["policies"]
    assert [(row["label"], row["global_step"]) for row in policies] == [("base", 0), ("stage-1", 4), ("stage-2", 8)]


def test_gain_is_the_paired_difference_over_the_same_problems(reported: Reported) -> None:
    before, after = reported.problem_means("base"), reported.problem_means("stage-2")
    shared = sorted(before.keys() & after.keys())
    theirs = scipy.stats.ttest_rel([after[name] for name in shared], [before[name] for name in shared])
    gain = reported.summary["gain"]
    assert gain["problems"] == len(shared)
    assert gain["pass@1"]["value"] == pytest.approx(fmean(after[name] - before[name] for name in shared))
    assert gain["pass@1"]["low"] == pytest.approx(theirs.confidence_interval(0.95).low)


def test_parts_of_the_gain_add_up(reported: Reported) -> None:
    gain = reported.summary["gain"]
    assert sum(part["value"] for part in gain["parts"].values()) == pytest.approx(gain["pass@1"]["value"])


def test_time_is_that_of_every_marker_and_of_the_dataset(reported: Reported) -> None:
    rows = {row["kind"]: row for row in reported.summary["time"]["by_kind"]}
    assert rows["rollout"] == {"kind": "rollout", "steps": 8, "startup_s": 20.0, "total_s": 4 * (24.0 + 25.0)}
    assert rows["rollout (evaluation)"]["steps"] == rows["reward (evaluation)"]["steps"] == 6
    assert rows["prepare data"]["total_s"] == 16.0
    assert rows["policy update"]["startup_s"] == 16.0
    assert rows["evaluate"]["steps"] == 3
    assert rows["report"]["steps"] == 1
    total = sum(row["total_s"] for row in rows.values())
    assert reported.summary["time"]["total_s"] == pytest.approx(total)


def test_half_written_step_is_not_counted(reported: Reported) -> None:
    reported.run.store.write_bytes(b"x", "runs/made-up-1/stage-2/iter-01/rollout/shard-07/chunk.parquet")
    rows = {row["kind"]: row for row in step_times(reported.run.store, "made-up-1", None)}
    assert rows["rollout"]["steps"] == 8


def test_what_the_rollouts_left_out_is_a_line_of_the_report(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for shard, metrics in enumerate([{"prompts/too_long": 2.0, "rollout/unfinished": 1.0}, {"prompts/too_long": 3.0}]):
        where = f"runs/r/stage-1/iter-00/rollout/shard-{shard:02d}"
        store.commit(where, kind="rollouts", step="rollout", rows=1, key="k", metrics=metrics | {"turns/too_long": 0.0})
    assert left_out(store, "r") == {"prompts/too_long": 5, "rollout/unfinished": 1}


def test_a_run_that_left_nothing_out_says_nothing_of_it(reported: Reported) -> None:
    assert reported.summary["left_out"] == []
    assert "Left out" not in reported.page
    words = ["5 prompts longer than data.max_prompt_length", "1 samples not finished within rollout.wall_limit_s"]
    summary = reported.summary | {"left_out": words}
    assert f"Left out by the rollouts: {'; '.join(words)}." in summary_markdown(summary)


def test_curves_join_the_updates_and_add_what_only_their_metrics_have() -> None:
    def policy(first: int, **metrics: float) -> Pointer:
        rows = [{"global_step": first + i, "loss": float(first + i), "bad": float("nan")} for i in range(2)]
        extra = {"curve": rows, "metrics": {"loss": -1.0, "timing_s/total": 9.0} | metrics}
        return Pointer("/p", "", 0, "policy", "policy_update", 1, extra)

    curves = training_curves([policy(3, solved=0.5), policy(1)])
    assert curves == {"loss": [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)], "solved": [(4, 0.5)]}


def test_format_of_the_training_answers_is_a_curve_over_the_updates(reported: Reported) -> None:
    points = reported.summary["curves"]["reward/well_formed"]
    assert [step for step, _ in points] == [1, 3, 5, 7]
    assert all(0.4 < share < 1 for _, share in points)


def test_page_is_self_contained_and_escapes_what_models_wrote(reported: Reported) -> None:
    assert "src=" not in reported.page
    assert "@import" not in reported.page
    assert "url(" not in reported.page
    assert "https:" not in reported.page
    assert "http:" not in reported.page.replace("http://www.w3.org", "")
    assert "Read 2 integers &lt;from one line&gt; &amp;" in reported.page
    assert reported.page.count("<svg") >= 8
    assert reported.page.count('class="problem"') == 40
    assert (reported.folder / "html" / "report.html").read_text() == reported.page


def test_terminal_shows_the_numbers_in_fifteen_lines(reported: Reported) -> None:
    text = report.terminal_summary(reported.pointer, reported.run.store)
    lines = text.splitlines()
    assert len(lines) <= 15
    base = reported.summary["policies"][0]["pass@1"]
    assert f"base     {100 * base['value']:.1f} ± {50 * (base['high'] - base['low']):.1f} %" in text
    assert "gain    +" in text
    assert f"page    {reported.pointer.uri}/report.html" in text


def test_report_is_an_artifact_and_the_gain_a_metric_of_the_parent_run(reported: Reported) -> None:
    client = MlflowClient(reported.run.config.shared_tracking_uri())
    experiment = client.get_experiment_by_name("deepcoder")
    run = client.search_runs([experiment.experiment_id], "tags.`deepcoder.run` = 'made-up-1'")[0]
    names = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    assert {"report.html", "summary.json", "summary.md"} <= names
    assert run.data.metrics["gain/pass_at_1"] == pytest.approx(reported.summary["gain"]["pass@1"]["value"])


def test_second_run_finds_the_report_complete(reported: Reported, capsys: pytest.CaptureFixture[str]) -> None:
    assert reported.report(reported.evaluations[::-1]) == reported.pointer
    assert "complete already" in capsys.readouterr().out


def test_base_evaluation_alone_gives_a_report_without_gain(reported: Reported, tmp_path: Path) -> None:
    run = MadeUpRun(make_config(reported.folder / "store", run_name="alone"))
    base = evaluate.run(
        config=run.config,
        dataset=run.dataset,
        policy=run.policies[0],
        rewards=run.rewards["base"],
        label="base",
        output=str(tmp_path / "base.json"),
    )
    pointer = report.run(
        config=run.config,
        evaluations=[base],
        policies=[],
        output=str(tmp_path / "r.json"),
        html=str(tmp_path / "r.html"),
    )
    assert "gain" not in report.terminal_summary(pointer, run.store)


def test_policy_that_never_answers_in_the_right_format_is_reported_as_such(reported: Reported, tmp_path: Path) -> None:
    run = MadeUpRun(make_config(reported.folder / "store", run_name="nothing"), form=0.0)
    evaluations = [
        evaluate.run(
            config=run.config,
            dataset=run.dataset,
            policy=run.policy_of(label),
            rewards=run.rewards[label],
            label=label,
            output=str(tmp_path / f"{label}.json"),
        )
        for label in ("base", "stage-2")
    ]
    pointer = report.run(
        config=run.config,
        evaluations=evaluations,
        policies=[],
        output=str(tmp_path / "r.json"),
        html=str(tmp_path / "r"),
    )
    text = report.terminal_summary(pointer, run.store)
    # 40 problems without one success: Clopper-Pearson's 1 - 0.025^(1/40) = 8.8 %.
    assert "base     0.0 (0.0 to 8.8) %   format 0.0 (0.0 to 8.8) %" in text
    assert "gain    +0.0 ± 8.8 points" in text


def test_evaluation_that_is_gone_is_named(reported: Reported, tmp_path: Path) -> None:
    gone = Pointer(f"{reported.run.store.root}/runs/x/eval/base/result", "0", 1, "evaluation", "evaluate", 1,
                   {"label": "base", "global_step": 0})  # fmt: skip
    with pytest.raises(UserError, match="Run the step `evaluate` again"):
        reported.report([gone])


def test_heavy_libraries_stay_out_of_the_import() -> None:
    code = (
        "import sys, components.report.report; "
        "print([m for m in ('torch', 'transformers', 'pandas', 'matplotlib', 'scipy', 'mlflow') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
