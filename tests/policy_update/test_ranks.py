"""Several processes: real ZeRO-3 partitions over gloo, and a real kill."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import Tensor

from components.core.config import Config
from components.core.errors import UserError
from components.core.store import Pointer
from tests.policy_update.helpers import World, make_samples, save_policy, save_rewards, tiny_model

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


COMPARED = ("actor/grad_norm", "actor/pg_loss", "actor/entropy", "actor/ppo_kl", "sampling/mismatch_k3_kl")


def same_training(weights: list[dict[str, Tensor]], points: list[list[dict[str, float]]]) -> None:
    for expected, point in zip(*points, strict=True):
        for name in COMPARED:
            assert point[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-6), name
    one, other = weights
    for name, tensor in one.items():
        torch.testing.assert_close(other[name], tensor, atol=1e-4, rtol=0)


def test_two_ranks_train_as_one_does(world: World) -> None:
    settings: dict[str, Any] = {"ppo_mini_batch_size": 2, "batch_size": 4, "ppo_max_token_len_per_gpu": 60}
    results: list[list[Pointer]] = []
    for ranks, launcher in ((1, "inprocess"), (2, "deepspeed")):
        config = world.config(run_name=f"ranks-{ranks}", ranks=ranks, launcher=launcher, **settings)
        first = world.update(config, make_samples())
        # One problem is one row: the second rank has nothing but a dummy, yet must not hang. Its state goes on, too.
        second = world.update(config, make_samples(problems=1, seed=1), policy=first, iteration=1)
        results.append([first, second])
    points = [point for _, point in world.curves.points]
    assert len(points) == 6
    for number, (one, two) in enumerate(zip(*results, strict=True)):
        part = slice(0, 2) if number == 0 else slice(2, 3)
        same_training([world.weights(one), world.weights(two)], [points[:3][part], points[3:][part]])


def test_two_ranks_with_a_value_model_and_a_reference_train_as_one_does(world: World) -> None:
    settings: dict[str, Any] = {"ppo_mini_batch_size": 2, "batch_size": 4, "ppo_max_token_len_per_gpu": 60}
    settings |= {"adv_estimator": "gae", "critic": {"lr": 1e-2}, "loss_mode": "gspo", "entropy_coeff": 0.01}
    settings |= {"use_kl_loss": True, "use_kl_in_reward": True, "loss_agg_mode": "seq-mean-token-mean"}
    initial = save_policy(world.store, tiny_model(seed=1), "initial")
    policy = replace(world.base, extra={**world.base.extra, "reference": asdict(initial)})
    # The second mini-batch is one problem, one row: the second rank has nothing but a dummy, for every model.
    one, *others = [
        world.update(world.config(run_name=name, **settings, **more), make_samples(problems=3), policy=policy)
        for name, more in (
            ("one", {}),
            ("two", {"ranks": 2, "launcher": "deepspeed"}),
            ("shared", {"ranks": 2, "launcher": "deepspeed", "ulysses_sequence_parallel_size": 2}),
        )
    ]
    points = [point for _, point in world.curves.points]
    assert len(points) == 6
    assert points[0]["actor/kl_loss"] > 1e-3
    assert abs(points[1]["critic/reward_kl_penalty"]) > 1e-3
    for number, other in enumerate(others, 1):
        theirs = points[2 * number : 2 * number + 2]
        for expected, point in zip(points[:2], theirs, strict=True):
            for key in ("critic/vf_loss", "critic/grad_norm", "actor/kl_loss", "actor/loss", "critic/advantages/max"):
                assert point[key] == pytest.approx(expected[key], rel=1e-3, abs=1e-6), key
        same_training([world.weights(one), world.weights(other)], [points[:2], theirs])


@pytest.mark.parametrize(("ranks", "size"), [(2, 2), pytest.param(4, 2, marks=pytest.mark.long)])
def test_ranks_that_share_their_sequences_train_as_one_does(world: World, ranks: int, size: int) -> None:
    # 7 tokens a rank: prompts and answers are cut in the middle, and micro-batches are padded to even lengths.
    settings: dict[str, Any] = {"ppo_mini_batch_size": 2, "batch_size": 4, "ppo_max_token_len_per_gpu": 7}
    one = world.update(world.config(run_name="one", **settings), make_samples())
    settings |= {"ranks": ranks, "launcher": "deepspeed", "ulysses_sequence_parallel_size": size}
    shared = world.update(world.config(run_name="shared", **settings), make_samples())
    points = [point for _, point in world.curves.points]
    assert len(points) == 4
    same_training([world.weights(one), world.weights(shared)], [points[:2], points[2:]])


@pytest.mark.parametrize(
    ("before", "after", "settings"),
    [(2, 1, {}), (1, 2, {"train_last_layers": 1, "adv_estimator": "gae", "critic": {"lr": 1e-2}})],
)
def test_training_goes_on_with_another_number_of_ranks(
    world: World, before: int, after: int, settings: dict[str, Any]
) -> None:
    def config(ranks: int) -> Config:
        return world.config(ranks=ranks, launcher="inprocess" if ranks == 1 else "deepspeed", **settings)

    def second_step(ranks: int) -> dict[str, Tensor]:
        pointer = world.update(config(ranks), later, policy=first, iteration=1)
        weights = world.weights(pointer)
        if "critic" in pointer.extra:
            weights |= {f"critic.{name}": tensor for name, tensor in world.critic(pointer).items()}
        world.store.delete("runs/run/stage-1/iter-01/policy")
        return weights

    first, later = world.update(config(before), make_samples()), make_samples(seed=1)
    same, other = second_step(before), second_step(after)
    points = [point for _, point in world.curves.points]
    same_training([same, other], [points[1:2], points[2:3]])
    # Without the moments the step would be another one.
    world.store.delete("runs/run/stage-1/iter-00/optimizer")
    fresh = second_step(1)
    assert max((tensor - fresh[name]).abs().max() for name, tensor in other.items()) > 1e-3


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
from components.policy_update.actor import Actor
from components.policy_update.update import run

step, done = Actor._step, []
def counting(self, *args, **kwargs):
    if len(done) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(1)
    return step(self, *args, **kwargs)
Actor._step = counting
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
    scratch = Path(world.store.root) / ".scratch"
    assert any(scratch.rglob("*"))

    again = world.update(config, later, policy=first, iteration=1)
    assert not any(scratch.iterdir())  # what the killed one left is gone too
    want = world.weights(expected)
    assert all(torch.equal(tensor, want[name]) for name, tensor in world.weights(again).items())


KILLED_WITH_RANKS = """
import os, signal, sys
import components.core.tracking
from tests.policy_update.helpers import Curves

