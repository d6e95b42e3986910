"""SIGKILL to a process in the middle of a shard; what the next try makes of what is left."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from components.core.paths import iteration_path, shard_path
from tests.rollout.conftest import Configure
from tests.rollout.scripted import World

ROOT = Path(__file__).parents[2]

KILLED = """
import os, signal, sys
import components.core.tracking
from tests.rollout.conftest import Untracked
components.core.tracking.Tracking = Untracked()
from components.core.config import read_config
from components.rollout import journal
from components.rollout.transformers_engine import TransformersEngine
from tests.rollout.scripted import World

journal._ROWS = 1
whole, left = TransformersEngine.stream, int(sys.argv[2])

def stream(*arguments):
    global left
    for answer in whole(*arguments):
        yield answer
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

TransformersEngine.stream = stream
World(read_config(sys.argv[1])).rollout()
"""


def table(folder: Path) -> pa.Table:
    """A shard's rows, or those of a batch that is under way, without the time that each took."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]).drop_columns(
        ["seconds"]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "exact"), [("single", True), ("solver_judge", True), ("solver_judge", False)])
def test_after_a_kill_in_the_middle_of_a_shard_the_next_try_makes_the_same_rows(
    configure: Configure, mode: str, exact: bool, tmp_path: Path
) -> None:
    overrides = [f"rollout.mode={mode}", f"rollout.exact_resume={exact}", "rollout.chunk_prompts=2"]
    overrides += ["rollout.n=4", "context_length=2000", "run_name=r"]
    options = ["rollout.mode_options={candidates: 2}"] if mode != "single" else []
    undisturbed = World(configure(*overrides, *options, f"store={tmp_path / 'undisturbed'}"))
    expected = table(undisturbed.store.fetch(undisturbed.rollout()))

    config = configure(*overrides, *options)
    (tmp_path / "config.json").write_text(config.model_dump_json())
    turns = 1 if mode == "single" else 3
    # The first batch of 2 x 4 samples, and three samples of the second: the judges come after all candidates.
    answers = 8 * turns + 8 * (turns - 1) + 3
    command = [sys.executable, "-c", KILLED, str(tmp_path / "config.json"), str(answers)]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    shard = Path(config.store) / shard_path(iteration_path(config, 1, 0), "rollout", 0)
    left = sorted(path.relative_to(shard).as_posix() for path in shard.rglob("*.parquet"))
    rows = [] if exact else [f"partial/chunk-00001/rows-{number:06d}.parquet" for number in range(3)]
    assert left == ["chunk-00000.parquet", *rows]
    assert not (shard / "_COMPLETE").exists()
    kept = [table(shard), *([] if exact else [table(shard / "partial/chunk-00001")])]

    world = World(config)
    pointer = world.rollout()
    made = table(world.store.fetch(pointer))
    assert pointer.rows == len(made) == 4 * 4 * turns
    if exact:
        assert made.equals(expected)
        return
    # What had been written is there unchanged; what was missing was sampled in a smaller batch, to the last digits.
    place = [made["problem_id"].to_pylist(), made["sample_id"].to_pylist(), made["turn"].to_pylist()]
    number = {key: row for row, key in enumerate(zip(*place, strict=True))}
    for row in pa.concat_tables(kept).to_pylist():
        assert made.slice(number[row["problem_id"], row["sample_id"], row["turn"]], 1).to_pylist() == [row]
    assert made.drop_columns(["rollout_logprobs"]).equals(expected.drop_columns(["rollout_logprobs"]))
    logprobs = [pc.list_flatten(one["rollout_logprobs"]).to_numpy() for one in (made, expected)]
    assert logprobs[0] == pytest.approx(logprobs[1], abs=1e-5)
