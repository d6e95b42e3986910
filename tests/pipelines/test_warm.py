"""Steps of a local run as forks of a warm process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PIPELINE = """
import multiprocessing, os, sys, time
from itertools import count
from pathlib import Path
from threading import Thread
from kfp import dsl, local
from pipelines import warm

@dsl.component(install_kfp_package=False)
def step(folder: str, how: str):
    import atexit, os, signal, time
    from pathlib import Path

    import mine  # from the folder that the run was started in

    atexit.register((Path(folder) / "cleaned up").touch)
    print("said by the step", os.environ["GIVEN"], flush=True)
    (Path(folder) / how).write_text(str(os.getpid()))
    if how == "raises":
        raise ValueError("wrong on purpose")
    if how == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "hangs":
        time.sleep(600)

if __name__ == "__main__":
    warm._LIBRARIES[1:] = []
    # As a thread does that starts another step meanwhile: ask after every process, and take the code of one that ended.
    Thread(target=lambda: all(multiprocessing.active_children() is not None for _ in count()), daemon=True).start()
    folder, how = sys.argv[1:]
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=folder + "/kfp", raise_on_error=True)
    with warm.warm_steps() as peaks:
        step(folder=folder, how=how)
    print("peaks", len(peaks), min(peaks) > 1000)
"""


def _start(folder: Path, how: str) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(PIPELINE)
    (folder / "here").mkdir()
    (folder / "here/mine.py").touch()
    return subprocess.Popen(
        [sys.executable, str(script), str(folder), how],
        cwd=folder / "here",
        env={**os.environ, "GIVEN": "by the run", "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [("ends", 0, "peaks 1 True"), ("raises", 1, "wrong on purpose"), ("is killed", 1, "FAILURE")],
)
def test_a_steps_output_and_outcome_are_those_of_a_process_of_its_own(
    tmp_path: Path, how: str, status: int, said: str
) -> None:
    output, _ = _start(tmp_path, how).communicate(timeout=60)
    assert "said by the step by the run" in output
    assert said in output
    assert ("Traceback" in output) == (status == 1), output
    assert (tmp_path / "cleaned up").exists() == (how != "is killed")


def test_a_run_that_is_killed_takes_its_step_along(tmp_path: Path) -> None:
    run = _start(tmp_path, "hangs")
    while not (tmp_path / "hangs").exists() or not (tmp_path / "hangs").read_text():
        assert run.poll() is None, run.communicate()
        time.sleep(0.05)
    step = psutil.Process(int((tmp_path / "hangs").read_text()))
    run.send_signal(signal.SIGKILL)
    run.wait()
    step.wait(timeout=10)
