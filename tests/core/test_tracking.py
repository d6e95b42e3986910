"""MLflow against PostgreSQL, as on a cluster; Debian's server, started here as a user without rights."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from components.core.tracking import RUN_TAG, STEP_TAG, Tracking
from tests.data_prep.rows import make_config

BINARIES = max([path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")], default=None)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    """The URI of an empty database, reached over a socket in its own folder."""
    if BINARIES is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    # PostgreSQL refuses to run as root.
    user: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}
    folder = Path(f"/tmp/postgres-{os.getpid()}")
    folder.mkdir()
    if user:
        shutil.chown(folder, "nobody")
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder, **user}
    try:
        subprocess.run([f"{BINARIES}/initdb", "-D", f"{folder}/data", "-U", "mlflow", "-A", "trust", "-N"], **quiet)
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        control = [f"{BINARIES}/pg_ctl", "-D", f"{folder}/data", "-l", f"{folder}/log", "-w"]
        subprocess.run([*control, "-o", options, "start"], **quiet)
        try:
            yield f"postgresql+psycopg://mlflow@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
def test_on_postgresql_a_run_that_starts_again_goes_on_in_the_same_mlflow_runs(database: str, tmp_path: Path) -> None:
    config = make_config(tmp_path, [{"format": "taco", "path": "x"}]).model_copy(update={"tracking_uri": database})
    first = Tracking(config)
    step = first.nested("stage-1/iter-00/policy")
    first.params({"learning_rate": 1e-5})
    first.log(first.parent_id, {"reward/mean": 0.25, "not finite": float("nan")}, 1)

    again = Tracking(config)  # after a kill: nothing was closed
    assert again.parent_id == first.parent_id
    assert again.nested("stage-1/iter-00/policy") == step
    again.params({"learning_rate": 1e-5})
    again.log(again.parent_id, {"reward/mean": 0.5}, 2)
    (tmp_path / "page.html").write_text("page")
    again.artifact(again.parent_id, tmp_path / "page.html")
    again.end(step, "FINISHED")

    client = MlflowClient(database)
    runs = client.search_runs([again.experiment_id])
    assert {run.info.run_id for run in runs} == {again.parent_id, step}
    nested = client.get_run(step)
    assert nested.info.status == "FINISHED"
    assert nested.data.tags["mlflow.parentRunId"] == again.parent_id
    assert nested.data.tags[STEP_TAG] == "stage-1/iter-00/policy"
    parent = client.get_run(again.parent_id)
    assert parent.data.tags[RUN_TAG] == config.run
    assert parent.data.params == {"learning_rate": "1e-05"}
    assert [(point.step, point.value) for point in client.get_metric_history(again.parent_id, "reward/mean")] == [
        (1, 0.25),
        (2, 0.5),
    ]
    assert [file.path for file in client.list_artifacts(again.parent_id)] == ["page.html"]
    assert list((tmp_path / "store/mlflow-artifacts").glob("**/page.html"))
