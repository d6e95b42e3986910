"""Runs a compiled pipeline on this machine, each step a process of its own, through kfp.local."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from components.core.config import Config
from components.core.errors import UserError
from components.core.paths import evaluation_labels, evaluation_path
from components.core.store import Store, open_store
from pipelines.compile import compile_profile
from pipelines.console import quiet

# Without a GPU two libraries that each start a thread a core would fight; passive waiting keeps them polite.
_ENVIRONMENT = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "PYTHONWARNINGS": "ignore",
}
_ENVIRONMENT_WITHOUT_GPU = {"DS_ACCELERATOR": "cpu", "TORCHDYNAMO_DISABLE": "1"}
"""What DeepSpeed must find when `pipelines.warm` imports it; see components/policy_update/engine.py."""


def run_local(values: dict[str, Any], config: Config, runner: str) -> None:
    """Compile, load the YAML again, and run it.

    A run that is complete says so and does nothing; one that was killed goes on at the commit markers.

    Args:
        values: the profile as plain data, paths absolute.
        config: the same, validated.
        runner: `subprocess` or `docker`.

    Raises:
        UserError: a step failed; its own message stands above.
    """
    store = open_store(config.store)
    print(f"run {config.run}, store {config.store}", flush=True)
    if finished(config, store):
        print("this run is complete already; nothing to do. Change seed= or any other key for another run.")
        print_summary(config, store)
        return
    if config.staleness:
        print("staleness=1: only a cluster overlaps generation and update; here they take turns all the same")
    from kfp import components as kfp_components
    from kfp import local

    # The images' names say nothing here: this environment holds what every image holds.
    warnings.filterwarnings("ignore", message="You may be attemping to run a task")
    warnings.filterwarnings("ignore", message="Task '.*': settings")  # of pods, which mean nothing here
    has_gpu = Path("/dev/nvidia0").exists()
    for name, value in (_ENVIRONMENT if has_gpu else _ENVIRONMENT | _ENVIRONMENT_WITHOUT_GPU).items():
        os.environ.setdefault(name, value)
    with tempfile.TemporaryDirectory(prefix="deepcoder-") as scratch:
        path = Path(scratch) / "pipeline.yaml"
        size = compile_profile(values, config, path)
        print(f"compiled: {size['tasks']} tasks, {size['yaml_bytes'] >> 10} KiB of YAML", flush=True)
        here = "work" if config.store.startswith("s3://") else config.store  # kfp.local's own files cannot go to S3
        around: AbstractContextManager[Any] = nullcontext([])
        if runner == "docker":
            from pipelines.containers import step_containers

            around = step_containers(config, Path(here).absolute() / "kfp")
        elif not has_gpu:  # where seconds count, and no driver minds a fork
            from pipelines.warm import warm_steps

            around = warm_steps()
        start = {"subprocess": lambda: local.SubprocessRunner(use_venv=False), "docker": local.DockerRunner}[runner]
        local.init(start(), pipeline_root=f"{here}/kfp", raise_on_error=True)
        pipeline = kfp_components.load_component_from_file(str(path))
        before = time.monotonic()
        log = Path(here) / "runs" / config.run / "log.txt"
        try:
            with around as peaks, quiet(log):
                pipeline()
        except RuntimeError as error:
            raise UserError(f"the run stopped: {error} Start it again: it goes on where it stopped.") from error
        largest = f"; the largest step took {max(peaks) / 1e6:.1f} GB of memory" if peaks else ""
        print(f"\n{(time.monotonic() - before) / 60:.1f} min in all{largest}")
    print_summary(config, store)


def finished(config: Config, store: Store) -> bool:
    """Whether the run's report and every evaluation are complete, and of this configuration: a name may be reused."""
    written = store.read_bytes(f"runs/{config.run}/config.json")
    if written is None or json.loads(written) != config.model_dump(mode="json"):
        return False
    places = [
        f"runs/{config.run}/report",
        *(f"{evaluation_path(config, one)}/result" for one in evaluation_labels(config)),
    ]
    return all(store.complete(place) is not None for place in places)


def print_summary(config: Config, store: Store) -> None:
    """The run's numbers, in a few lines."""
    from components.report.report import terminal_summary

    report = store.complete(f"runs/{config.run}/report")
    assert report is not None
    print(terminal_summary(report, store))
    sys.stdout.flush()
