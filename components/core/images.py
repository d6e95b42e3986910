"""The container image of each step, pinned by the environment when the pipeline is compiled."""

from __future__ import annotations

import os

VERSION = "0.1.0"


def image(name: str) -> str:
    """The image of `data`, `rollout`, `sandbox` or `trainer`: DEEPCODER_IMAGE_<NAME>, else the tag of this version."""
    return os.environ.get(f"DEEPCODER_IMAGE_{name.upper()}", f"deepcoder/{name}:{VERSION}")
