"""Runs an update: in this process, on ranks that torch's launcher starts, or on those of several pods."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import components
from components.policy_update.job import Job, Outcome, Report
from components.policy_update.messages import Relay, rank_error

_POLL_S = 0.2
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def launch(job: Job, report: Report, folder: Path) -> Outcome:
    """Run a job the way its configuration says; the one place that knows the launchers.

    Args:
        job: what to do.
        report: hears of it.
        folder: an empty one that every rank can reach, for the messages between the processes.

    Raises:
        UserError: a rank raised it.
        RuntimeError: a rank failed otherwise; the message holds its traceback.
    """
    launcher = job.config.policy_update.launcher
    if launcher == "inprocess":
        return in_process(job, report)
    if launcher == "deepspeed":
        return in_ranks(job, report, folder)
    from components.policy_update.trainjob import in_pods  # the Kubernetes client: a second

    return in_pods(job, report, folder)


def in_process(job: Job, report: Report) -> Outcome:
    """One rank, here."""
    from components.policy_update.train import train  # torch and DeepSpeed: seconds

    return train(job, report)


def in_ranks(job: Job, report: Report, folder: Path) -> Outcome:
    """One process a rank, of this machine; what they report is passed on while they run. See `launch`."""
    job_file, relay = folder / "job.json", Relay(folder / "events.jsonl", report)
    job.write(job_file)
    root = str(Path(components.__path__[0]).parent)
    python_path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    ranks = job.config.policy_update.ranks
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    command += ["-m", "components.policy_update.worker", str(job_file)]
    environment = {**os.environ, "PYTHONPATH": python_path}
    # A step that is killed cannot end its ranks, which would go on to hold the devices.
    end_with_us = _ask_for_signal if sys.platform == "linux" else None
    process = subprocess.Popen(command, env=environment, preexec_fn=end_with_us)
    try:
        while process.poll() is None:
            relay.pass_on()
            time.sleep(_POLL_S)
        relay.pass_on()
    finally:
        process.terminate()
        process.wait()
    if process.returncode:
        raise rank_error(folder) or _killed(process.returncode)
    return Outcome(**json.loads((folder / "outcome.json").read_text()))


def _killed(code: int) -> RuntimeError:
    return RuntimeError(
        f"a rank of the update was killed (exit code {code}); out of memory is the usual reason. "
        "Lower policy_update.ppo_max_token_len_per_gpu or set policy_update.gradient_checkpointing=true."
    )


def _ask_for_signal() -> None:
    """Have Linux send this process SIGTERM when its parent is gone; torch's launcher then ends the ranks."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
