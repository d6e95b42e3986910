"""Starts the steps of a local run as forks of one process that has imported their libraries already.

Importing torch, transformers, DeepSpeed and MLflow takes most steps of a small run longer than their work.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import resource
import runpy
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread

from kfp.dsl.component_factory import EXECUTOR_MODULE
from kfp.local import status, subprocess_task_handler

from components.core.step import STARTED

_LIBRARIES = [
    EXECUTOR_MODULE,
    "deepspeed",
    "mlflow.store.tracking.sqlalchemy_store",
    "mlflow.tracking",
    "pyarrow.parquet",
    "transformers.models.auto.modeling_auto",
    "transformers.models.llama.modeling_llama",
]


@contextmanager
def warm_steps() -> Iterator[list[int]]:
    """While this is open, SubprocessRunner's tasks are forks of a process that has imported the libraries.

    Yields:
        A list that grows by the peak memory of each finished step, in KB.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LIBRARIES)
    peaks: list[int] = []

    class Handler(subprocess_task_handler.SubprocessTaskHandler):
        def run(self) -> status.Status:
            environment = {**os.environ, **self.env_vars, STARTED: str(time.time()), "_KFP_RUNTIME": "true"}
            _shell, _options, _script, source, *arguments = self.full_command
            output, into_output = context.Pipe(duplex=False)
            peak, into_peak = context.Pipe(duplex=False)
            step = context.Process(target=_run, args=[source, arguments, environment, into_output, into_peak])
            step.start()
            into_output.close()
            into_peak.close()
            with output, open(output.fileno(), errors="replace", closefd=False) as lines:
                for line in lines:
                    print(line, end="")
            step.join()
            # Not the exit code: two shards run at once, and a thread that starts a process looks after all others, so
            # that it may take the code of one that has just ended, which this thread then reads as 255.
            try:
                with peak:
                    peaks.append(peak.recv())
            except EOFError:
                return status.Status.FAILURE
            return status.Status.SUCCESS

    plain = subprocess_task_handler.SubprocessTaskHandler
    subprocess_task_handler.SubprocessTaskHandler = Handler
    try:
        yield peaks
    finally:
        subprocess_task_handler.SubprocessTaskHandler = plain


def _run(source: str, arguments: list[str], environment: dict[str, str], output: Connection, peak: Connection) -> None:
    """What the command of a lightweight component does, in this process."""
    Thread(target=_end_with_the_run, daemon=True).start()
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    output.close()
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, os.getcwd())  # as `python -m` does: a user's own function may lie there
    with tempfile.TemporaryDirectory(prefix="deepcoder-") as folder:
        path = Path(folder) / "ephemeral_component.py"
        path.write_text(source)
        sys.argv = [EXECUTOR_MODULE, "--component_module_path", str(path), *arguments]
        try:
            runpy.run_module(EXECUTOR_MODULE, run_name="__main__", alter_sys=True)
        finally:
            atexit._run_exitfuncs()  # which multiprocessing leaves out; what was downloaded from S3 goes there
    sys.stdout.flush()
    mine, of_children = (
        resource.getrusage(whose).ru_maxrss for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    peak.send(max(mine, of_children))  # the last act: it says that the step has succeeded


def _end_with_the_run() -> None:
    run = multiprocessing.parent_process()
    assert run is not None
    run.join()
    os.kill(os.getpid(), signal.SIGKILL)
