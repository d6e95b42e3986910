"""Puts a step's Kubernetes settings on its task in the graph."""

from __future__ import annotations

from kfp import kubernetes
from kfp.dsl import PipelineTask

from components.core.config import Config
from components.core.pods import KubernetesConfig, StepName

SANDBOX_LABEL = "deepcoder.io/sandbox"
"""On the pods that run candidates' programs: what NetworkPolicies and runtime classes select."""
_MODES_WITHOUT_PROGRAMS = {None, "single", "solver_judge", "debate"}


def place(task: PipelineTask, step: StepName, config: Config) -> PipelineTask:
    """Apply resources, placement, environment, volumes, user, retries and timeout; returns the task.

    Caching is on for `prepare_data` alone: the others log to MLflow and find their own finished output in the store.
    """
    settings = config.kubernetes
    pod = settings.pod(step)
    task.set_caching_options(step == "prepare_data")
    _resources(task, step, settings)
    for label, value in pod.node_selector.items():
        kubernetes.add_node_selector(task, label, value)
    for toleration in pod.tolerations:
        kubernetes.add_toleration(task, **toleration.model_dump())
    for name, value in settings.env.items():
        task.set_env_variable(name, value)
    for secret in settings.secrets:
        if step in secret.steps:
            kubernetes.use_secret_as_env(task, secret.name, dict(secret.env))
    if settings.pvc:
        kubernetes.mount_pvc(task, settings.pvc, settings.pvc_path)
    modes = {config.rollout.mode, config.evaluation.mode}
    if step == "reward" or (step == "rollout" and modes - _MODES_WITHOUT_PROGRAMS):
        kubernetes.add_pod_label(task, SANDBOX_LABEL, "true")
    if settings.image_pull_secrets:
        kubernetes.set_image_pull_secrets(task, list(settings.image_pull_secrets))
    if settings.image_pull_policy:
        kubernetes.set_image_pull_policy(task, settings.image_pull_policy)
    if settings.run_as_user is not None:
        kubernetes.set_security_context(
            task, run_as_user=settings.run_as_user, run_as_group=settings.run_as_group, run_as_non_root=True
        )
    if settings.retries:
        task.set_retry(settings.retries, backoff_duration="30s", backoff_factor=2.0, backoff_max_duration="600s")
    kubernetes.set_timeout(task, pod.timeout_s)
    return task


def _resources(task: PipelineTask, step: StepName, settings: KubernetesConfig) -> None:
    pod = settings.pod(step)
    task.set_cpu_request(pod.cpu)
    if pod.cpu_limit:
        task.set_cpu_limit(pod.cpu_limit)
    task.set_memory_request(pod.memory)
    task.set_memory_limit(pod.memory_limit or pod.memory)
    if pod.shm:
        kubernetes.empty_dir_mount(task, "shm", "/dev/shm", medium="Memory", size_limit=pod.shm)
    if pod.gpus:
        task.set_accelerator_type(settings.accelerator)
        task.set_accelerator_limit(pod.gpus)
        # Nodes with accelerators are usually tainted by the resource's name.
        kubernetes.add_toleration(task, key=settings.accelerator, operator="Exists", effect="NoSchedule")
