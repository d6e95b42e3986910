"""MLflow: one parent run a training run, which holds the curves, and a nested run a step.

Run ids are found by tags, so that a step that starts again after a kill goes on in the same MLflow run. The
tag names of the parent are those that Kubeflow Pipelines' own MLflow plugin uses, where there is one.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
from pathlib import Path
from typing import Any

from components.core.config import Config
from components.core.errors import UserError

RUN_TAG = "deepcoder.run"
STEP_TAG = "deepcoder.step"


class Tracking:
    """The parent run of one training run, made if it does not exist."""

    def __init__(self, config: Config) -> None:
        os.environ.setdefault("MLFLOW_LOCK_MODEL_DEPENDENCIES", "false")
        if os.environ.get("S3_ENDPOINT_URL"):
            os.environ.setdefault("MLFLOW_S3_ENDPOINT_URL", os.environ["S3_ENDPOINT_URL"])
        logging.getLogger("alembic").setLevel(logging.WARNING)
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        import mlflow  # takes seconds: only where it is used
        from mlflow.tracking import MlflowClient

        uri = config.shared_tracking_uri() or os.environ.get("MLFLOW_TRACKING_URI") or ""
        if not uri:
            raise UserError(
                "no MLflow server: set tracking_uri= or MLFLOW_TRACKING_URI, or use a store that is a directory"
            )
        mlflow.set_tracking_uri(uri)
        self._client = MlflowClient(uri)
        self.experiment_id = self._experiment(config)
        self._config = config
        self.parent_id = self._find_or_create(config.run, {RUN_TAG: config.run})

    def _experiment(self, config: Config) -> str:
        from mlflow.exceptions import MlflowException

        found = self._client.get_experiment_by_name(config.experiment)
        if found is not None:
            return str(found.experiment_id)
        # A server decides where artifacts go. A bare database has none to ask: they go beside the run's other output.
        is_server = (config.shared_tracking_uri() or os.environ["MLFLOW_TRACKING_URI"]).startswith("http")
        location = None if is_server else f"{config.store}/mlflow-artifacts"
        try:
            return str(self._client.create_experiment(config.experiment, artifact_location=location))
        except MlflowException:  # another step was faster
            return str(self._client.get_experiment_by_name(config.experiment).experiment_id)

    def _find_or_create(self, name: str, tags: dict[str, str]) -> str:
        query = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        found = self._client.search_runs([self.experiment_id], query, order_by=["start_time ASC"], max_results=1)
        if found:
            run_id = str(found[0].info.run_id)
            self._client.update_run(run_id, status="RUNNING")
            return run_id
        tags = {**tags, "mlflow.runName": name}
        return str(self._client.create_run(self.experiment_id, tags=tags, run_name=name).info.run_id)

    def nested(self, step: str) -> str:
        """The id of the nested run of one step, `stage-1/iter-02/rollout/shard-00`."""
        return self._find_or_create(step, {STEP_TAG: step, "mlflow.parentRunId": self.parent_id})

    def log(self, run_id: str, metrics: dict[str, float], step: int) -> None:
        """Log finite numbers; names are cleaned of what MLflow refuses.

        Args:
            run_id: a nested run, or `parent_id` for the curves.
            metrics: name to value.
            step: the x axis: optimizer steps so far.
        """
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        batch = [
            Metric(re.sub(r"[^\w\-./ :@]", "_", name).replace("@", "_at_"), float(value), now, step)
            for name, value in metrics.items()
            if math.isfinite(value)
        ]
        for start in range(0, len(batch), 500):
            self._client.log_batch(run_id, metrics=batch[start : start + 500])

    def params(self, values: dict[str, Any]) -> None:
        """The configuration as parameters of the parent; those already there stay."""
        from mlflow.entities import Param

        have = self._client.get_run(self.parent_id).data.params
        new = [Param(key, str(value)[:6000]) for key, value in values.items() if key not in have]
        for start in range(0, len(new), 100):
            self._client.log_batch(self.parent_id, params=new[start : start + 100])

    def artifact(self, run_id: str, path: Path, folder: str | None = None) -> None:
        """Attach a file."""
        self._client.log_artifact(run_id, str(path), folder)

    def end(self, run_id: str, status: str) -> None:
        """Close a run: FINISHED or FAILED."""
        self._client.set_terminated(run_id, status)
