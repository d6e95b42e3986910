"""Every hostile program is contained with its expected outcome: as this user, as a restricted pod, in a container."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
import pytest

import sandbox
from sandbox import Grader
from sandbox.docker_backend import ContainerSettings, grade_in_container
from tests.sandbox import hostile
from tests.sandbox.conftest import WORKERS

PACKAGE = Path(sandbox.__file__).parent
IMAGE = os.environ.get("SANDBOX_TEST_IMAGE", "python:3.11-slim-bookworm")
HARMLESS_BEFORE = 2

only_x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the raw system calls are x86_64 numbers")
pytestmark = only_x86_64


def _programs(after: int) -> list[dict[str, Any]]:
    kinds = hostile.ALL if after else [*hostile.ALL, *hostile.SOURCE]
    return [kind.program(after=after) for kind in kinds]


def _not_contained(verdicts: Iterable[dict[str, Any]], after: int) -> list[dict[str, Any]]:
    """Verdicts that are not the expected ones; `after` harmless tests must have passed in the same process."""
    kinds = {kind.name: kind for kind in [*hostile.ALL, *hostile.SOURCE]}
    wrong, seen = [], set()
    for verdict in verdicts:
        seen.add(verdict["id"])
        if verdict["verdict"] not in kinds[verdict["id"]].outcomes or verdict["passed"] < after:
            wrong.append(verdict)
    assert seen == {program["id"] for program in _programs(after)}
    return wrong


def _outside() -> dict[str, Any]:
    """What a candidate must not have changed."""
    me = psutil.Process()
    return {
        "files": sorted(p for folder in ("/tmp", "/dev/shm", "/") for p in os.listdir(folder) if "escape" in p),
        "zombies": [c.pid for c in me.children(recursive=True) if c.status() == psutil.STATUS_ZOMBIE],
        "children": len(me.children(recursive=True)),
    }


@pytest.mark.parametrize("after", [0, HARMLESS_BEFORE], ids=["alone", "streamed"])
def test_every_hostile_program_is_contained_and_leaves_nothing_behind(real: Grader, after: int) -> None:
    list(real.grade(_programs(after)[:2]))
    before = _outside()
    assert _not_contained(real.grade(_programs(after)), after) == []
    assert _outside() == before


def _foreign_python() -> str | None:
    """An interpreter that uid 65534 can run, with the standard library alone."""
    for candidate in ("/usr/bin/python3.11", "/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(candidate).exists():
            check = "import sys; sys.exit(sys.version_info < (3, 11))"
            if subprocess.run([candidate, "-S", "-c", check], check=False).returncode == 0:
                return candidate
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take uid 65534")
@pytest.mark.parametrize(
    "after", [pytest.param(0, id="alone", marks=pytest.mark.slow), pytest.param(HARMLESS_BEFORE, id="streamed")]
)
def test_a_restricted_pod_contains_every_hostile_program(tmp_path: Path, after: int) -> None:
    python = _foreign_python()
    if python is None:
        pytest.skip("no system Python 3.11 that another user may run")
    shutil.copytree(PACKAGE, tmp_path / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    pod = shutil.copy(Path(__file__).with_name("pod.py"), tmp_path)
    for folder in [tmp_path, *tmp_path.parents[:3]]:
        if folder.owner() == "root" and folder != Path("/") and folder != Path("/tmp"):
            folder.chmod(0o755)
    programs = "".join(json.dumps(program) + "\n" for program in _programs(after))
    command = [python, pod, python, "-B", "-m", "sandbox", "grade", "-", "-", "--workers", str(WORKERS)]
    done = subprocess.run(
        command, input=programs, capture_output=True, text=True, check=False, cwd=tmp_path, env={}, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert _not_contained(map(json.loads, done.stdout.splitlines()), after) == []


@pytest.fixture(scope="module")
def container() -> ContainerSettings:
    docker = pytest.importorskip("docker")
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as error:
        pytest.skip(f"no Docker engine: {error}")
    try:
        client.images.get(IMAGE)
    except docker.errors.ImageNotFound:
        pytest.skip(f"no image {IMAGE} here: set SANDBOX_TEST_IMAGE to one with Python 3.11")
    return ContainerSettings(IMAGE, mount_package=True)


@pytest.mark.docker
@pytest.mark.parametrize(
    "after", [pytest.param(0, id="alone"), pytest.param(HARMLESS_BEFORE, id="streamed", marks=pytest.mark.slow)]
)
def test_a_real_container_contains_every_hostile_program(container: ContainerSettings, after: int) -> None:
    verdicts = list(grade_in_container(_programs(after), container, workers=WORKERS))
    assert not any("weak" in verdict for verdict in verdicts)
    assert _not_contained(verdicts, after) == []
