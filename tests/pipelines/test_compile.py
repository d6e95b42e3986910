import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from components.core.errors import UserError
from pipelines import cli
from pipelines.compile import PROFILES, compile_profile, load_profile


@pytest.mark.parametrize("name", sorted(path.stem for path in PROFILES.glob("*.yaml")))
def test_every_profile_compiles_to_a_valid_pipeline_that_fits_into_argo(name: str, tmp_path: Path) -> None:
    values, config = load_profile(name, [])
    size = compile_profile(values, config, tmp_path / "p.yaml")
    document = next(yaml.safe_load_all((tmp_path / "p.yaml").read_text()))
    json_format.ParseDict(document, pipeline_spec_pb2.PipelineSpec())
    updates = [key for key in document["components"] if key.startswith("comp-policy-update")]
    assert len(updates) == sum(stage.iterations for stage in config.stages)
    assert size["workflow_bytes"] < 600 << 10
    assert size["largest_dag_bytes"] < 100 << 10


def test_a_graph_too_large_for_argo_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    values, config = load_profile("demo", ["stages=[{name: a, max_response_length: 8, iterations: 60}]"])
    with pytest.raises(UserError, match=r"60 iterations is too large for Argo: an estimated \d+ KiB of at most 600"):
        compile_profile(values, config, tmp_path / "p.yaml")
    assert list(tmp_path.iterdir()) == []


def before(tasks: dict[str, Any], name: str) -> set[str]:
    """All tasks that must have ended before one of the same graph starts."""
    direct = set(tasks[name].get("dependentTasks", []))
    return direct.union(*(before(tasks, other) for other in direct))


def test_with_staleness_a_rollout_waits_for_the_update_before_the_last_and_no_longer(tmp_path: Path) -> None:
    values, config = load_profile("demo", ["staleness=1"])
    compile_profile(values, config, tmp_path / "p.yaml")
    document = next(yaml.safe_load_all((tmp_path / "p.yaml").read_text()))
    tasks = document["root"]["dag"]["tasks"]
    updates = [name for name in tasks if name.startswith("policy-update")]
    loops = [name for name in tasks if name.startswith("for-loop")]
    assert len(updates) == len(loops) == 4
    for number, (update, loop) in enumerate(zip(updates, loops, strict=True)):
        assert {name for name in updates if name in before(tasks, loop)} == set(updates[: max(0, number - 1)])
        assert {loop, *updates[:number]} <= before(tasks, update)


@pytest.mark.parametrize("staleness", [0, 1])
def test_a_shards_reward_waits_for_its_own_rollout_alone(staleness: int, tmp_path: Path) -> None:
    values, config = load_profile("demo", [f"staleness={staleness}"])
    compile_profile(values, config, tmp_path / "p.yaml")
    document = next(yaml.safe_load_all((tmp_path / "p.yaml").read_text()))
    graphs = [part["dag"]["tasks"] for part in [document["root"], *document["components"].values()] if "dag" in part]
    loops = [task for tasks in graphs for task in tasks.values() if "parameterIterator" in task]
    assert loops
    for loop in loops:
        assert loop.get("iteratorPolicy", {}).get("parallelismLimit", 0) == 0
        inner = document["components"][loop["componentRef"]["name"]]["dag"]["tasks"]
        (rollout,) = (name for name in inner if name.startswith("rollout"))
        (reward,) = (name for name in inner if name.startswith("reward"))
        assert len(inner) == 2
        assert before(inner, rollout) == set()
        assert before(inner, reward) == {rollout}


def test_without_staleness_a_rollout_waits_for_the_update_before_it(tmp_path: Path) -> None:
    values, config = load_profile("demo", ["staleness=0"])
    compile_profile(values, config, tmp_path / "p.yaml")
    tasks = next(yaml.safe_load_all((tmp_path / "p.yaml").read_text()))["root"]["dag"]["tasks"]
    assert "training-iteration-2" in before(tasks, "training-iteration-3")


def test_the_report_waits_for_every_evaluation(tmp_path: Path) -> None:
    values, config = load_profile("demo", [])
    compile_profile(values, config, tmp_path / "p.yaml")
    tasks = next(yaml.safe_load_all((tmp_path / "p.yaml").read_text()))["root"]["dag"]["tasks"]
    evaluations = {name for name in tasks if name.startswith("evaluation")}
    assert len(evaluations) == len(config.stages) + 1
    assert evaluations <= set(tasks["report"]["dependentTasks"])


def test_steps_never_import_each_other_and_core_imports_no_step() -> None:
    code = (
        "import sys, importlib; importlib.import_module(sys.argv[1]);"
        "print(' '.join(m for m in sys.modules if m.startswith(('components.', 'pipelines', 'sandbox'))))"
    )
    steps = {"data_prep": "start", "reward": "score", "evaluation": "evaluate", "report": "start"}
    for step, module in steps.items():
        done = subprocess.run(
            [sys.executable, "-c", code, f"components.{step}.{module}"], capture_output=True, text=True, check=True
        )
        others = {name.split(".")[1] for name in done.stdout.split() if name.startswith("components.")} - {"core", step}
        assert not others, f"{step} imports {others}"
        assert "pipelines" not in done.stdout
        assert "torch" not in done.stderr


def test_a_wrong_key_ends_the_command_with_one_line_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--profile", "demo", "learnign_rate=1"]) == 1
    error = capsys.readouterr().err
    assert "learnign_rate: no such key" in error
    assert "Traceback" not in error
