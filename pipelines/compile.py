"""A profile becomes pipeline.yaml, after its size has been estimated and found to fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from components.core.config import Config, parse_config
from components.core.errors import UserError
from components.core.images import unpinned
from components.core.resolve import absolute_paths, merge, parse_overrides, read_profile

PROFILES = Path(__file__).parent / "profiles"

# Argo refuses a workflow over 1 MiB, status included; what the UI and retries need beside the spec takes the rest.
MAX_WORKFLOW_BYTES = 600 << 10
MAX_DAG_BYTES = 100 << 10
# The Argo workflow against the YAML, as measured on compiled pipelines with nested loops.
WORKFLOW_PER_YAML = 1.2


def load_profile(name: str, overrides: list[str]) -> tuple[dict[str, Any], Config]:
    """A profile with overrides, as plain data and validated.

    Args:
        name: a profile's name, or the path of a YAML file.
        overrides: `key=value` texts.

    Raises:
        UserError: see `read_profile`, `parse_overrides`, `parse_config`.
    """
    values = read_values(name, overrides)
    return values, parse_config(values, str(profile_path(name)))


def profile_path(name: str) -> Path:
    """The file of a profile's name, or the path itself."""
    return Path(name) if name.endswith((".yaml", ".yml")) else PROFILES / f"{name}.yaml"


def read_values(name: str, overrides: list[str]) -> dict[str, Any]:
    """A profile with overrides, as plain data, not validated."""
    return merge(read_profile(profile_path(name)), parse_overrides(overrides))


def compile_profile(values: dict[str, Any], config: Config, output: Path) -> dict[str, int]:
    """Compile to a YAML file, which appears only if it fits.

    Returns:
        `tasks`, `yaml_bytes`, `workflow_bytes` (estimated) and `largest_dag_bytes`.

    Raises:
        UserError: the graph is too large for Argo; says by how much and what to change.
    """
    from kfp import compiler

    from pipelines.deepcoder import build

    temporary = output.with_name(f".{output.stem}.tmp.yaml")
    compiler.Compiler().compile(build(values, config), str(temporary))
    size = measure(temporary)
    if excess := too_large(size):
        temporary.unlink()
        iterations = sum(stage.iterations for stage in config.stages)
        raise UserError(
            f"the graph of {iterations} iterations is {excess}. Use fewer iterations a stage with a larger batch_size "
            "(one iteration makes batch_size / policy_update.ppo_mini_batch_size updates), or chain runs: set "
            "model_name to an earlier run's last policy."
        )
    temporary.replace(output)
    return size


def warnings(config: Config) -> list[str]:
    """What a cluster would make trouble of, though the pipeline is valid."""
    found = []
    if not config.store.startswith("s3://") and not config.kubernetes.pvc:
        found.append(
            f"store={config.store} is a directory, which pods do not share: submit with store=s3://bucket/prefix, "
            "or compile with kubernetes.pvc= and store= below its mount"
        )
    if unpinned():
        found.append(f"not pinned by digest: {', '.join(unpinned())}; `make images PUSH=1 REGISTRY=...` pins them")
    return found


def measure(path: Path) -> dict[str, int]:
    """The size of a compiled pipeline; see `compile_profile`."""
    document = next(yaml.load_all(path.read_text(), yaml.CSafeLoader))
    dags = [part["dag"] for part in [document["root"], *document["components"].values()] if "dag" in part]
    tasks = sum(1 for part in document["components"].values() if "executorLabel" in part)
    bytes_ = path.stat().st_size
    return {
        "tasks": tasks,
        "yaml_bytes": bytes_,
        "workflow_bytes": int(bytes_ * WORKFLOW_PER_YAML),
        "largest_dag_bytes": max(len(yaml.dump(dag, Dumper=yaml.CSafeDumper)) for dag in dags),
    }


def too_large(size: dict[str, int]) -> str | None:
    """What is wrong with the size that `measure` found, in words; None if it fits."""
    if size["workflow_bytes"] <= MAX_WORKFLOW_BYTES and size["largest_dag_bytes"] <= MAX_DAG_BYTES:
        return None
    return (
        f"too large for Argo: an estimated {size['workflow_bytes'] >> 10} KiB of at most {MAX_WORKFLOW_BYTES >> 10} "
        f"KiB, its largest DAG {size['largest_dag_bytes'] >> 10} KiB of at most {MAX_DAG_BYTES >> 10} KiB"
    )


def local_profile(name: str, overrides: list[str]) -> tuple[dict[str, Any], Config]:
    """As `load_profile`, with relative directories made absolute, for a run on this machine."""
    # A cluster's settings mean nothing here; and a step that fails here is there to be looked at, not tried again.
    values = absolute_paths({**read_values(name, overrides), "kubernetes": {"retries": 0}})
    return values, parse_config(values, name)
