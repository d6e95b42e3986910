"""The whole estimate of one configuration, and of the same with other shard counts and staleness."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.core.config import Config, parse_config
from components.core.errors import UserError
from components.core.resolve import merge
from pipelines.compile import compile_profile, load_profile
from pipelines.plan.architecture import Architecture, find_architecture
from pipelines.plan.graph import read_graph
from pipelines.plan.hardware import Assumptions, Gpu, hardware
from pipelines.plan.memory import kv_tokens, micro_batch_tokens, rollout_memory, update_memory
from pipelines.plan.simulate import simulate
from pipelines.plan.stages import stage_times
from pipelines.plan.timing import Timing


@dataclass(frozen=True)
class Cluster:
    """What a run runs on, and what it trains."""

    arch: Architecture
    gpu: Gpu
    assume: Assumptions
    gpus: int


def make_plan(
    profile: str, overrides: list[str], *, gpus: int, gpu: str, assume: list[str], architecture: str | None
) -> dict[str, Any]:
    """Estimate memory, time and cost, as JSON-able data.

    Args:
        profile: as for the other commands.
        overrides: `key=value` texts.
        gpus: of the cluster.
        gpu: their kind, see `hardware`.
        assume: `key=value` texts, see `hardware`.
        architecture: in place of `model_name`, where that says nothing about the policy's shape.

    Raises:
        UserError: the configuration, the model or the hardware is not known, or a task has no room in the cluster.
    """
    if gpus < 1:
        raise UserError(f"--gpus {gpus}: give at least one")
    values, config = load_profile(profile, overrides)
    cluster = Cluster(find_architecture(architecture or config.model_name), *hardware(gpu, assume), gpus)
    run = run_plan(values, config, cluster)
    return {
        "profile": config.profile,
        "model_name": config.model_name,
        "mode": config.rollout.mode,
        "parameters": cluster.arch.parameters,
        "gpus": gpus,
        "gpu": cluster.gpu.model_dump(),
        "memory": memory_plan(config, cluster),
        "run": run,
        "alternatives": alternatives(values, config, cluster, run),
        "assumptions": cluster.assume.model_dump(),
    }


def memory_plan(config: Config, cluster: Cluster) -> dict[str, Any]:
    """Bytes of one GPU, in the update and in a rollout."""
    update = update_memory(config, cluster.arch, cluster.gpu, cluster.assume)
    rollout = rollout_memory(config, cluster.arch, cluster.gpu, cluster.assume)
    cache = kv_tokens(config, cluster.arch, rollout)
    longest = config.data.max_prompt_length + max(stage.max_response_length for stage in config.stages)
    return {
        **{
            name: {"parts": memory.parts, "total": memory.total, "limit": memory.limit, "fits": memory.fits}
            for name, memory in (("policy_update", update), ("rollout", rollout))
        },
        "micro_batch_tokens": micro_batch_tokens(config),
        "kv_bytes_per_token": cluster.arch.kv_bytes_per_token(2 if config.rollout.dtype == "bfloat16" else 4),
        "kv_tokens_per_engine": cache,
        "longest_answers_at_once": cache / longest,
        "context_fits": cache >= config.context_length,
    }


def run_plan(values: dict[str, Any], config: Config, cluster: Cluster) -> dict[str, Any]:
    """Compile, read the graph back, and simulate it."""
    with tempfile.TemporaryDirectory(prefix="deepcoder-plan-") as folder:
        compile_profile(values, config, Path(folder) / "pipeline.yaml")
        tasks = read_graph(Path(folder) / "pipeline.yaml")
    timing = Timing(config, cluster.arch, cluster.gpu, cluster.assume)
    parts = [timing.seconds(task) for task in tasks]
    schedule = simulate(
        tasks,
        [sum(part.values()) for part in parts],
        [timing.gpus(task) for task in tasks],
        total_gpus=cluster.gpus,
        gpus_per_node=cluster.assume.gpus_per_node,
    )
    hours, held = schedule.makespan / 3600, schedule.gpu_seconds / 3600
    update, iterations = config.policy_update, sum(stage.iterations for stage in config.stages)
    steps = iterations * update.ppo_epochs * config.batch_size // update.ppo_mini_batch_size
    trained = max(schedule.end[task.number] for task in tasks if task.kind == "policy-update")
    return {
        "shards": config.rollout.shards,
        "staleness": config.staleness,
        "iterations": iterations,
        "optimizer_steps": min(steps, config.max_steps or steps),
        "evaluations": len(config.stages) + 1,
        "evaluation_s": schedule.makespan - trained,
        "pods": len(tasks),
        "hours": hours,
        "gpu_hours_reserved": cluster.gpus * hours,
        "gpu_hours_held": held,
        "usd_reserved": cluster.gpus * hours * cluster.gpu.usd_per_hour,
        "usd_held": held * cluster.gpu.usd_per_hour,
        "stages": [stage_times(number, timing, tasks, parts, schedule) for number in range(1, len(config.stages) + 1)],
    }


def alternatives(values: dict[str, Any], config: Config, cluster: Cluster, run: dict[str, Any]) -> list[dict[str, Any]]:
    """`run` with as many shards as the GPUs hold, with a half and a quarter of them, at either staleness."""
    most = max(1, cluster.gpus // config.rollout.tensor_parallel_size)
    counts = sorted({max(1, most // part) for part in (1, 2, 4)} | {config.rollout.shards})
    found = []
    for shards in counts:
        for staleness in (0, 1):
            if (shards, staleness) == (config.rollout.shards, config.staleness):
                found.append(run)
                continue
            changed = merge(values, {"rollout": {"shards": shards}, "staleness": staleness})
            found.append(run_plan(changed, parse_config(changed, "plan"), cluster))
    return found
