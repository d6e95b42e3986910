"""The few calls to the Kubernetes API that a TrainJob needs, with errors that say what to do."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from components.core.errors import UserError
from components.core.progress import say
from components.policy_update.trainjob_manifest import GROUP, PLURAL, VERSION, Object

PATIENCE_S = 300.0
"""An API server that is restarted or overloaded may be away for so long."""
_RETRY_S = 2.0
_TIMEOUT_S = 30
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

T = TypeVar("T")


class Cluster:
    """The namespace of the step's pod."""

    def __init__(self) -> None:
        """Connect as the pod's service account, or as KUBECONFIG says.

        Raises:
            UserError: this process is in no cluster.
        """
        in_pod, kubeconfig = "KUBERNETES_SERVICE_HOST" in os.environ, os.environ.get("KUBECONFIG")
        try:
            if in_pod:
                config.load_incluster_config()
            else:
                config.load_kube_config(kubeconfig)
        except config.ConfigException as error:
            raise UserError(
                f"policy_update.launcher=trainjob runs in a pod of a Kubernetes cluster only ({error}); "
                "on one machine use launcher=deepspeed."
            ) from error
        self._core, self._custom = client.CoreV1Api(), client.CustomObjectsApi()
        if in_pod:
            self.namespace = _NAMESPACE_FILE.read_text().strip()
        else:
            self.namespace = config.list_kube_config_contexts(kubeconfig)[1]["context"].get("namespace", "default")
        self._jobs = (GROUP, VERSION, self.namespace, PLURAL)

    def own_pod(self) -> Object:
        """The pod that this process runs in."""
        # KFP sets the first; a host name is cut off at 63 characters.
        name = os.environ.get("KFP_POD_NAME") or os.environ.get("HOSTNAME", "")
        pod = self.pod(name) if name else None
        if pod is None:
            raise UserError(f"no pod {name!r} in namespace {self.namespace}: set KFP_POD_NAME to this pod's name.")
        return pod

    def pod(self, name: str) -> Object | None:
        """One pod, or None."""
        return self._read(self._core.read_namespaced_pod, name, self.namespace)

    def pods(self, job: str) -> list[Object]:
        """The pods of a TrainJob, by name; JobSet, which runs them, has its name."""
        selector = f"jobset.sigs.k8s.io/jobset-name={job}"
        found = self._read(self._core.list_namespaced_pod, self.namespace, label_selector=selector)
        items: list[Object] = (found or {}).get("items", [])
        return sorted(items, key=lambda pod: str(pod["metadata"]["name"]))

    def access_modes(self, claim: str) -> list[str]:
        """Of a PersistentVolumeClaim."""
        found = self._read(self._core.read_namespaced_persistent_volume_claim, claim, self.namespace)
        return list((found or {}).get("spec", {}).get("accessModes", []))

    def log(self, pod: str, container: str) -> Iterator[bytes]:
        """The lines of a container's log, from its first, until the container ends or the connection does."""
        response = self._core.read_namespaced_pod_log(
            pod, self.namespace, container=container, follow=True, _preload_content=False
        )
        rest = b""
        for chunk in response.stream():
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
        if rest:
            yield rest

    def job(self, name: str) -> Object | None:
        """A TrainJob, or None."""
        return self._read(self._custom.get_namespaced_custom_object, *self._jobs, name)

    def create_job(self, manifest: Object) -> bool:
        """Create a TrainJob; False if one of this name exists."""
        try:
            patiently(
                lambda: self._custom.create_namespaced_custom_object(*self._jobs, manifest, _request_timeout=_TIMEOUT_S)
            )
        except ApiException as error:
            if error.status == 409:
                return False
            raise _explained(error) from error
        return True

    def delete_job(self, name: str) -> None:
        """Ask for the end of a TrainJob and its pods."""
        delete = self._custom.delete_namespaced_custom_object
        self._read(delete, *self._jobs, name, propagation_policy="Foreground")

    def _read(self, call: Callable[..., Any], *arguments: str, **options: str) -> Object | None:
        """The answer as plain JSON: the client's models drop the fields of a newer API and refuse some values."""
        try:
            response = patiently(
                lambda: call(*arguments, **options, _preload_content=False, _request_timeout=_TIMEOUT_S)
            )
        except ApiException as error:
            if error.status == 404:
                return None
            raise _explained(error) from error
        answer: Object = json.loads(response.data)
        return answer


def patiently(call: Callable[[], T]) -> T:
    """Repeat a call that fails for a reason that passes: no connection, an overloaded or restarting server."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except (ApiException, HTTPError, OSError) as error:
            passing = not isinstance(error, ApiException) or error.status == 429 or error.status >= 500
            if not passing or time.monotonic() > end:
                raise
            say(
                "WARNING", f"the Kubernetes API does not answer ({type(error).__name__}: {_short(error)}); trying again"
            )
        time.sleep(_RETRY_S)


def _short(error: Exception) -> str:
    return f"{error.status} {error.reason}" if isinstance(error, ApiException) else str(error)[:200]


def _explained(error: ApiException) -> Exception:
    try:
        said = json.loads(error.body)["message"]
    except (ValueError, KeyError, TypeError):
        said = error.body
    if error.status in (401, 403):
        return UserError(
            f"the step's service account may not do this: {said}. It needs the Role in "
            "manifests/components/trainer/rbac.yaml: apply manifests/, or bind the Role to the service "
            "account of this run."
        )
    if error.status in (400, 404, 422):
        return UserError(
            f"Kubernetes refused the TrainJob: {said}. Kubeflow Trainer 2.2 or newer must be installed, and the "
            "TrainingRuntime that policy_update.training_runtime names must be in the run's namespace (manifests/)."
        )
    return error
