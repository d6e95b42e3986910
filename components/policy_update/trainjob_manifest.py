"""The TrainJob of an update, made from the pod of the step that starts it.

The ranks need what the step has: its image, environment, volumes, and the nodes it may run on. All that is in the
step's own pod, whoever put it there: the compiled pipeline, a webhook, or a namespace's defaults.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

from components.core.config import Config
from components.core.errors import UserError
from components.core.pods import PodConfig

GROUP, VERSION, PLURAL = "trainer.kubeflow.org", "v1alpha1", "trainjobs"
MANAGER = "deepcoder.io/policy-update"
CONTAINER = "node"
"""Of the runtime's replicated job and its container; Kubeflow Trainer's own name."""
OWN_PATHS = ("/argo", "/kfp-launcher", "/mainctrfs", "/var/run/argo", "/var/run/secrets/kubernetes.io")
"""Mounts of Argo, the KFP launcher and the service account: they serve the step only."""
OWN_ENVIRONMENT = ("ARGO_", "KFP_", "KUBERNETES_", "ML_PIPELINE_", "METADATA_", "PET_")
SHARED_SOURCES = ("persistentVolumeClaim", "nfs")
"""Volumes whose files every node sees."""

Object = dict[str, Any]


def train_job(pod: Object, name: str, config: Config, job_file: Path) -> Object:
    """The manifest.

    Args:
        pod: the step's pod as the API gives it.
        name: of the TrainJob.
        config: the run's configuration.
        job_file: what each rank runs, on a volume that all of them mount.
    """
    update, settings = config.policy_update, config.kubernetes
    if settings.trainjob_node is not None:
        pod = _as_node(pod, settings.trainjob_node, settings.accelerator)
    spec, main = pod["spec"], main_container(pod)
    mounts = [mount for mount in main.get("volumeMounts", []) if not mount["mountPath"].startswith(OWN_PATHS)]
    names = {mount["name"] for mount in mounts}
    node: Object = {"name": CONTAINER, "volumeMounts": mounts, "securityContext": main.get("securityContext")}
    patch = {
        "volumes": [volume for volume in spec.get("volumes", []) if volume["name"] in names],
        "containers": [_without_empty(node)],
        **{key: spec.get(key) for key in ("nodeSelector", "affinity", "imagePullSecrets", "securityContext")},
        # Those for an unreachable node are every pod's own.
        "tolerations": [
            t for t in spec.get("tolerations", []) if not t.get("key", "").startswith("node.kubernetes.io/")
        ],
    }
    environment = [e for e in main.get("env", []) if not e["name"].startswith(OWN_ENVIRONMENT)]
    trainer = {
        "image": main["image"],
        "command": [sys.executable, "-m", "torch.distributed.run"],  # takes nodes, ranks and address from PET_*
        "args": ["-m", "components.policy_update.worker", str(job_file)],
        "env": environment,
        "numNodes": update.nodes,
        "numProcPerNode": update.ranks,
        "resourcesPerNode": {key: value for key, value in main.get("resources", {}).items() if key != "claims"},
    }
    job = {"name": CONTAINER, "template": {"spec": {"template": {"spec": _without_empty(patch)}}}}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": pod["metadata"]["namespace"],
            "labels": {"app.kubernetes.io/part-of": "deepcoder", "app.kubernetes.io/component": "policy-update"},
            # Kubernetes deletes the job with the step's pod, should the step be unable to.
            "ownerReferences": [owner(pod)],
        },
        "spec": {
            "runtimeRef": {"apiGroup": GROUP, "kind": "TrainingRuntime", "name": update.training_runtime},
            "activeDeadlineSeconds": settings.policy_update.timeout_s,
            "trainer": _without_empty(trainer),
            "runtimePatches": [
                {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}
            ],
        },
    }


def owner(pod: Object) -> Object:
    """The pod as an owner of other objects."""
    metadata = pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}


def main_container(pod: Object) -> Object:
    """Argo's `main` container, else the only one."""
    containers: list[Object] = pod["spec"]["containers"]
    named = [container for container in containers if container["name"] == "main"]
    return (named or containers)[0]


def claim_of(pod: Object, path: Path) -> str | None:
    """The PersistentVolumeClaim that holds a path in the step's main container; None for another shared volume.

    Raises:
        UserError: no volume that other pods can see holds the path.
    """
    mounts = [m for m in main_container(pod).get("volumeMounts", []) if path.is_relative_to(m["mountPath"])]
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
    if mounts:
        volume = volumes[max(mounts, key=lambda mount: len(mount["mountPath"]))["name"]]
        if any(source in volume for source in SHARED_SOURCES):
            claim: str | None = volume.get("persistentVolumeClaim", {}).get("claimName")
            return claim
    raise UserError(
        f"{path} is not on a volume that other pods can mount, so that policy_update.launcher=trainjob cannot use it. "
        "Put the store on a PersistentVolumeClaim; with a store on S3 mount one for scratch files and set TMPDIR to it."
    )


def _as_node(pod: Object, node: PodConfig, accelerator: str) -> Object:
    """The step's pod with the resources and the placement of a node."""
    pod = copy.deepcopy(pod)
    spec, main = pod["spec"], main_container(pod)
    gpus = {accelerator: str(node.gpus)} if node.gpus else {}
    main["resources"] = {
        "requests": {"cpu": node.cpu, "memory": node.memory, **gpus},
        "limits": _without_empty({"cpu": node.cpu_limit, "memory": node.memory_limit or node.memory, **gpus}),
    }
    spec["nodeSelector"] = node.node_selector
    spec["tolerations"] = [toleration.model_dump(exclude_none=True) for toleration in node.tolerations]
    if node.gpus:
        spec["tolerations"].append({"key": accelerator, "operator": "Exists", "effect": "NoSchedule"})
    if node.shm:
        others = [mount for mount in main.get("volumeMounts", []) if mount["mountPath"] != "/dev/shm"]
        main["volumeMounts"] = [*others, {"name": "node-shm", "mountPath": "/dev/shm"}]
        shm = {"name": "node-shm", "emptyDir": {"medium": "Memory", "sizeLimit": node.shm}}
        spec["volumes"] = [*spec.get("volumes", []), shm]
    return pod


def _without_empty(values: Object) -> Object:
    return {key: value for key, value in values.items() if value}
