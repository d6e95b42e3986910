"""The smoke profile with every step in a container of its own image, against the same run without containers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import docker
import pytest

from components.core.errors import UserError
from components.core.images import NAMES, image
from pipelines.compile import local_profile
from pipelines.containers import container_options, step_containers
from tests.chaos.run import difference, results

ROOT = Path(__file__).parents[2]
PROBE = """
import json, os, pathlib, socket
def tried(action):
    try: action()
    except OSError as error: return type(error).__name__
    return "done"
print(json.dumps({
    "uid": os.getuid(),
    "root": tried(lambda: pathlib.Path("/app/x").write_text("")),
    "tmp": tried(lambda: pathlib.Path("/tmp/x").write_text("")),
    "store": tried(lambda: pathlib.Path(os.environ["STORE"], "x").write_text("")),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "capabilities": pathlib.Path("/proc/self/status").read_text().split("CapBnd:")[1].split()[0],
}))
"""


HASH = """
import hashlib, pathlib
files = [(str(p), p.read_bytes()) for f in ("components", "sandbox") for p in sorted(pathlib.Path(f).rglob("*.py"))]
print(hashlib.sha256(repr(files).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def engine() -> docker.DockerClient:
    # `make smoke-docker` has built the images: what is not there then is an error.
    absent = pytest.fail if os.environ.get("CONTAINER_TESTS") == "required" else pytest.skip
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as error:
        absent(f"no Docker engine: {error}")
    for name in NAMES:
        try:
            client.images.get(image(name))
        except docker.errors.ImageNotFound:
            absent(f"no image {image(name)}: `make images VARIANT=cpu` builds it")
        theirs = client.containers.run(image(name), ["python", "-c", HASH], remove=True, network_mode="none")
        ours = subprocess.run([sys.executable, "-c", HASH], cwd=ROOT, capture_output=True, check=True).stdout
        if theirs != ours:
            absent(f"{image(name)} holds other code than this folder: `make images VARIANT=cpu` builds it anew")
    return client


def smoke(store: Path, runner: str) -> str:
    """Run the smoke profile; returns the run's folder name."""
    command = [sys.executable, "-m", "pipelines.cli", "run", "--profile", "smoke", "--runner", runner]
    done = subprocess.run(
        [*command, f"store={store}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return local_profile("smoke", [f"store={store}"])[1].run


def markers(store: Path, run: str) -> dict[str, dict[str, Any]]:
    folder = store / "runs" / run
    return {str(path.parent.relative_to(folder)): json.loads(path.read_text()) for path in folder.rglob("_COMPLETE")}


def files(store: Path) -> dict[str, bytes]:
    """Everything that the run stored, by its path."""
    paths = [path for folder in ("datasets", "runs") for path in (store / folder).rglob("*") if path.is_file()]
    return {path.relative_to(store).as_posix(): path.read_bytes() for path in paths}


def untimed(metrics: dict[str, float]) -> dict[str, float]:
    clocked = ("time/", "timing_s/", "perf/", "reward/cpu_ms", "rollout/tokens_per_s")
    return {name: value for name, value in metrics.items() if not name.startswith(clocked)}


@pytest.mark.docker
@pytest.mark.slow
def test_the_smoke_run_gives_the_same_numbers_with_and_without_containers(
    engine: docker.DockerClient, tmp_path: Path
) -> None:
    run = smoke(tmp_path / "processes", "subprocess")
    assert smoke(tmp_path / "containers", "docker") == run
    one, other = markers(tmp_path / "processes", run), markers(tmp_path / "containers", run)
    assert set(one) == set(other)
    assert {"stage-1/iter-00/policy", "stage-2/iter-00/policy", "eval/stage-2/result", "report"} <= set(one)
    measured = {place for place, marker in one.items() if "metrics" in marker["extra"]}
    assert set(one) - measured == {"stage-2/iter-00/optimizer"}
    for place in measured:
        ours, theirs = (untimed(made[place]["extra"]["metrics"]) for made in (one, other))
        assert ours == pytest.approx(theirs, nan_ok=True), place
    # Byte for byte: problems, answers, rewards, weights and the optimizer's state.
    plain, contained = results(files(tmp_path / "processes")), results(files(tmp_path / "containers"))
    assert f"runs/{run}/stage-2/iter-00/policy/hf/model.safetensors" in plain
    assert difference(plain, contained) == []
    owners = {path.stat().st_uid for path in (tmp_path / "containers" / "runs" / run).rglob("_COMPLETE")}
    assert 0 not in owners
    assert engine.containers.list(all=True, filters={"label": f"deepcoder.run={run}"}) == []


@pytest.mark.docker
@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_not_root_and_writes_nothing_but_its_store(
    engine: docker.DockerClient, tmp_path: Path, name: str
) -> None:
    _, config = local_profile("smoke", [f"store={tmp_path}"])
    tmp_path.chmod(0o777)
    said = engine.containers.run(
        image(name),
        ["python", "-c", PROBE],
        environment={"STORE": str(tmp_path)},
        remove=True,
        **container_options(config, name, tmp_path / "kfp"),
    )
    seen = json.loads(said)
    assert seen["uid"] == 65532
    assert (seen["root"], seen["tmp"], seen["store"]) == ("OSError", "done", "done")
    assert int(seen["capabilities"], 16) == 0
    assert (seen["interfaces"] == ["lo"]) == (name == "sandbox")


@pytest.mark.docker
def test_a_step_that_fails_fails_the_run_with_its_own_words(engine: docker.DockerClient, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipelines.cli", "run", "--profile", "smoke", "--runner", "docker"]
    done = subprocess.run(
        [*command, f"store={tmp_path}/store", "model_name=random:2x65"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert "write random:LAYERSxWIDTH, the width a multiple of 32" in done.stdout
    assert "Start it again: it goes on where it stopped" in done.stderr


def test_with_a_store_that_is_reached_over_the_network_the_sandbox_has_one(tmp_path: Path) -> None:
    _, config = local_profile("smoke", [f"store={tmp_path}"])
    assert container_options(config, "sandbox", tmp_path / "kfp")["network_mode"] == "none"
    _, config = local_profile("smoke", ["store=s3://bucket/prefix"])
    options = container_options(config, "sandbox", tmp_path / "kfp")
    assert "network_mode" not in options
    assert list(options["volumes"]) == [str(tmp_path / "kfp")]


def test_only_data_preparation_sees_the_sources_and_cannot_change_them(tmp_path: Path) -> None:
    _, config = local_profile("smoke", [f"store={tmp_path}"])
    source = str(ROOT / "data/demo/taco/train.jsonl")
    assert container_options(config, "data", tmp_path / "kfp")["volumes"][source]["mode"] == "ro"
    for name in ("rollout", "sandbox", "trainer"):
        assert source not in container_options(config, name, tmp_path / "kfp")["volumes"]


def test_without_an_engine_the_command_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    _, config = local_profile("smoke", [f"store={tmp_path}"])
    with pytest.raises(UserError, match="no Docker engine answers"), step_containers(config, tmp_path / "kfp"):
        pass