class Killing(Curves):
    def log(self, run_id, metrics, step):
        if step == 2:
            os.kill(os.getpid(), signal.SIGKILL)

components.core.tracking.Tracking = Killing()
from components.core.config import read_config
from components.core.store import Pointer
from components.policy_update.update import run

config, policy, rewards = sys.argv[1:]
run(config=read_config(config), policy=Pointer.read(policy), rewards=[Pointer.read(rewards)], stage=1, iteration=0,
    output=policy + ".out")
"""


def test_a_killed_step_takes_its_ranks_along_and_started_again_gives_the_same_bytes(
    world: World, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"ppo_mini_batch_size": 1, "batch_size": 4, "ranks": 2, "launcher": "deepspeed"}
    samples = make_samples()
    expected = world.update(world.config(run_name="whole", **settings), samples)

    config = world.config(run_name="killed", **settings)
    (rewards,) = save_rewards(world.store, config, samples)
    (tmp_path / "config.json").write_text(config.model_dump_json())
    world.base.write(tmp_path / "policy.json")
    rewards.write(tmp_path / "rewards.json")
    arguments = [str(tmp_path / name) for name in ("config.json", "policy.json", "rewards.json")]
    killed = subprocess.run([sys.executable, "-c", KILLED_WITH_RANKS, *arguments], cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while ranks_of(world) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not ranks_of(world)
    assert world.store.complete("runs/killed/stage-1/iter-00/policy") is None

    again = world.update(config, samples)
    want = world.weights(expected)
    assert all(torch.equal(tensor, want[name]) for name, tensor in world.weights(again).items())


def ranks_of(world: World) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any(str(world.folder) in word and word.endswith("job.json") for word in process.info["cmdline"] or [])
    ]
