"""Where things are in the store, so that a person finds any file without the code."""

from __future__ import annotations

from components.core.config import Config


def dataset_path(key: str) -> str:
    """Prepared problems, shared by all runs with the same data configuration."""
    return f"datasets/{key}"


def base_policy_path(key: str) -> str:
    """A base policy turned into a HF directory, shared by all runs."""
    return f"policies/{key}"


def iteration_path(config: Config, stage: int, iteration: int) -> str:
    """Everything of one training iteration. Stages count from 1, iterations from 0."""
    return f"runs/{config.run}/stage-{stage}/iter-{iteration:02d}"


def evaluation_path(config: Config, label: str) -> str:
    """Everything of one evaluation; `label` is `base` or `stage-1`."""
    return f"runs/{config.run}/eval/{label}"


def shard_path(base: str, step: str, shard: int) -> str:
    """One shard of a rollout or reward below an iteration or an evaluation."""
    return f"{base}/{step}/shard-{shard:02d}"


def evaluation_labels(config: Config) -> list[str]:
    """The policies that a run evaluates, in order: the base, then the last of each stage."""
    return ["base", *(f"stage-{stage}" for stage in range(1, len(config.stages) + 1))]
