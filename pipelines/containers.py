"""Runs each step in a container of its own image, through kfp.local's DockerRunner.

That runner has one set of options for all steps, and takes a container that vanished for one that succeeded. Here a
step has the walls that its pod has on a cluster: no root, nothing writable but the store and /tmp, no capabilities, and
no network for the programs that are judged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
from docker.types import DeviceRequest
from kfp.local import docker_task_handler, status

from components.core.config import Config
from components.core.errors import UserError
from components.core.images import NAMES, image

_NON_ROOT = 65532
_LABEL = "deepcoder.run"
_PASSED_ON = ("AWS_", "S3_", "MLFLOW_", "HF_", "OMP_", "TOKENIZERS_", "TRANSFORMERS_", "DS_", "PYTHONWARNINGS")


@contextmanager
def step_containers(config: Config, pipeline_root: Path) -> Iterator[None]:
    """While this is open, DockerRunner's tasks run as described above; no container of the run outlives it.

    Args:
        config: the run's configuration, its paths absolute.
        pipeline_root: where KFP's own small artifacts go.

    Raises:
        UserError: there is no Docker engine, or an image is missing.
    """
    client = _engine()
    uid, gid = (os.getuid(), os.getgid()) if os.getuid() else (_NON_ROOT, _NON_ROOT)
    _give(config, pipeline_root, uid, gid)

    class Handler(docker_task_handler.DockerTaskHandler):
        def run(self) -> status.Status:
            name = next(name for name in NAMES if image(name) == self.image)
            options = container_options(config, name, pipeline_root)
            container = client.containers.create(
                self.image,
                self.full_command,
                user=f"{uid}:{gid}",
                labels={_LABEL: config.run},
                environment={**_environment(), **self.env_vars},
                **options,
            )
            try:
                container.start()
                for chunk in container.logs(stream=True, follow=True):
                    print(chunk.decode("utf-8", "replace"), end="")
                code = container.wait()["StatusCode"]
            finally:
                container.remove(force=True)
            return status.Status.SUCCESS if code == 0 else status.Status.FAILURE

    plain = docker_task_handler.DockerTaskHandler
    _remove_all(client, config.run)  # a run that was killed leaves its containers, which would go on writing
    docker_task_handler.DockerTaskHandler = Handler
    try:
        yield
    finally:
        docker_task_handler.DockerTaskHandler = plain
        _remove_all(client, config.run)
        client.close()


def container_options(config: Config, name: str, pipeline_root: Path) -> dict[str, Any]:
    """What one image's containers may do, as keywords of docker-py's `containers.create`.

    Args:
        config: the run's configuration, its paths absolute.
        name: `data`, `rollout`, `sandbox` or `trainer`.
        pipeline_root: where KFP's own small artifacts go.
    """
    on_disk = not config.store.startswith("s3://")
    volumes = {str(pipeline_root): {"bind": str(pipeline_root), "mode": "rw"}}
    if on_disk:
        volumes[config.store] = {"bind": config.store, "mode": "rw"}
    options: dict[str, Any] = {
        "read_only": True,
        "tmpfs": {"/tmp": "size=4g,mode=1777"},
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "volumes": volumes,
    }
    if name == "data":
        volumes.update({path: {"bind": path, "mode": "ro"} for path in _inputs(config)})
    if name == "sandbox":
        options |= {"pids_limit": 4096}
        if on_disk:
            options |= {"network_mode": "none"}
    if name in ("rollout", "trainer"):
        options |= {"shm_size": "1g"}
        if Path("/dev/nvidia0").exists():
            options |= {"device_requests": [DeviceRequest(count=-1, capabilities=[["gpu"]])]}
    return options


def _engine() -> docker.DockerClient:
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as error:
        raise UserError(f"no Docker engine answers ({error}); start one, or use --runner subprocess") from error
    for name in NAMES:
        try:
            client.images.get(image(name))
        except docker.errors.ImageNotFound as error:
            raise UserError(f"{image(name)}: no such image here; `make images VARIANT=cpu` builds it") from error
    return client


def _inputs(config: Config) -> list[str]:
    """Files and directories of this machine that the configuration names."""
    names = [config.model_name]
    for source in config.data.sources:
        names += [source.path, source.solutions or "", source.exclude or "", source.special_judge or ""]
    return sorted({name for name in names if name.startswith("/") and Path(name).exists()})


def _give(config: Config, pipeline_root: Path, uid: int, gid: int) -> None:
    """Make the folders that this process shares with the steps, and hand them over if it is root's."""
    folders = [pipeline_root]
    if not config.store.startswith("s3://"):
        store = Path(config.store)
        folders += [store, store / "runs", store / "runs" / config.run]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            os.chown(folder, uid, gid)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}


def _remove_all(client: docker.DockerClient, run: str) -> None:
    for container in client.containers.list(all=True, filters={"label": f"{_LABEL}={run}"}):
        container.remove(force=True)
