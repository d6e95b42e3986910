"""Runs an update: in this process, or on ranks that torch's launcher starts."""

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
from components.core.errors import UserError
from components.policy_update.job import Job, Outcome, Report

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
    if job.config.policy_update.launcher == "inprocess":
        return in_process(job, report)
    return in_ranks(job, report, folder)


def in_process(job: Job, report: Report) -> Outcome:
    """One rank, here."""
    from components.policy_update.train import train  # torch and DeepSpeed: seconds

    return train(job, report)


def in_ranks(job: Job, report: Report, folder: Path) -> Outcome:
    """One process a rank, of this machine; what they report is passed on while they run. See `launch`."""
    job_file, events = folder / "job.json", folder / "events.jsonl"
    job.write(job_file)
    events.touch()
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
        with open(events) as stream:
            while process.poll() is None:
                _pass_on(stream.readlines(), report)
                time.sleep(_POLL_S)
            _pass_on(stream.readlines(), report)
    finally:
        process.terminate()
        process.wait()
    if process.returncode:
        _fail(folder, process.returncode)
    return Outcome(**json.loads((folder / "outcome.json").read_text()))


def _ask_for_signal() -> None:
    """Have Linux send this process SIGTERM when its parent is gone; torch's launcher then ends the ranks."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _pass_on(lines: list[str], report: Report) -> None:
    for line in lines:
        event = json.loads(line)
        if event["event"] == "ready":
            report.ready()
        else:
            report.log_curve(event["metrics"], event["x"])


def _fail(folder: Path, code: int) -> None:
    """Raise what the first rank to fail said; the others only lost their peer."""
    reports = sorted(folder.glob("error-*.json"), key=lambda path: path.stat().st_mtime_ns)
    if not reports:
        raise RuntimeError(
            f"a rank of the update was killed (exit code {code}); out of memory is the usual reason. "
            "Lower policy_update.ppo_max_token_len_per_gpu or set policy_update.gradient_checkpointing=true."
        )
    messages = [json.loads(path.read_text()) for path in reports]
    known = [message for message in messages if message["known"]]
    if known:
        raise UserError(known[0]["text"])
    raise RuntimeError(f"rank {messages[0]['rank']} of the update failed:\n{messages[0]['text']}")
