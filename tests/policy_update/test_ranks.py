"""Several processes: real ZeRO-3 partitions over gloo, and a real kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from components.core.errors import UserError
from components.core.store import Pointer
from tests.policy_update.helpers import World, make_samples, save_rewards

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


def test_two_ranks_train_as_one_does(world: World) -> None:
    settings: dict[str, Any] = {"ppo_mini_batch_size": 2, "batch_size": 4, "ppo_max_token_len_per_gpu": 60}
    results: list[Pointer] = []
    for ranks, launcher in ((1, "inprocess"), (2, "deepspeed")):
        config = world.config(run_name=f"ranks-{ranks}", ranks=ranks, launcher=launcher, **settings)
        first = world.update(config, make_samples())
        # One problem is one row: the second rank has nothing but a dummy, yet must not hang. Its state goes on, too.
        second = world.update(config, make_samples(problems=1, seed=1), policy=first, iteration=1)
        results += [first, second]
    points = [point for _, point in world.curves.points]
    assert len(points) == 6
    for one, two in zip(points[:3], points[3:], strict=True):
        for name in ("actor/grad_norm", "actor/pg_loss", "actor/entropy", "actor/ppo_kl", "sampling/mismatch_k3_kl"):
            assert two[name] == pytest.approx(one[name], rel=1e-4, abs=1e-6), name
    for alone, together in zip(results[:2], results[2:], strict=True):
        expected = world.weights(alone)
        for name, tensor in world.weights(together).items():
            torch.testing.assert_close(tensor, expected[name], atol=1e-4, rtol=0)


def test_a_rank_that_fails_fails_the_step_with_its_message(world: World) -> None:
    samples = make_samples()
    samples[2] = replace(samples[2], response_ids=[5, 6, 7], rollout_logprobs=[-1.0])
    with pytest.raises(UserError, match="problem p0, sample 2: 1 log-probs for 3 response tokens"):
        world.update(world.config(ranks=2, launcher="deepspeed"), samples)


KILLED_AFTER_TWO_STEPS = """
import os, signal, sys
from pathlib import Path
import components.core.tracking
from tests.policy_update.helpers import Curves
components.core.tracking.Tracking = Curves()
from components.core.config import read_config
from components.core.store import Pointer
from components.policy_update.train import Update
from components.policy_update.update import run

step, done = Update._step, []
def counting(self, *args, **kwargs):
    if len(done) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(1)
    return step(self, *args, **kwargs)
Update._step = counting
config, policy, rewards = sys.argv[1:]
run(config=read_config(config), policy=Pointer.read(policy), rewards=[Pointer.read(rewards)], stage=1, iteration=1,
    output=policy + ".out")
"""


def test_killed_within_an_update_and_started_again_gives_the_same_bytes(world: World, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ppo_mini_batch_size": 1, "batch_size": 4}
    samples, later = make_samples(), make_samples(seed=1)
    whole = world.config(run_name="whole", **settings)
    expected = world.update(whole, later, policy=world.update(whole, samples), iteration=1)

    config = world.config(run_name="killed", **settings)
    first = world.update(config, samples)
    (rewards,) = save_rewards(world.store, config, later, iteration=1)
    (tmp_path / "config.json").write_text(config.model_dump_json())
    first.write(tmp_path / "policy.json")
    rewards.write(tmp_path / "rewards.json")
    arguments = [str(tmp_path / name) for name in ("config.json", "policy.json", "rewards.json")]
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER_TWO_STEPS, *arguments], cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    assert world.store.complete("runs/killed/stage-1/iter-01/policy") is None

    again = world.update(config, later, policy=first, iteration=1)
    want = world.weights(expected)
    assert all(torch.equal(tensor, want[name]) for name, tensor in world.weights(again).items())
