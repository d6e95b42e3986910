from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("DS_ACCELERATOR", "cpu")  # before transformers imports DeepSpeed

from components.core.config import Config
from components.core.policy import ensure_base_policy
from components.core.store import open_store
from pipelines.compile import load_profile
from tests.policy_update.helpers import Curves
from tests.rollout.scripted import World

Configure = Callable[..., Config]


class Untracked(Curves):
    """Stands for MLflow, files included."""

    def artifact(self, run_id: str, path: Path) -> None:
        pass


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The HF directory of the micro profile's random policy."""
    store = open_store(str(tmp_path_factory.mktemp("store")))
    _, config = load_profile("micro", [f"store={store.root}"])
    return store.fetch(ensure_base_policy(config, store)) / "hf"


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """The micro profile with overrides; nothing reaches MLflow or waits for the disk."""
    monkeypatch.setattr("components.core.tracking.Tracking", Untracked())
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    common = [
        f"store={tmp_path / 'store'}",
        "rollout.shards=1",
        "rollout.n=2",
        "rollout.threads=1",
        "batch_size=4",
        "policy_update.ppo_mini_batch_size=4",
        "reward.workers=1",
    ]

    def make(*overrides: str) -> Config:
        return load_profile("micro", [*common, *overrides])[1]

    return make


@pytest.fixture
def world(configure: Configure) -> World:
    return World(configure())
