"""The trainjob launcher with real ranks: torch's launcher in each pod, ZeRO-3 partitions over gloo."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.policy_update.helpers import Curves, World, make_samples
from tests.trainjob.fake_cluster import FakeCluster, Node

ROOT = Path(__file__).parents[2]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    curves = Curves()
    monkeypatch.setattr("components.core.tracking.Tracking", curves)
    return World(tmp_path, curves)


def torchrun(node: Node) -> int:
    """The pod's real command; all nodes have this machine's address."""
    environment = {entry["name"]: entry["value"] for entry in node.container["env"] if "value" in entry}
    environment |= {"PET_MASTER_ADDR": "127.0.0.1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [*node.container["command"], *node.container["args"]]
    return subprocess.run(command, env={**os.environ, **environment}, cwd=node.folder).returncode


@pytest.mark.long
def test_two_nodes_train_as_one_process_does(
    start: Callable[..., FakeCluster], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = start(torchrun)
    settings: dict[str, Any] = {"ppo_mini_batch_size": 2, "batch_size": 4, "ppo_max_token_len_per_gpu": 60}
    weights = []
    for launcher, nodes in (("inprocess", 1), ("trainjob", 2)):
        config = world.config(run_name=launcher, launcher=launcher, nodes=nodes, **settings)
        first = world.update(config, make_samples())
        # The second goes on with the optimizer state of the first, of both nodes.
        weights.append(world.weights(world.update(config, make_samples(seed=1), policy=first, iteration=1)))
    alone, together = weights
    for name, tensor in together.items():
        torch.testing.assert_close(tensor, alone[name], atol=1e-4, rtol=0)
    assert [job["spec"]["trainer"]["numNodes"] for job in cluster.created] == [2, 2]
