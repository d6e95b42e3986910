from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.trainjob.fake_cluster import FakeCluster, Node
from tests.trainjob.step_in_cluster import step_pod, succeed


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeCluster]]:
    """Starts a cluster whose pods do what a function says, with the step's own pod in it."""
    made: list[FakeCluster] = []
    monkeypatch.setattr("components.policy_update.trainjob._POLL_S", 0.05)
    monkeypatch.setattr("components.policy_update.cluster._RETRY_S", 0.05)
    monkeypatch.setenv("KFP_POD_NAME", "run-update-1")

    def begin(run: Callable[[Node], int] = succeed) -> FakeCluster:
        cluster = FakeCluster(run)
        made.append(cluster)
        cluster.claims["deepcoder-store"] = {"spec": {"accessModes": ["ReadWriteMany"]}}
        cluster.add_pod(step_pod(tmp_path))
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(tmp_path / "kubeconfig")))
        return cluster

    yield begin
    for cluster in made:
        cluster.close()
