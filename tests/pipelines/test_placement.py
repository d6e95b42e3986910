from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import json_format
from kfp.kubernetes import kubernetes_executor_config_pb2
from kfp.pipeline_spec import pipeline_spec_pb2

from components.core.errors import UserError
from components.core.resolve import resolve
from pipelines.compile import compile_profile, load_profile

CLUSTER = [
    "store=/deepcoder/runs",
    "kubernetes.pvc=deepcoder",
    "kubernetes.env={MLFLOW_TRACKING_URI: 'http://mlflow:5000'}",
    "kubernetes.secrets=[{name: s3, env: {key: AWS_ACCESS_KEY_ID}},"
    " {name: hub, env: {token: HF_TOKEN}, steps: [prepare_data]}]",
    "kubernetes.image_pull_secrets=[registry]",
    "kubernetes.policy_update={cpu: '16', memory: 128Gi, memory_limit: 160Gi, gpus: 8, shm: 32Gi, timeout_s: 7200}",
    "kubernetes.policy_update.node_selector={pool: a}",
    "kubernetes.policy_update.tolerations=[{key: pool, value: a, effect: NoSchedule}]",
    "policy_update.launcher=deepspeed",
    "policy_update.ranks=8",
]


class Compiled:
    """A pipeline's two documents, each read through its own protobuf, which refuses what it does not know."""

    def __init__(self, folder: Path, overrides: list[str]) -> None:
        compile_profile(*load_profile("demo", overrides), folder / "p.yaml")
        document, platform = yaml.safe_load_all((folder / "p.yaml").read_text())
        self.spec = json_format.ParseDict(document, pipeline_spec_pb2.PipelineSpec())
        json_format.ParseDict(platform, pipeline_spec_pb2.PlatformSpec())
        self._containers = document["deploymentSpec"]["executors"]
        self._pods = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]

    def container(self, executor: str) -> Any:
        container: Any = json_format.ParseDict(
            self._containers[executor]["container"], pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec()
        )
        return container

    def pod(self, executor: str) -> Any:
        config = kubernetes_executor_config_pb2.KubernetesExecutorConfig()
        pod: Any = json_format.ParseDict(self._pods[executor], config)
        return pod

    @property
    def executors(self) -> list[str]:
        assert set(self._containers) == set(self._pods)
        return sorted(self._containers)


def step_of(executor: str) -> str:
    return executor.removeprefix("exec-").rstrip("0123456789").rstrip("-")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return Compiled(tmp_path_factory.mktemp("compiled"), CLUSTER)


def test_only_the_pods_that_run_candidates_programs_carry_the_sandbox_label(compiled: Compiled) -> None:
    labelled = {name for name in compiled.executors if compiled.pod(name).pod_metadata.labels}
    assert labelled == {name for name in compiled.executors if step_of(name) == "reward"}
    assert len(labelled) == 7  # four iterations, three evaluations
    assert all(dict(compiled.pod(name).pod_metadata.labels) == {"deepcoder.io/sandbox": "true"} for name in labelled)


@pytest.mark.parametrize("mode", ["rollout.mode=refine", "evaluation.mode=package.module:own"])
def test_rollouts_that_may_run_public_tests_carry_it_too(mode: str, tmp_path: Path) -> None:
    refining = Compiled(tmp_path, [mode])
    labelled = {step_of(name) for name in refining.executors if refining.pod(name).pod_metadata.labels}
    assert labelled == {"reward", "rollout", "rollout-eval"}
    with pytest.raises(UserError, match=r"rollout.mode: shapes the graph"):
        resolve(load_profile("demo", [])[0], {}, {"rollout.mode": "refine"})


def test_every_step_has_bounds_a_user_a_timeout_the_volume_and_its_environment(compiled: Compiled) -> None:
    for name in compiled.executors:
        pod, container = compiled.pod(name), compiled.container(name)
        assert container.resources.resource_cpu_request
        assert container.resources.resource_memory_limit
        assert pod.security_context.run_as_user == 65532
        assert pod.security_context.run_as_non_root
        assert pod.active_deadline_seconds > 0
        assert [(mount.constant, mount.mount_path) for mount in pod.pvc_mount] == [("deepcoder", "/deepcoder")]
        assert {(variable.name, variable.value) for variable in container.env} == {
            ("MLFLOW_TRACKING_URI", "http://mlflow:5000")
        }
        assert [secret.secret_name for secret in pod.image_pull_secret] == ["registry"]
        assert [secret.secret_name for secret in pod.secret_as_env] == ["s3", "hub"][: 2 if "prepare" in name else 1]


def test_the_update_gets_its_accelerators_nodes_and_shared_memory(compiled: Compiled) -> None:
    pod, resources = compiled.pod("exec-policy-update"), compiled.container("exec-policy-update").resources
    assert (resources.accelerator.resource_type, resources.accelerator.resource_count) == ("nvidia.com/gpu", "8")
    assert (resources.resource_memory_request, resources.resource_memory_limit) == ("128Gi", "160Gi")
    assert dict(pod.node_selector.labels) == {"pool": "a"}
    assert {(one.key, one.operator, one.value) for one in pod.tolerations} == {
        ("pool", "Equal", "a"),
        ("nvidia.com/gpu", "Exists", ""),
    }
    assert [(one.mount_path, one.medium, one.size_limit) for one in pod.empty_dir_mounts] == [
        ("/dev/shm", "Memory", "32Gi")
    ]
    assert pod.active_deadline_seconds == 7200
    assert not compiled.container("exec-reward").resources.HasField("accelerator")


def test_a_failed_step_is_tried_again_and_only_data_preparation_is_cached(compiled: Compiled) -> None:
    dags = [compiled.spec.root.dag, *(part.dag for part in compiled.spec.components.values() if part.HasField("dag"))]
    tasks = [task for dag in dags for task in dag.tasks.values()]
    steps = [task for task in tasks if compiled.spec.components[task.component_ref.name].executor_label]
    assert len(steps) == len(compiled.executors)
    assert {task.retry_policy.max_retry_count for task in steps} == {2}
    assert {task.task_info.name for task in tasks if task.caching_options.enable_cache} == {"prepare-data"}


def test_every_pipeline_parameter_is_described_and_the_description_says_what_is_fixed(compiled: Compiled) -> None:
    parameters = compiled.spec.root.input_definitions.parameters
    assert len(parameters) == 10
    assert all(parameter.description for parameter in parameters.values())
    assert "stages 36 x 2, 44 x 2; 2 rollout shard(s); staleness 0" in compiled.spec.pipeline_info.description


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        (["kubernetes.pvc=a", "store=/elsewhere"], "store=/elsewhere is not on kubernetes.pvc=a: use /deepcoder"),
        (["kubernetes.policy_update.gpus=2"], "kubernetes.policy_update.gpus=2 is not policy_update.ranks=1"),
        (["kubernetes.rollout.memory=4GB"], "kubernetes.rollout.memory"),
        (
            ["kubernetes.env={A: b}", "kubernetes.secrets=[{name: s, env: {a: A}}]"],
            "A is set twice for prepare_data",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(overrides: list[str], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        load_profile("demo", overrides)


def test_where_a_run_is_placed_changes_no_result_and_cannot_change_after_compilation() -> None:
    values, config = load_profile("demo", ["kubernetes.rollout.memory=9Gi"])
    assert config.run == load_profile("demo", [])[1].run
    with pytest.raises(UserError, match="kubernetes: shapes the graph"):
        resolve(values, {}, {"kubernetes.rollout.memory": "10Gi"})
