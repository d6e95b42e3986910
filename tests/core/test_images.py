import os
from pathlib import Path

import pytest

from components.core.errors import UserError
from components.core.images import NAMES, image, unpinned, use_images


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())


def test_the_file_that_make_images_writes_pins_every_image(tmp_path: Path) -> None:
    assert unpinned()
    pinned = {name: f"registry.example/{name}@sha256:{'0' * 63}{index}" for index, name in enumerate(NAMES)}
    path = tmp_path / "images.env"
    path.write_text("".join(f"DEEPCODER_IMAGE_{name.upper()}={value}\n" for name, value in pinned.items()))
    use_images(path)
    assert {name: image(name) for name in NAMES} == pinned
    assert unpinned() == []


@pytest.mark.parametrize("text", ["", "DEEPCODER_IMAGE_DATA=a", "DEEPCODER_IMAGE_DATA=\n" * 4])
def test_a_file_that_does_not_name_each_image_once_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "images.env").write_text(text)
    with pytest.raises(UserError, match="one line NAME=image is needed for each of DEEPCODER_IMAGE_DATA"):
        use_images(tmp_path / "images.env")
