"""How each step's pod is placed, fed and kept in bounds on a cluster; a run on one machine does not look at it."""

from __future__ import annotations

from typing import Any, Literal, Self, get_args

from pydantic import Field, model_validator

from components.core.section import Section

StepName = Literal["prepare_data", "rollout", "reward", "policy_update", "evaluate", "report"]
STEPS: tuple[StepName, ...] = get_args(StepName)

_CPU = r"^\d+(\.\d+)?$|^\d+m$"
_BYTES = r"^\d+(\.\d+)?([KMGT]i?)?$"


class TolerationConfig(Section):
    """One toleration, as in a pod's specification."""

    key: str | None = None
    """The taint's key; null, with `operator: Exists`, tolerates all."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """`Exists` takes any value."""
    value: str | None = None
    """The taint's value, for `Equal`."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The taint's effect; null matches every one."""


class SecretConfig(Section):
    """A Secret of the run's namespace whose keys become environment variables. No value ever enters a pipeline."""

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    """The Secret's name."""
    env: dict[str, str] = Field(min_length=1)
    """Its keys, and the environment variable of each."""
    steps: list[StepName] = Field(list(STEPS))
    """The steps that get it."""


class PodConfig(Section):
    """One step's pod."""

    cpu: str = Field("1", pattern=_CPU)
    """Requested cores: `2`, `500m`."""
    cpu_limit: str | None = Field(None, pattern=_CPU)
    """Cores at most; null for no limit."""
    memory: str = Field("2Gi", pattern=_BYTES)
    """Requested memory, and the limit unless `memory_limit` says more."""
    memory_limit: str | None = Field(None, pattern=_BYTES)
    """Memory at which the pod is killed; null for what it requests."""
    gpus: int = Field(0, ge=0)
    """Accelerators of kind kubernetes.accelerator."""
    shm: str | None = Field(None, pattern=_BYTES)
    """Size of /dev/shm, in memory: NCCL and vLLM need more than a container's 64 MiB. Counts as the pod's memory."""
    node_selector: dict[str, str] = Field({})
    """Labels that the node must have."""
    tolerations: list[TolerationConfig] = Field([])
    """Taints that the pod accepts; the accelerator's own is added with `gpus`."""
    timeout_s: int = Field(6 * 3600, ge=1)
    """Seconds after which one try is ended."""


class KubernetesConfig(Section):
    """What is fixed in the compiled pipeline for a cluster."""

    prepare_data: PodConfig = PodConfig(cpu="2", memory="8Gi", timeout_s=12 * 3600)
    """Pod of the step."""
    rollout: PodConfig = PodConfig(cpu="2", memory="4Gi", shm="1Gi")
    """Pod of the step, each shard."""
    reward: PodConfig = PodConfig(cpu="2", memory="4Gi")
    """Pod of the step, each shard."""
    policy_update: PodConfig = PodConfig(cpu="2", memory="8Gi", shm="1Gi", timeout_s=12 * 3600)
    """Pod of the step; with launcher=trainjob, that which starts and watches the TrainJob."""
    trainjob_node: PodConfig | None = None
    """Each pod of the TrainJob (launcher=trainjob); null takes what policy_update's has, which then holds it, too."""
    evaluate: PodConfig = PodConfig()
    """Pod of the step."""
    report: PodConfig = PodConfig()
    """Pod of the step."""
    retries: int = Field(2, ge=0)
    """New tries of a step that failed; finished parts are found again. Waits 30 s before the first, then doubles."""
    accelerator: str = "nvidia.com/gpu"
    """The resource that `gpus` counts."""
    pvc: str | None = None
    """A claim that holds the store; null for a store on S3. Steps on several nodes need ReadWriteMany."""
    pvc_path: str = Field("/deepcoder", pattern=r"^/.+[^/]$")
    """Where it is mounted; store= is this or a directory below."""
    env: dict[str, str] = Field({})
    """Environment of every step, such as S3_ENDPOINT_URL and MLFLOW_TRACKING_URI."""
    secrets: list[SecretConfig] = Field([])
    """Environment from Secrets: S3 keys for all steps, the hub's token for prepare_data."""
    image_pull_secrets: list[str] = Field([])
    """Names of the registry's Secrets."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """Null leaves it to the cluster."""
    run_as_user: int | None = Field(65532, ge=1)
    """Numeric user of every step; null leaves it to the cluster (OpenShift assigns one)."""
    run_as_group: int | None = Field(65532, ge=0)
    """Numeric group of every step; null leaves it to the image."""

    @model_validator(mode="after")
    def _a_variable_has_one_source(self) -> Self:
        for step in STEPS:
            names = [
                *self.env,
                *(name for secret in self.secrets if step in secret.steps for name in secret.env.values()),
            ]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"kubernetes: {', '.join(twice)} is set twice for {step}, in `env` or `secrets`")
        return self

    def pod(self, step: StepName) -> PodConfig:
        """The pod of one step."""
        pod: PodConfig = getattr(self, step)
        return pod

    def contradiction(self, store: str, rollout: Any, policy_update: Any) -> str | None:
        """What does not fit the rest of the configuration, or None.

        Args:
            store: Config.store.
            rollout: Config.rollout.
            policy_update: Config.policy_update.
        """
        if self.pvc and not store.startswith("s3://") and not f"{store}/".startswith(f"{self.pvc_path}/"):
            return f"store={store} is not on kubernetes.pvc={self.pvc}: use {self.pvc_path} or a directory below"
        gpus, spanned = self.rollout.gpus, rollout.tensor_parallel_size
        if gpus and rollout.engine == "vllm" and gpus < spanned:
            return f"kubernetes.rollout.gpus={gpus} is less than rollout.tensor_parallel_size={spanned}"
        key, pod = "policy_update", self.policy_update
        if policy_update.launcher == "trainjob" and self.trainjob_node is not None:
            key, pod = "trainjob_node", self.trainjob_node
        if pod.gpus and pod.gpus != policy_update.ranks:
            return f"kubernetes.{key}.gpus={pod.gpus} is not policy_update.ranks={policy_update.ranks}: one GPU a rank"
        return None
