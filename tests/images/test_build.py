"""images/build.sh against a stand-in for docker, and the locks that an image is built from."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from components.core.images import NAMES

ROOT = Path(__file__).parents[2]
DOCKER = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$1 $2" in
  "build "*) [ -z "$BROKEN" ] || exit 1;;
  "image inspect") name=${5%:*}; printf 'other.example/x@sha256:1\\n%s@sha256:%064d\\n' "$name" 7;;
esac
"""


def build(folder: Path, **settings: str) -> tuple[int, list[str], Path]:
    """Run the script; its exit status, docker's command lines, and the file that it writes."""
    (folder / "docker").write_text(DOCKER)
    (folder / "docker").chmod(0o755)
    output, calls = folder / "out" / "images.env", folder / "calls"
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(calls), "OUTPUT": str(output)}
    done = subprocess.run(
        ["images/build.sh"], cwd=ROOT, env={**environment, **settings}, capture_output=True, text=True
    )
    return done.returncode, calls.read_text().splitlines() if calls.exists() else [], output


def test_images_that_were_pushed_are_named_by_their_digest(tmp_path: Path) -> None:
    status, calls, output = build(tmp_path, REGISTRY="registry.example/team", TAG="9", PUSH="1", VARIANT="gpu")
    assert status == 0
    assert output.read_text().splitlines() == [
        f"DEEPCODER_IMAGE_{name.upper()}=registry.example/team/{name}@sha256:{7:064d}" for name in NAMES
    ]
    assert [call for call in calls if call.startswith("push")] == [
        f"push registry.example/team/{name}:9" for name in NAMES
    ]


def test_images_that_were_not_pushed_are_named_by_tag_and_get_the_asked_variant_and_base(tmp_path: Path) -> None:
    status, calls, output = build(tmp_path, VARIANT="cpu", BASE="base.example/python:3.11")
    assert status == 0
    assert output.read_text() == "".join(f"DEEPCODER_IMAGE_{name.upper()}=deepcoder/{name}:0.1.0\n" for name in NAMES)
    assert len(calls) == len(NAMES)
    for name, call in zip(NAMES, calls, strict=True):
        for argument in (f"IMAGE={name}", "VARIANT=cpu", "BASE=base.example/python:3.11"):
            assert f"--build-arg {argument} " in call


def test_a_build_that_fails_leaves_no_file_of_names(tmp_path: Path) -> None:
    status, calls, output = build(tmp_path, BROKEN="1")
    assert status == 1
    assert len(calls) == 1
    assert not output.exists()


def test_an_unknown_variant_is_refused(tmp_path: Path) -> None:
    status, calls, _ = build(tmp_path, VARIANT="tpu")
    assert (status, calls) == (2, [])


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+?)(?: |$)", path.read_text(), re.M))


@pytest.mark.parametrize("variant", ["gpu", "cpu"])
@pytest.mark.parametrize("name", NAMES)
def test_a_lock_is_hashed_throughout_and_has_the_versions_that_the_tests_run_with(name: str, variant: str) -> None:
    folder = ROOT / "images" / name
    lock = folder / f"requirements-{variant}.txt"
    locked = pins(lock)
    assert {"kfp", "pyarrow", "pydantic", "mlflow-skinny", "boto3"} <= set(locked)
    entries = [entry for entry in re.split(r"\n(?=\S)", lock.read_text()) if not entry.startswith("#")]
    assert len(entries) == len(locked)
    assert all("--hash=sha256:" in entry for entry in entries)
    ours = {key.lower().replace("_", "-"): value for key, value in pins(ROOT / "requirements.txt").items()}
    ours |= pins(ROOT / "requirements-no-deps.txt")
    different = {key: (value, ours[key]) for key, value in locked.items() if key in ours and ours[key] != value}
    assert different == {}
    torch = "torch" in locked or (variant == "cpu" and (folder / "torch-cpu.txt").exists())
    assert torch == (name in ("rollout", "trainer") or (name, variant) == ("data", "cpu"))


def test_every_step_finds_what_it_imports_in_the_lock_of_its_image() -> None:
    wrappers = {path.parent.name: path.read_text() for path in ROOT.glob("components/*/component.py")}
    used = {step: set(re.findall(r'image\("(\w+)"\)', text)) for step, text in wrappers.items()}
    assert all(len(names) == 1 for names in used.values())
    names = {"yaml": "pyyaml", "jinja2": "jinja2", "mlflow": "mlflow-skinny", "vllm": "vllm"}
    for step, images in used.items():
        locked = set(pins(ROOT / "images" / images.pop() / "requirements-gpu.txt"))
        for path in (ROOT / "components" / step).rglob("*.py"):
            for module in re.findall(r"^(?:import|from) ([a-z_0-9]+)", path.read_text(), re.M):
                if module in {"components", "sandbox"} or module in __import__("sys").stdlib_module_names:
                    continue
                package = names.get(module, module.replace("_", "-"))
                assert package in locked, f"{path}: {module} is not in the image's lock"


def test_an_image_is_given_only_what_it_holds() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*"
    assert [line for line in ignored if line.startswith("!")] == ["!components", "!sandbox", "!images", "!data/demo"]
