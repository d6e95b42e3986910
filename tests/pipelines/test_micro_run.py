"""The whole pipeline, as `make run` runs it, with a policy of a few thousand weights."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from components.core.store import LocalStore, Pointer
from pipelines.compile import local_profile
from pipelines.local import finished

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def deepcoder(store: Path) -> list[str]:
    return [sys.executable, "-m", "pipelines.cli", "run", "--profile", "micro", f"store={store}"]


def test_a_run_that_is_killed_goes_on_where_it_stopped_and_a_finished_one_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    monkeypatch.chdir(ROOT)
    _, config = local_profile("micro", [f"store={store}"])
    run = store / "runs" / config.run
    first = subprocess.Popen(deepcoder(store), cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL)
    waiting = run / "stage-1/iter-00/policy/_KEY"
    deadline = time.monotonic() + 400
    while not waiting.exists() and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(first.pid, signal.SIGKILL)  # in the middle of the first policy update
    first.wait()
    assert waiting.exists()
    assert not (run / "report/_COMPLETE").exists()
    done = {path: path.stat().st_mtime_ns for path in run.rglob("_COMPLETE")}
    assert any("reward" in str(path) for path in done)

    second = subprocess.run(deepcoder(store), cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert second.returncode == 0, second.stdout[-3000:] + second.stderr[-3000:]
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert "stage-1/iter-00/reward/shard-00: complete already" in second.stdout

    root = LocalStore(str(store))
    policies = [root.complete(f"runs/{config.run}/stage-{stage}/iter-00/policy") for stage in (1, 2)]
    rewards = [mean_reward(root, f"runs/{config.run}/stage-{stage}/iter-00") for stage in (1, 2)]
    assert [policy.extra["global_step"] for policy in policies if policy] == [2, 4]
    assert rewards[1] > rewards[0]
    summary = json.loads((run / "report/summary.json").read_text())
    assert [one["label"] for one in summary["policies"]] == ["base", "stage-1", "stage-2"]

    third = subprocess.run(deepcoder(store), cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert third.returncode == 0
    assert "complete already; nothing to do" in third.stdout
    _, other = local_profile("micro", [f"store={store}", f"run_name={config.run}", "evaluation.n=3"])
    assert not finished(other, root)  # the same name does not make it the same run


def mean_reward(store: LocalStore, iteration: str) -> float:
    pointers = [store.complete(f"{iteration}/reward/shard-{shard:02d}") for shard in (0, 1)]
    scored: list[Pointer] = [pointer for pointer in pointers if pointer is not None]
    assert len(scored) == 2
    total = sum(pointer.extra["metrics"]["reward/mean"] * pointer.rows for pointer in scored)
    return total / sum(pointer.rows for pointer in scored)
