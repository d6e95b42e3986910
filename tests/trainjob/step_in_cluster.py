"""What the tests of the trainjob launcher start from. Imports no heavy library, for steps in processes of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.core.config import parse_config
from components.policy_update.job import Job, Outcome
from tests.trainjob.fake_cluster import Node

GPU = "nvidia.com/gpu"
OUTCOME = Outcome(global_step=3, steps=2, samples=8, metrics={"loss": 0.5})


@dataclass
class Heard:
    """Stands for the step that listens."""

    readies: int = 0
    points: list[tuple[int, dict[str, float]]] = field(default_factory=list)

    def ready(self) -> None:
        self.readies += 1

    def log_curve(self, metrics: dict[str, float], x: int) -> None:
        self.points.append((x, metrics))


def step_pod(mount: Path) -> dict[str, Any]:
    """A step's pod as Argo and the KFP launcher make it, with what a pipeline adds."""
    main = {
        "name": "main",
        "image": "registry.example/trainer@sha256:0123",
        "env": [
            {"name": "KFP_POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "ARGO_CONTAINER_NAME", "value": "main"},
            {"name": "S3_KEY", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "key"}}},
        ],
        "resources": {"limits": {GPU: "8", "memory": "1Ti"}, "requests": {"cpu": "64"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "store", "mountPath": str(mount)},
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "var-run-argo", "mountPath": "/var/run/argo"},
            {"name": "kfp-launcher", "mountPath": "/kfp-launcher"},
            {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
    }
    return {
        "metadata": {"name": "run-update-1", "annotations": {"workflows.argoproj.io/node-name": "run.update"}},
        "spec": {
            "containers": [{"name": "wait", "image": "argoexec"}, main],
            "nodeSelector": {"gpu": "h100"},
            "tolerations": [
                {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
            ],
            "imagePullSecrets": [{"name": "registry"}],
            "securityContext": {"runAsNonRoot": True, "fsGroup": 1000},
            "volumes": [
                {"name": "store", "persistentVolumeClaim": {"claimName": "deepcoder-store"}},
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
                {"name": "var-run-argo", "emptyDir": {}},
                {"name": "kfp-launcher", "emptyDir": {}},
                {"name": "token", "projected": {"sources": []}},
            ],
        },
        "status": {"phase": "Running"},
    }


def succeed(node: Node) -> int:
    if node.index == 0:
        for x in (2, 3):
            node.tell(x, loss=1.0 / x)
        (node.folder / "outcome.json").write_text(OUTCOME.to_json())
    return 0


def make_job(folder: Path, *, kubernetes: dict[str, Any] | None = None, **update: Any) -> Job:
    """`update` goes to the configuration of the policy update, of two nodes with eight ranks each."""
    config = parse_config(
        {
            "profile": "test",
            "model_name": "tiny",
            "learning_rate": 1e-2,
            "batch_size": 4,
            "context_length": 256,
            "store": str(folder / "store"),
            "data": {"sources": [{"format": "taco", "path": "none"}], "max_prompt_length": 64},
            "stages": [{"name": "8", "max_response_length": 8, "iterations": 1}],
            "evaluation": {"max_response_length": 8},
            "policy_update": {"ppo_mini_batch_size": 4, "launcher": "trainjob", "nodes": 2, "ranks": 8, **update},
            "kubernetes": kubernetes or {},
        },
        "test",
    )
    return Job(
        config=config,
        stage=1,
        iteration=0,
        global_step=1,
        policy=str(folder / "policy"),
        policy_version="base",
        optimizer=None,
        shards=[(str(folder / "rollouts"), str(folder / "rewards"))],
        output=str(folder / "output"),
    )
