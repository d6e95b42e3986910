"""A Kubernetes API with Kubeflow Trainer in it, for the real client: one namespace, in this process, over HTTP.

Kept: pods, TrainJobs, their life (pending, running, ended, deleted), logs that stream, owner references, RBAC, and what
Trainer's webhook and JobSet do with a TrainJob, as far as a client can see it. What a pod does, a test's function says.
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml
from kubeflow_trainer_api.models import TrainerV1alpha1TrainJob

Object = dict[str, Any]
RUNTIME = Path(__file__).parents[2] / "manifests/components/trainer/training-runtime.yaml"
NAMESPACE = "kubeflow"
TRAINJOBS = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{NAMESPACE}/trainjobs"
CORE = f"/api/v1/namespaces/{NAMESPACE}"


@dataclass
class Node:
    """One pod of a TrainJob, for the function that stands for its container."""

    pod: Object
    killed: threading.Event = field(default_factory=threading.Event)
    lines: list[str] = field(default_factory=list)

    @property
    def container(self) -> Object:
        container: Object = self.pod["spec"]["containers"][0]
        return container

    @property
    def folder(self) -> Path:
        return Path(self.container["args"][-1]).parent

    @property
    def index(self) -> int:
        return int(self.pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])

    @property
    def attempt(self) -> int:
        return int(self.pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"])

    def log(self, line: str) -> None:
        self.lines.append(line)

    def tell(self, x: int, **metrics: float) -> None:
        """As rank 0 reports one step."""
        with open(self.folder / "events.jsonl", "a") as file:
            file.write(json.dumps({"event": "curve", "metrics": metrics, "x": x}) + "\n")


class FakeCluster:
    """See the module. `run` is called once a pod and returns the container's exit code."""

    def __init__(self, run: Callable[[Node], int]) -> None:
        self.run = run
        self.lock = threading.RLock()
        self.pods: dict[str, Object] = {}
        self.jobs: dict[str, Object] = {}
        self.claims: dict[str, Object] = {}
        self.nodes: dict[str, Node] = {}
        self.created: list[Object] = []
        self.deleted: list[str] = []
        self.asked: set[tuple[str, str]] = set()
        """Every verb and resource that was asked for."""
        self.forbidden: set[tuple[str, str]] = set()
        self.faults: list[int] = []
        """Statuses that the next requests get, in order."""
        self.cut_logs_after: int | None = None
        """Break the next log stream off after so many lines."""
        self.pending = threading.Event()
        """While set, pods stay pending."""
        self.runtimes = {RUNTIME.stem: yaml.safe_load(RUNTIME.read_text())}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"cluster": self}))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        for node in list(self.nodes.values()):
            node.killed.set()
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, path: Path) -> Path:
        server = f"http://127.0.0.1:{self._server.server_port}"
        document = {
            "clusters": [{"name": "fake", "cluster": {"server": server}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake", "namespace": NAMESPACE}}],
            "users": [{"name": "fake", "user": {}}],
            "current-context": "fake",
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def add_pod(self, pod: Object) -> Object:
        with self.lock:
            pod["metadata"] |= {"uid": str(uuid.uuid4()), "namespace": NAMESPACE}
            self.pods[pod["metadata"]["name"]] = pod
            return pod

    def delete_pod(self, name: str) -> None:
        """And, as the garbage collector does, what the pod owns."""
        with self.lock:
            uid = self.pods.pop(name)["metadata"]["uid"]
            owned = [j for j, job in self.jobs.items() if uid in [o["uid"] for o in job["metadata"]["ownerReferences"]]]
        for job in owned:
            self.delete_job(job)

    def create_job(self, job: Object) -> tuple[int, Object]:
        refused = self._refused(job)
        if refused:
            return 400, {"message": refused}
        with self.lock:
            name = job["metadata"]["name"]
            if name in self.jobs:
                return 409, {"reason": "AlreadyExists", "message": f'trainjobs "{name}" already exists'}
            job["metadata"]["uid"] = str(uuid.uuid4())
            self.jobs[name] = job
            self.created.append(job)
        threading.Thread(target=self._control, args=(job,), daemon=True).start()
        return 201, job

    def delete_job(self, name: str) -> bool:
        """Foreground deletion: the job goes when its pods are gone."""
        with self.lock:
            if name not in self.jobs:
                return False
            self.jobs[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.deleted.append(name)
            nodes = self._nodes_of(name)
        for node in nodes:
            node.killed.set()

        def collect() -> None:
            time.sleep(0.05)
            with self.lock:
                self.jobs.pop(name, None)
                for node in nodes:
                    self.pods.pop(node.pod["metadata"]["name"], None)

        threading.Thread(target=collect, daemon=True).start()
        return True

    def preempt(self, node: Node) -> None:
        """As the scheduler does for a pod of higher priority."""
        with self.lock:
            node.pod["status"]["conditions"] = [
                {"type": "DisruptionTarget", "status": "True", "message": "preempted by a pod of higher priority"}
            ]
        node.killed.set()

    def _nodes_of(self, job: str) -> list[Node]:
        label = "jobset.sigs.k8s.io/jobset-name"
        return [node for node in self.nodes.values() if node.pod["metadata"]["labels"][label] == job]

    def _refused(self, job: Object) -> str | None:
        """What the CRD's schema and Trainer's validating webhook (v2.3.0) would say."""
        if TrainerV1alpha1TrainJob.from_dict(job).to_dict() != job:
            return "unknown field, or a value that the CRD's schema changes"
        spec, reference = job["spec"], job["spec"]["runtimeRef"]
        runtime = next((r for r in self.runtimes.values() if r["metadata"]["name"] == reference["name"]), None)
        if reference["kind"] != "TrainingRuntime" or runtime is None:
            return f'admission webhook denied the request: runtime "{reference["name"]}" not found'
        reserved = {e["name"] for e in spec["trainer"].get("env", []) if e["name"].startswith("PET_")}
        if reserved:
            return f"must not have reserved envs, invalid envs configured: {reserved}"
        if len(f"{job['metadata']['name']}-node-0-{spec['trainer']['numNodes'] - 1}") > 63:
            return "the JobSet's pod names would exceed 63 characters"
        templates = {j["name"]: j["template"]["spec"] for j in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
        for patch in spec.get("runtimePatches", []):
            if not re.fullmatch(r"[a-z0-9.-]+/[\w./-]+", patch["manager"]):
                return "manager must be a domain-prefixed path"
            for replicated in patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]:
                if replicated["name"] not in templates:
                    return "must not have replicated job that doesn't exist in the runtime job template"
                pod = replicated["template"]["spec"]["template"]["spec"]
                have = {c["name"] for c in templates[replicated["name"]]["template"]["spec"]["containers"]}
                volumes = {volume["name"] for volume in pod.get("volumes", [])}
                for container in pod.get("containers", []):
                    if container["name"] not in have:
                        return "must not have container that doesn't exist in the runtime job"
                    if container.get("env"):
                        return "must not have envs for the node container"
                    if {mount["name"] for mount in container.get("volumeMounts", [])} - volumes:
                        return "a volumeMount names no volume"
        return None

    def _control(self, job: Object) -> None:
        """The controllers: JobSet makes the pods, and restarts them all when one was disrupted."""
        name = job["metadata"]["name"]
        for attempt in range(10):
            while self.pending.is_set() and name in self.jobs:
                self._make_pods(job, attempt, "Pending")
                time.sleep(0.02)
            with self.lock:
                if "deletionTimestamp" in job["metadata"]:
                    return
                nodes = self._make_pods(job, attempt, "Running")
            codes = self._run_all(nodes)
            if "deletionTimestamp" in job["metadata"]:
                return
            if not any(node.pod["status"].get("conditions") for node in nodes):
                break
            with self.lock:
                for node in nodes:
                    self.pods.pop(node.pod["metadata"]["name"], None)
        kind, reason = ("Failed", "FailedJobs") if any(codes) else ("Complete", "AllJobsCompleted")
        condition = {"type": kind, "status": "True", "reason": reason, "message": f"jobset {name}"}
        with self.lock:
            job["status"] = {"conditions": [condition]}

    def _make_pods(self, job: Object, attempt: int, phase: str) -> list[Node]:
        trainer, name = job["spec"]["trainer"], job["metadata"]["name"]
        nodes = []
        with self.lock:
            for index in range(trainer["numNodes"]):
                environment = [
                    *trainer.get("env", []),
                    {"name": "PET_NNODES", "value": str(trainer["numNodes"])},
                    {"name": "PET_NPROC_PER_NODE", "value": str(trainer["numProcPerNode"])},
                    {"name": "PET_NODE_RANK", "value": str(index)},
                    {"name": "PET_MASTER_ADDR", "value": f"{name}-node-0-0.{name}"},
                    {"name": "PET_MASTER_PORT", "value": "29500"},
                ]
                container = {key: trainer[key] for key in ("image", "command", "args")} | {"env": environment}
                labels = {
                    "jobset.sigs.k8s.io/jobset-name": name,
                    "jobset.sigs.k8s.io/restart-attempt": str(attempt),
                    "batch.kubernetes.io/job-completion-index": str(index),
                }
                status: Object = {"phase": phase}
                if phase == "Pending":
                    message = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
                    unscheduled = {"type": "PodScheduled", "status": "False", "message": message}
                    status["conditions"] = [unscheduled]
                pod: Object = {
                    "metadata": {"name": f"{name}-node-0-{index}-{attempt}", "labels": labels},
                    "spec": {"containers": [container | {"name": "node"}]},
                    "status": status,
                }
                nodes.append(Node(self.add_pod(pod)))
                self.nodes[pod["metadata"]["name"]] = nodes[-1]
        return nodes

    def _run_all(self, nodes: list[Node]) -> list[int]:
        codes = [0] * len(nodes)

        def run(position: int, node: Node) -> None:
            code = self.run(node)
            codes[position] = code
            with self.lock:
                node.pod["status"]["phase"] = "Failed" if code else "Succeeded"
                reason = "OOMKilled" if code == 137 else "Error" if code else "Completed"
                ended = {"state": {"terminated": {"exitCode": code, "reason": reason}}}
                node.pod["status"]["containerStatuses"] = [ended]
            if code:  # the runtime's backoffLimit of 0: the first failure ends the job
                for other in nodes:
                    other.killed.set()

        threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(nodes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return codes


class _Handler(BaseHTTPRequestHandler):
    cluster: FakeCluster
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        parts = url.path.removeprefix(CORE).removeprefix(TRAINJOBS).strip("/").split("/")
        if self._stopped("list" if parts == ["pods"] else "get", url.path):
            return
        with self.cluster.lock:
            if url.path.startswith(TRAINJOBS):
                found = self.cluster.jobs.get(parts[0])
            elif parts == ["pods"]:
                key, _, value = query["labelSelector"].partition("=")
                pods = self.cluster.pods.values()
                found = {"items": [pod for pod in pods if pod["metadata"].get("labels", {}).get(key) == value]}
            elif parts[0] == "pods" and parts[2:] == ["log"]:
                found = None
            else:
                kinds = {"pods": self.cluster.pods, "persistentvolumeclaims": self.cluster.claims}
                found = kinds[parts[0]].get(parts[1])
            text = json.dumps(found)
        if parts[2:] == ["log"]:
            self._stream(parts[1])
        elif found is None:
            self._answer(404, json.dumps({"reason": "NotFound", "message": f"{url.path} not found"}))
        else:
            self._answer(200, text)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._stopped("create", self.path):
            status, answer = self.cluster.create_job(body)
            self._answer(status, json.dumps(answer))

    def do_DELETE(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._stopped("delete", self.path):
            found = self.cluster.delete_job(urlsplit(self.path).path.rsplit("/", 1)[1])
            self._answer(200 if found else 404, json.dumps({"status": "Success" if found else "Failure"}))

    def _stopped(self, verb: str, path: str) -> bool:
        resource = "trainjobs" if path.startswith(TRAINJOBS) else path.removeprefix(CORE).split("/")[1]
        if path.endswith("/log"):
            resource += "/log"
        with self.cluster.lock:
            self.cluster.asked.add((verb, resource))
            fault = self.cluster.faults.pop(0) if self.cluster.faults else None
        if fault is not None:
            self._answer(fault, json.dumps({"message": "try again"}))
        elif (verb, resource) in self.cluster.forbidden:
            self._answer(403, json.dumps({"message": f"pipeline-runner cannot {verb} resource {resource}"}))
        else:
            return False
        return True

    def _answer(self, status: int, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, pod: str) -> None:
        node = self.cluster.nodes[pod]
        with self.cluster.lock:
            cut, self.cluster.cut_logs_after = self.cluster.cut_logs_after, None
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = 0
        while True:
            ended = node.pod["status"]["phase"] != "Running"
            for line in node.lines[sent:]:
                data = f"{line}\n".encode()
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                sent += 1
                if sent == cut:
                    self.close_connection = True
                    return
            if ended:
                self.wfile.write(b"0\r\n\r\n")
                return
            time.sleep(0.01)
