from pathlib import Path

import pytest

from components.core.images import NAMES, image
from pipelines.compile import compile_profile, load_profile

COMMITTED = Path(__file__).parents[2] / "pipelines" / "compiled"


@pytest.mark.parametrize("profile", ["demo", "smoke"])
def test_the_committed_pipeline_is_what_the_code_compiles_to(profile: str, tmp_path: Path) -> None:
    assert [image(name) for name in NAMES] == [f"deepcoder/{name}:0.1.0" for name in NAMES], "unset DEEPCODER_IMAGE_*"
    compile_profile(*load_profile(profile, []), tmp_path / "pipeline.yaml")
    same = (tmp_path / "pipeline.yaml").read_text() == (COMMITTED / f"{profile}.yaml").read_text()
    assert same, f"pipelines/compiled/{profile}.yaml is out of date: run `make compiled` and commit what it writes"
