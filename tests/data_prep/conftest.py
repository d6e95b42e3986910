from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import components.core.tracking


class QuietTracking:
    """Stands in for MLflow, the database of which takes seconds to make."""

    parent_id = "parent"
    artifacts: list[str]

    def __init__(self, _config: Any) -> None:
        QuietTracking.artifacts = []

    def nested(self, _step: str) -> str:
        return "nested"

    def log(self, _run: str, metrics: dict[str, float], _step: int) -> None:
        assert all(isinstance(value, int | float) for value in metrics.values())

    def artifact(self, _run: str, path: Path, _folder: str | None = None) -> None:
        QuietTracking.artifacts.append(path.name)

    def end(self, _run: str, _status: str) -> None:
        pass


@pytest.fixture(autouse=True)
def quiet_tracking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[QuietTracking]:
    if "real_tracking" not in request.fixturenames:
        monkeypatch.setattr(components.core.tracking, "Tracking", QuietTracking)
    return QuietTracking


@pytest.fixture
def real_tracking() -> None:
    """Ask for it to run against MLflow itself."""
