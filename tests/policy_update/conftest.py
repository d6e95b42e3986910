from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("DS_ACCELERATOR", "cpu")  # before transformers imports DeepSpeed

from tests.policy_update.helpers import Curves, World


@pytest.fixture
def curves(monkeypatch: pytest.MonkeyPatch) -> Curves:
    made = Curves()
    monkeypatch.setattr("components.core.tracking.Tracking", made)
    return made


@pytest.fixture
def world(tmp_path: Path, curves: Curves, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of small files; a busy disk takes minutes
    return World(tmp_path, curves)
