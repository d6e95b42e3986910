"""The PPO update on one rank, from samples to weights; every rank runs the same code."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import torch.distributed as dist

from components.policy_update.actor import Actor
from components.policy_update.alarms import extend_history, sound_alarms
from components.policy_update.checkpoint import export_hf, load_optimizer, need_space, save_optimizer, saving
from components.policy_update.engine import build_engine, optimizer_settings, start_ranks
from components.policy_update.gradients import bad_in_a_row
from components.policy_update.job import Job, Outcome, Report
from components.policy_update.metrics import batch_metrics, over_steps, staleness_metrics
from components.policy_update.rollout_io import Sample, read_samples, scored
from components.policy_update.schedule import choose_samples, make_schedule
from components.policy_update.signals import make_signals


def train(job: Job, report: Report) -> Outcome:
    """Run one update and write `hf/`, `zero/` and, with a value model, `critic/` to the job's output folder.

    Args:
        job: what to do.
        report: hears of it, on rank 0.

    Raises:
        UserError: the samples, the disk or the gradients forbid it.
    """
    rows = read_samples((Path(rollout), Path(reward)) for rollout, reward in job.shards)
    device = start_ranks(job.config.policy_update)
    output = Path(job.output)
    output.mkdir(parents=True, exist_ok=True)
    seen = scored(rows)
    samples = choose_samples(job, seen)
    schedule = make_schedule(job, samples)
    first = dist.get_rank() == 0
    other_models = job.config.policy_update.needs_reference or job.config.policy_update.adv_estimator == "gae"
    if first and other_models:
        report.ready()
    signals = make_signals(job, samples, schedule, device)
    engine = build_engine(job.config, Path(job.policy) / "hf", device)
    if job.optimizer is not None:
        load_optimizer(engine, Path(job.optimizer) / "zero", output)
        for group in engine.optimizer.param_groups:
            group.update(optimizer_settings(job.config))
    need_space(engine, Path(job.policy) / "hf", output)
    if first and not other_models:
        report.ready()

    whole = whole_update(job, rows, seen, samples) | signals.metrics
    points = Actor(job, engine, device, samples, signals).run(schedule, report, whole)
    metrics = over_steps(points) if points else whole | sound_alarms(job, whole, aloud=first)

    start = time.monotonic()
    with saving(output):
        save_optimizer(engine, output / "zero")
        export_hf(engine, Path(job.policy) / "hf", output / "hf")
    engine.destroy()
    metrics["timing_s/save"] = time.monotonic() - start
    return Outcome(
        global_step=job.global_step + len(points),
        steps=len(points),
        samples=len(samples),
        metrics=metrics,
        history=extend_history(job.history, metrics, job.config.policy_update.alarms),
        nan_steps=bad_in_a_row(job, points),
    )


def whole_update(
    job: Job, rows: Sequence[Sample], seen: Sequence[Sample], samples: Sequence[Sample]
) -> dict[str, float]:
    """Numbers about an update as a whole: what was sampled, what could be scored, what is learnt from."""
    metrics = {"batch/unscored": float(len(rows) - len(seen)), **staleness_metrics(job, seen)}
    metrics["perf/free_disk_gb"] = shutil.disk_usage(job.output).free / 1e9
    if job.config.policy_update.filter_groups.enable:
        # Of all that was sampled: of what is left, the reward would be near one half whatever the policy can do.
        metrics |= batch_metrics(seen, job.config.rollout.n)
        metrics["batch/groups_sampled"] = float(len({sample.group for sample in seen}))
        metrics["batch/groups_kept"] = float(len({sample.group for sample in samples}))
    return metrics
