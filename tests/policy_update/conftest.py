from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

os.environ.setdefault("DS_ACCELERATOR", "cpu")  # before transformers imports DeepSpeed

from tests.policy_update.helpers import Curves, World

README = (Path(__file__).parents[2] / "components/policy_update/README.md").read_text()


@pytest.fixture
def readme() -> str:
    return README


@pytest.fixture
def readmes_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's own advantage and loss can be imported."""
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", README, re.DOTALL):
        (tmp_path / name).write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.fixture
def curves(monkeypatch: pytest.MonkeyPatch) -> Curves:
    made = Curves()
    monkeypatch.setattr("components.core.tracking.Tracking", made)
    return made


@pytest.fixture
def world(tmp_path: Path, curves: Curves, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of small files; a busy disk takes minutes
    return World(tmp_path, curves)
