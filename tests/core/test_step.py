import json
import math
from pathlib import Path

import pytest
from kfp.dsl import Metrics
from mlflow.tracking import MlflowClient

from components.core.config import Config
from components.core.errors import UserError
from components.core.step import Step, publish
from components.core.store import Pointer
from pipelines.compile import load_profile


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load_profile("micro", [f"store={tmp_path / 'store'}"])[1]


def step(config: Config, tmp_path: Path, settings: object = 1) -> Step:
    where = f"runs/{config.run}/stage-1/iter-00/rollout/shard-00"
    return Step(config, "rollout", where, settings=settings, inputs={}, output=tmp_path / "out.json")


def test_a_finished_step_is_not_done_again_and_one_with_other_settings_is(config: Config, tmp_path: Path) -> None:
    with step(config, tmp_path) as first:
        first.store.write_bytes(b"x", f"{first.where}/part")
        pointer = first.commit(kind="rollouts", rows=1, metrics={"a": 1.0})
    with step(config, tmp_path) as again:
        assert again.pointer == pointer == Pointer.read(tmp_path / "out.json")
    with step(config, tmp_path, settings=2) as other:
        assert other.pointer is None
        assert other.store.list(other.where).keys() == {"_KEY"}
        other.commit(kind="rollouts", rows=0, metrics={})


def test_a_killed_step_finds_its_finished_files_and_the_same_mlflow_run(config: Config, tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    with pytest.raises(Killed), step(config, tmp_path) as first:
        first.store.write_bytes(b"x", f"{first.where}/part")
        first.log_curve({"m": 1.0}, 3)
        raise Killed
    with step(config, tmp_path) as again:
        assert again.pointer is None
        assert "part" in again.store.list(again.where)
        again.log_curve({"m": 2.0}, 4)
        again.commit(kind="rollouts", rows=1, metrics={})
    client = MlflowClient(config.shared_tracking_uri())
    runs = client.search_runs([client.get_experiment_by_name(config.experiment).experiment_id])
    names = sorted(run.data.tags["mlflow.runName"] for run in runs)
    assert names == sorted([config.run, "stage-1/iter-00/rollout/shard-00"])
    parent = next(run for run in runs if run.data.tags["mlflow.runName"] == config.run)
    assert [(m.step, m.value) for m in client.get_metric_history(parent.info.run_id, "m")] == [(3, 1.0), (4, 2.0)]


def test_a_full_disk_is_named_and_what_was_finished_stays(config: Config, tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"rollout/shard-00: no space left below .*store="),
        step(config, tmp_path) as one,
    ):
        one.store.write_bytes(b"x", f"{one.where}/part")
        with open("/dev/full", "w") as full:
            full.write("x" * 100)
    assert one.store.read_bytes(f"{one.where}/_KEY") == one.key.encode()
    assert one.store.complete(one.where) is None
    assert "part" in one.store.list(one.where)


def test_what_kfp_is_told_is_strict_json(tmp_path: Path) -> None:
    told = Metrics(uri=str(tmp_path / "metrics"))
    values = {"a": 1.5, "norm": math.inf, "loss": math.nan}
    publish(Pointer("u", "s", 0, "policy", "policy_update", 1, {"metrics": values}), told)
    assert json.loads((tmp_path / "metrics").read_text()) == told.metadata == {"a": 1.5}
