"""What of a run goes on at the same time, where the runner starts each task as soon as it may."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kfp.local.orchestrator import enhanced_dag_orchestrator

from pipelines.compile import local_profile
from pipelines.local import run_local
from tests.pipelines import side_by_side
from tests.small_run import FEW_PROBLEMS

ROOT = Path(__file__).parents[2]

SMALL = [
    "stages=[{name: '16', max_response_length: 16, iterations: 3}]",
    "data.max_train_problems=8",
    *FEW_PROBLEMS,
    "evaluation.mode=single",
]


@pytest.mark.long
def test_generation_overlaps_the_update_and_rewards_overlap_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enhanced_dag_orchestrator, "run_enhanced_dag", side_by_side.run_dag)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    run = tmp_path / "store/runs/overlap"
    mode = ["rollout.mode=tests.pipelines.first_rewarded:first_rewarded", f"rollout.mode_options={{run: {run}}}"]
    values, config = local_profile(
        "micro", [f"store={tmp_path / 'store'}", "run_name=overlap", "staleness=1", *SMALL, *mode]
    )
    # That it ends shows that a shard was graded while others were generating: they waited for that.
    run_local(values, config, "subprocess")
    assert (run / "first").exists()

    def period(step: str) -> tuple[float, float]:
        """From the start of the step's process to its output."""
        marker = run / "stage-1" / step / "_COMPLETE"
        end = marker.stat().st_mtime
        return end - json.loads(marker.read_text())["extra"]["metrics"]["timing_s/total"], end

    update = period("iter-01/policy")
    for shard in (0, 1):
        rollout = period(f"iter-02/rollout/shard-{shard:02d}")
        # It answers with the policy of the first update, and so starts with the second, not after it.
        assert rollout[0] > period("iter-00/policy")[1]
        assert rollout[0] < update[1]
        assert update[0] < rollout[1]
    stale = [json.loads((run / f"stage-1/iter-{k:02d}/policy/_COMPLETE").read_text()) for k in range(3)]
    assert [one["extra"]["metrics"]["sampling/stale_share"] for one in stale] == [0.0, 1.0, 1.0]
