from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
KUBECTL = Path(sys.executable).parent / "kubectl"


@cache
def _render(folder: str) -> list[dict[str, Any]]:
    command = [str(KUBECTL), "kustomize", str(ROOT / "manifests" / folder)]
    rendered = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(yaml.safe_load_all(rendered))


@pytest.fixture
def render() -> Callable[[str], list[dict[str, Any]]]:
    """The objects of a folder below manifests/, by kubectl's own kustomize."""
    return _render
