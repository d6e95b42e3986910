"""`make minikube` without a cluster: the script runs on stubs; what it asks of a tool is put to that tool's parser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from components.core.images import NAMES
from tests.manifests.conftest import KUBECTL

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "manifests/minikube/up.sh"
TOOLS = ["minikube", "kubectl", "docker", "curl", "deepcoder", "kfp"]
MINIKUBE = {
    ("start",): {"--profile", "--cpus", "--memory", "--disk-size", "--kubernetes-version", "--cni", "--wait"},
    ("ip",): {"--profile"},
    ("image", "load"): {"--profile", "--daemon"},
}
"""Flags from minikube.sigs.k8s.io/docs/commands."""


@dataclass
class Done:
    code: int
    errors: str
    calls: list[list[str]]
    inputs: dict[str, str]

    def of(self, tool: str) -> list[list[str]]:
        return [call[1:] for call in self.calls if call[0] == tool]


@pytest.fixture
def up(tmp_path: Path) -> Callable[..., Done]:
    """Runs the script on stubs; keyword arguments become environment variables."""
    stubs = tmp_path / "bin"
    stubs.mkdir()
    for tool in TOOLS:
        (stubs / tool).write_text(f"#!{sys.executable} -IS\n{(Path(__file__).parent / 'stub.py').read_text()}")
        (stubs / tool).chmod(0o755)
    images = tmp_path / "images.env"
    images.write_text("".join(f"DEEPCODER_IMAGE_{name.upper()}=deepcoder/{name}:1\n" for name in NAMES))

    def run(**changes: str) -> Done:
        log, inputs = tmp_path / "log", tmp_path / "inputs"
        log.write_text("")
        inputs.write_text("")
        environment = {
            "PATH": f"{stubs}:/usr/bin:/bin",
            "BIN": str(stubs),
            "IMAGES": str(images),
            "STUB_LOG": str(log),
            "STUB_INPUT": str(inputs),
            **changes,
        }
        process = subprocess.run([str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=300)
        calls = [json.loads(line) for line in log.read_text().splitlines()]
        given = dict(json.loads(line) for line in inputs.read_text().splitlines())
        return Done(process.returncode, process.stderr, calls, given)

    return run


def flags(arguments: list[str]) -> set[str]:
    return {argument.split("=")[0] for argument in arguments if argument.startswith("-") and argument != "-"}


def test_the_script_goes_from_nothing_to_a_finished_run(up: Callable[..., Done], tmp_path: Path) -> None:
    done = up()
    assert done.code == 0, done.errors
    order = ["minikube start", "kubectl apply", "minikube image", "deepcoder compile", "kfp --endpoint"]
    lines = [" ".join(call) for call in done.calls]
    positions = [next(i for i, line in enumerate(lines) if all(w in line for w in words.split())) for words in order]
    assert positions == sorted(positions)
    loaded = [call[-1] for call in done.of("minikube") if call[:2] == ["image", "load"]]
    assert loaded == [f"deepcoder/{name}:1" for name in NAMES]
    # The node's address goes into the NetworkPolicy of the sandbox pods.
    assert "cidr: 192.168.58.2/32\n" in done.inputs["kubectl --context deepcoder apply --filename -"]
    keys = "AWS_ACCESS_KEY_ID=minio\nAWS_SECRET_ACCESS_KEY=minio123\n"
    made = {line: text for line, text in done.inputs.items() if "create secret" in line}
    assert len(made) == 3
    assert sum(text == keys for text in made.values()) == 2
    (password,) = [text for text in made.values() if text.startswith("password=")]
    assert len(password) > len("password=") + 20
    assert not any("minio123" in line or password.strip() in line for line in lines), "no value on a command line"
    forward = int((tmp_path / "log.pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(forward, 0)


def test_secrets_that_exist_stay(up: Callable[..., Done]) -> None:
    done = up(STUB_HAVE_SECRETS="1")
    assert done.code == 0, done.errors
    assert not any("create" in call for call in done.of("kubectl"))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("docker image inspect", "no image deepcoder/data:1 here"),
        ("minikube start", "failed to start minikube"),
        ("cluster-scoped-resources", "failed to install Kubeflow Pipelines"),
        ("condition=Available", "failed to install Kubeflow Pipelines"),
        ("create secret generic mlflow-postgres", "failed to make the secrets"),
        ("mlpipeline-minio-artifact", "failed to make the secrets"),
        ("kubectl kustomize", "failed to apply manifests/overlays/minikube"),
        ("rollout status deployment/mlflow", "failed to apply manifests/overlays/minikube"),
        ("minikube image load", "failed to load the images"),
        ("deepcoder compile", "failed to compile the smoke profile"),
        ("port-forward", "failed to reach the API"),
        ("kfp --endpoint", "failed to run the smoke profile"),
    ],
)
def test_each_failure_stops_it_with_a_message(up: Callable[..., Done], command: str, message: str) -> None:
    done = up(STUB_FAIL=command)
    assert done.code == 1
    assert message in done.errors
    failed = [i for i, call in enumerate(done.calls) if command in " ".join(call)]
    after = [call for call in done.calls[failed[0] + 1 :] if call[0] != "curl" and command not in " ".join(call)]
    assert after == [], "nothing is done after it"


def test_a_run_that_fails_is_a_failure_although_kfp_ends_with_0(up: Callable[..., Done]) -> None:
    done = up(STUB_STATE="FAILED")
    assert done.code == 1
    assert "failed to run the smoke profile" in done.errors


def test_without_images_it_says_how_to_make_them(up: Callable[..., Done]) -> None:
    done = up(IMAGES="nowhere")
    assert done.code == 1
    assert "make images VARIANT=cpu" in done.errors
    assert done.calls == []


def test_every_tool_knows_the_flags_that_it_gets(up: Callable[..., Done], tmp_path: Path) -> None:
    done = up()
    for call in done.of("minikube"):
        command = next(words for words in MINIKUBE if call[: len(words)] == list(words))
        assert flags(call) <= MINIKUBE[command], call
    for call in done.of("kubectl"):
        # The real kubectl reads all flags before --help, and refuses an unknown one.
        process = subprocess.run([str(KUBECTL), *call, "--help"], capture_output=True, text=True)
        assert process.returncode == 0, (call, process.stderr)
    assert subprocess.run([str(KUBECTL), "apply", "--flie", "x", "--help"], capture_output=True).returncode != 0


def test_kfp_s_own_command_line_takes_the_submission(up: Callable[..., Done], tmp_path: Path) -> None:
    from kfp.cli import cli, run

    done = up(PROFILE="smoke")
    (call,) = done.of("kfp")
    position = call.index("run")
    top = cli.cli.make_context("kfp", [*call[:position], "run"], resilient_parsing=True)
    assert top.params["endpoint"] == "http://127.0.0.1:8888"
    assert top.params["output"] == "json"
    arguments = call[position + 2 :]
    package = tmp_path / "package.yaml"
    package.touch()
    arguments[arguments.index("--package-file") + 1] = str(package)
    parsed = run.create.make_context("create", arguments).params
    assert parsed["experiment_name"] == "deepcoder-smoke"
    assert parsed["timeout"] == 5400


def test_the_compilation_that_it_asks_for_succeeds(up: Callable[..., Done], tmp_path: Path) -> None:
    from pipelines.cli import main

    (call,) = up().of("deepcoder")
    package, images = tmp_path / "package.yaml", tmp_path / "images.env"
    call[call.index("--output") + 1] = str(package)
    call[call.index("--images") + 1] = str(images)
    before = dict(os.environ)
    try:
        assert main(call) == 0
    finally:
        os.environ.clear()
        os.environ.update(before)
    text = package.read_text()
    assert "http://mlflow.deepcoder:5000" in text
    assert "deepcoder-s3" in text


SCRIPTS = [path for folder in ("manifests", "images") for path in (ROOT / folder).rglob("*.sh")]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    shellcheck = Path(sys.executable).parent / "shellcheck"
    process = subprocess.run([str(shellcheck), str(script)], capture_output=True, text=True)
    assert process.returncode == 0, process.stdout
