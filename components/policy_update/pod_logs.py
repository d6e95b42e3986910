"""The logs of a TrainJob's pods, in the step's own log."""

from __future__ import annotations

import threading
import time

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from components.policy_update.cluster import Cluster
from components.policy_update.trainjob_manifest import CONTAINER, Object

_INDEX = "batch.kubernetes.io/job-completion-index"
_AGAIN_S = 1.0
_FINISH_S = 30.0


class PodLogs:
    """Streams each pod's log once, in a thread a pod."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._threads: dict[str, threading.Thread] = {}
        self._over = threading.Event()

    def follow(self, pods: list[Object]) -> None:
        """Begin with those pods that have started and are not followed yet."""
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if uid in self._threads or pod["status"].get("phase") not in ("Running", "Succeeded", "Failed"):
                continue
            metadata = pod["metadata"]
            label = f"node {metadata.get('labels', {}).get(_INDEX, '?')}"
            thread = threading.Thread(target=self._stream, args=(metadata["name"], label), daemon=True)
            self._threads[uid] = thread
            thread.start()

    def finish(self) -> None:
        """Wait for the last lines of pods that have ended."""
        self._over.set()
        end = time.monotonic() + _FINISH_S
        for thread in self._threads.values():
            thread.join(max(0.0, end - time.monotonic()))

    def _stream(self, pod: str, label: str) -> None:
        printed, last = 0, False
        while not last:
            last = self._over.is_set()  # what a broken stream had left is still there to be read
            try:
                # A stream that broke begins again at the first line.
                for number, line in enumerate(self._cluster.log(pod, CONTAINER)):
                    if number >= printed:
                        printed = number + 1
                        print(f"[{label}] {line.decode(errors='replace')}", flush=True)
                state = self._cluster.pod(pod)
                if state is None or state["status"].get("phase") != "Running":
                    return
            except ApiException as error:
                if error.status == 404:
                    return
            except (HTTPError, OSError):
                pass  # the connection broke
            self._over.wait(_AGAIN_S)
