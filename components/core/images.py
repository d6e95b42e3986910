"""The container image of each step, pinned by the environment when the pipeline is compiled."""

from __future__ import annotations

import os
import re
from pathlib import Path

from components.core.errors import UserError

VERSION = "0.1.0"
NAMES = ("data", "rollout", "sandbox", "trainer")


def image(name: str) -> str:
    """The image of `data`, `rollout`, `sandbox` or `trainer`: DEEPCODER_IMAGE_<NAME>, else the tag of this version."""
    return os.environ.get(f"DEEPCODER_IMAGE_{name.upper()}", f"deepcoder/{name}:{VERSION}")


def use_images(path: Path) -> None:
    """Put the names that `make images` wrote into the environment; call it before a step's component is imported.

    Raises:
        UserError: the file is absent, or does not name each image once.
    """
    try:
        lines = [line.partition("=") for line in path.read_text().split()]
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error}); `make images` writes it") from error
    wanted = [f"DEEPCODER_IMAGE_{name.upper()}" for name in NAMES]
    if sorted(key for key, _, value in lines if value) != sorted(wanted):
        raise UserError(f"{path}: one line NAME=image is needed for each of {', '.join(wanted)}; `make images` does so")
    os.environ.update({key: value for key, _, value in lines})


def unpinned() -> list[str]:
    """The images that are not named by digest: what such a name means may change between two runs."""
    return [image(name) for name in NAMES if not re.search(r"@sha256:[0-9a-f]{64}$", image(name))]
