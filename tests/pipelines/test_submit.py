import builtins
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kfp import local
from kfp.components import load_component_from_file

from components.core.errors import UserError
from pipelines import cli
from pipelines.compile import compile_profile, load_profile, local_profile
from pipelines.submit import make_request
from tests.pipelines.kfp_api import Api, InvalidInput, check_pipeline, serve

DIGEST = "@sha256:" + "0" * 64


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The micro profile, compiled for a cluster with pinned images."""
    path = tmp_path_factory.mktemp("package") / "pipeline.yaml"
    values, config = load_profile("micro", ["store=s3://bucket/prefix"])
    compile_profile(values, config, path)
    text = path.read_text()
    for name in ("data", "rollout", "sandbox", "trainer"):
        text = text.replace(f"deepcoder/{name}:0.1.0", f"registry.example/{name}{DIGEST}")
    path.write_text(text)
    return path


@pytest.fixture
def api() -> Iterator[tuple[Api, str]]:
    known = Api()
    with serve(known) as address:
        yield known, address


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client keeps its context in the home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))


def kfp(address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("kfp")), "--endpoint", address, "--output", "json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))


def test_kfp_run_submit_takes_the_pipeline_and_its_parameters_as_they_are(package: Path, api: tuple[Api, str]) -> None:
    known, address = api
    values = [
        "model_name=Qwen/Qwen2.5-0.5B",
        "learning_rate=1e-5",
        "batch_size=32",
        "temperature=1",
        "seed=7",
        "store=s3://other/place",
        'overrides={"rollout.n": 4, "evaluation": {"n": 2}}',
    ]
    done = kfp(address, "run", "submit", "-e", "deepcoder", "-f", str(package), *values)
    assert done.returncode == 0, done.stderr[-2000:]
    (run,) = known.runs
    assert run["runtime_config"]["parameters"] == {
        "model_name": "Qwen/Qwen2.5-0.5B",
        "learning_rate": 1e-5,
        "batch_size": 32,
        "temperature": 1,
        "seed": 7,
        "store": "s3://other/place",
        "overrides": {"rollout.n": 4, "evaluation": {"n": 2}},
    }
    assert known.experiments[0]["display_name"] == "deepcoder"
    sent = run["pipeline_spec"].get("pipeline_spec", run["pipeline_spec"])
    assert sent == next(yaml.safe_load_all(package.read_text()))


def test_kfp_run_submit_shows_what_the_server_refuses(package: Path, api: tuple[Api, str]) -> None:
    known, address = api
    done = kfp(address, "run", "submit", "-e", "deepcoder", "-f", str(package), "learnign_rate=1")
    assert done.returncode != 0
    assert "are not required by pipeline: learnign_rate" in done.stdout + done.stderr
    assert known.runs == []


def submit(package: Path, address: str, *arguments: str) -> int:
    return cli.main(["submit", "--file", str(package), "--endpoint", address, *arguments])


def test_submit_sends_parameters_and_overrides_and_says_where_the_run_is(
    package: Path, api: tuple[Api, str], capsys: pytest.CaptureFixture[str]
) -> None:
    known, address = api
    arguments = ["learning_rate=1e-5", "rollout.temperature=1", "max_steps=null", "rollout.n=4", "experiment=mine"]
    assert submit(package, address, *arguments) == 0, capsys.readouterr().err
    (run,) = known.runs
    assert run["runtime_config"]["parameters"] == {
        "learning_rate": 1e-5,
        "temperature": 1.0,
        "max_steps": 0,
        "experiment": "mine",
        "overrides": {"rollout.n": 4},
    }
    assert known.experiments[0]["display_name"] == "mine"
    shown = capsys.readouterr().out
    assert f"{address}/#/runs/details/{run['run_id']}" in shown
    # What the first step will resolve is what the run is called after.
    request = make_request(package, arguments)
    assert run["display_name"] == request.config.run
    assert (request.config.rollout.n, request.config.rollout.temperature, request.config.max_steps) == (4, 1.0, None)


def test_submit_compiles_a_profile_if_it_is_given_one(api: tuple[Api, str], monkeypatch: pytest.MonkeyPatch) -> None:
    known, address = api
    arguments = ["submit", "--profile", "micro", "--endpoint", address, "store=s3://bucket/prefix"]
    assert cli.main(arguments) == 1  # its images are tags
    assert cli.main([*arguments, "--allow-tags"]) == 0
    assert known.runs[0]["runtime_config"]["parameters"] == {"store": "s3://bucket/prefix"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["staleness=1"],
            r"staleness: shapes the graph.*Compile again with it: deepcoder compile --profile NAME staleness=",
        ),
        (["rollout.shards=3"], "rollout.shards: shapes the graph"),
        (["kubernetes.retries=1"], "kubernetes.retries: shapes the graph"),
        (["overrides={stages: []}"], "stages: "),
        (["learnign_rate=1"], "learnign_rate: no such key"),
        (["batch_size=24", "policy_update.ppo_mini_batch_size=16"], "batch_size=24 is not a multiple"),
        (["seed=1.5"], "seed=1.5: the pipeline's parameter is a NUMBER_INTEGER"),
        (["learning_rate=fast"], "learning_rate=fast: the pipeline's parameter is a NUMBER_DOUBLE"),
        (["store=work"], "store=work: a relative directory is another one in each pod"),
        (["seed"], "'seed': write key=value"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_sent(arguments: list[str], message: str, package: Path) -> None:
    with pytest.raises(UserError, match=message):
        make_request(package, arguments)


def test_packages_that_are_loose_or_large_or_none_of_ours_are_refused(package: Path, tmp_path: Path) -> None:
    loose = tmp_path / "loose.yaml"
    loose.write_text(
        package.read_text().replace(f"registry.example/trainer{DIGEST}", "registry.example/trainer:latest")
    )
    with pytest.raises(UserError, match=r"images without a digest: registry.example/trainer:latest\. "):
        make_request(loose, [])
    assert make_request(loose, [], allow_tags=True).config.profile == "micro"
    large = tmp_path / "large.yaml"
    large.write_text(package.read_text() + "#" * (600 << 10))
    with pytest.raises(UserError, match=r"large.yaml: too large for Argo: an estimated \d+ KiB of at most 600"):
        make_request(large, [])
    (tmp_path / "none.yaml").write_text("a: 1")
    with pytest.raises(UserError, match=r"none.yaml: not a compiled pipeline; `deepcoder compile` writes one"):
        make_request(tmp_path / "none.yaml", [])
    with pytest.raises(UserError, match=r"absent.yaml: cannot be read"):
        make_request(tmp_path / "absent.yaml", [])


def test_a_second_active_run_of_a_configuration_is_refused_and_another_seed_is_not(
    package: Path, api: tuple[Api, str], capsys: pytest.CaptureFixture[str]
) -> None:
    known, address = api
    assert submit(package, address) == 0
    assert submit(package, address) == 1
    assert f"({known.runs[0]['run_id']}); it writes to runs/micro-" in capsys.readouterr().err
    assert submit(package, address, "seed=1") == 0
    known.runs[0]["state"] = "FAILED"
    assert submit(package, address) == 0
    assert [run["display_name"] for run in known.runs].count(known.runs[0]["display_name"]) == 2


def test_what_the_api_answers_becomes_one_line(
    package: Path, api: tuple[Api, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    known, address = api
    assert submit(package, "http://127.0.0.1:9") == 1
    assert "http://127.0.0.1:9: does not answer (ConnectError)" in capsys.readouterr().err
    assert submit(package, "127.0.0.1:9") == 1
    assert "write it with http:// or https://" in capsys.readouterr().err
    assert submit(package, f"{address}/nowhere") == 1
    assert "no Kubeflow Pipelines API there (healthz answers 404)" in capsys.readouterr().err
    known.token = "secret"
    assert submit(package, address) == 1
    assert "give a token with --token-file" in capsys.readouterr().err
    (tmp_path / "token").write_text("secret\n")
    assert submit(package, address, "--token-file", str(tmp_path / "token")) == 0


def test_every_parameter_of_the_pipeline_has_a_description_and_the_pipeline_says_what_is_fixed(package: Path) -> None:
    document = next(yaml.safe_load_all(package.read_text()))
    for name, definition in document["root"]["inputDefinitions"]["parameters"].items():
        assert len(definition.get("description", "")) > 10, name
    assert (
        "Fixed in this graph: stages 16 x 1, 24 x 1; 2 rollout shard(s); staleness 0."
        in (document["pipelineInfo"]["description"])
    )


def test_the_fake_api_refuses_what_the_real_one_does(package: Path) -> None:
    spec: dict[str, Any] = next(yaml.safe_load_all(package.read_text()))
    check_pipeline(spec, {"seed": 1})
    for document, parameters, message in (
        ({**spec, "schemaVersion": "2.0.0"}, {}, "only supports schema version 2.1.0"),
        ({**spec, "nonsense": 1}, {}, 'no field named "nonsense"'),
        (spec, {"seed": True}, "input parameter seed requires type NUMBER_INTEGER"),
        (spec, {"store": 5}, "input parameter store requires type STRING"),
        (spec, {"overrides": "x"}, "input parameter overrides requires type STRUCT"),
    ):
        with pytest.raises(InvalidInput, match=message):
            check_pipeline(document, parameters)


@pytest.mark.long
def test_a_second_run_with_the_same_parameters_finds_everything_done(
    tmp_path: Path, api: tuple[Api, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    known, address = api
    store = tmp_path / "store"
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    monkeypatch.setattr(builtins, "print", print)  # kfp's local runner replaces it
    stages = "stages=[{name: only, max_response_length: 16, iterations: 1}]"
    values, config = local_profile("micro", [stages, "rollout.shards=1"])
    compile_profile(values, config, tmp_path / "pipeline.yaml")

    def submit_and_run() -> str:
        arguments = ["--allow-tags", f"store={store}", "seed=3", "data.max_test_problems=4"]
        assert submit(tmp_path / "pipeline.yaml", address, *arguments) == 0
        run = known.runs[-1]
        sent = tmp_path / "sent.yaml"
        sent.write_text(yaml.safe_dump(run["pipeline_spec"].get("pipeline_spec", run["pipeline_spec"])))
        local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "kfp"), raise_on_error=True)
        load_component_from_file(str(sent))(**run["runtime_config"]["parameters"])
        run["state"] = "SUCCEEDED"
        return str(run["display_name"])

    name = submit_and_run()
    done = {path: path.stat().st_mtime_ns for path in store.rglob("_COMPLETE")}
    assert store / f"runs/{name}/report/_COMPLETE" in done
    assert store / f"runs/{name}/stage-1/iter-00/policy/_COMPLETE" in done
    capfd.readouterr()
    assert submit_and_run() == name
    assert {path: path.stat().st_mtime_ns for path in store.rglob("_COMPLETE")} == done
    assert "stage-1/iter-00/policy: complete already" in capfd.readouterr().out
