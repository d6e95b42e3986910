"""Updates over several pods, against an API server that keeps state."""

from __future__ import annotations

import copy
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.core import progress
from components.core.errors import UserError
from components.policy_update import heartbeat, trainjob
from components.policy_update.job import Outcome
from components.policy_update.launch import launch
from tests.trainjob.fake_cluster import FakeCluster, Node
from tests.trainjob.step_in_cluster import GPU, OUTCOME, Heard, make_job, succeed

ROOT = Path(__file__).parents[2]


def until_killed(node: Node) -> int:
    node.killed.wait()
    return 143


def run(folder: Path, heard: Heard | None = None, **changes: Any) -> Outcome:
    work = folder / "scratch"
    work.mkdir(exist_ok=True)
    return launch(make_job(folder, **changes), heard or Heard(), work)


def test_the_job_is_made_from_the_pod_of_the_step(start: Callable[..., FakeCluster], tmp_path: Path) -> None:
    cluster, heard = start(), Heard()
    assert run(tmp_path, heard) == OUTCOME
    assert heard.points == [(2, {"loss": 0.5}), (3, {"loss": 1 / 3})]
    (job,) = cluster.created
    trainer = job["spec"]["trainer"]
    assert (trainer["numNodes"], trainer["numProcPerNode"]) == (2, 8)
    assert trainer["image"] == "registry.example/trainer@sha256:0123"
    assert trainer["resourcesPerNode"] == {"limits": {GPU: "8", "memory": "1Ti"}, "requests": {"cpu": "64"}}
    assert trainer["env"] == [{"name": "S3_KEY", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "key"}}}]
    (patch,) = job["spec"]["runtimePatches"]
    (node,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pod = node["template"]["spec"]["template"]["spec"]
    assert [volume["name"] for volume in pod["volumes"]] == ["store", "shm"]
    assert [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]] == [str(tmp_path), "/dev/shm"]
    assert [toleration["key"] for toleration in pod["tolerations"]] == [GPU]
    assert pod["nodeSelector"] == {"gpu": "h100"}
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["securityContext"]["fsGroup"] == 1000
    assert cluster.jobs == {}, "a job that is over is deleted"


def test_nodes_may_have_other_resources_than_the_step(start: Callable[..., FakeCluster], tmp_path: Path) -> None:
    cluster = start()
    node = {"cpu": "8", "memory": "64Gi", "gpus": 4, "shm": "16Gi", "node_selector": {"gpu": "a100"}}
    kubernetes = {"trainjob_node": node, "policy_update": {"timeout_s": 900}}
    run(tmp_path, ranks=4, kubernetes=kubernetes)
    spec = cluster.created[0]["spec"]
    assert spec["trainer"]["resourcesPerNode"] == {
        "requests": {"cpu": "8", "memory": "64Gi", GPU: "4"},
        "limits": {"memory": "64Gi", GPU: "4"},
    }
    assert spec["activeDeadlineSeconds"] == 900, "no job outlives its step for long"
    (job,) = spec["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"gpu": "a100"}
    assert pod["volumes"][-1] == {"name": "node-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}
    assert [toleration["key"] for toleration in pod["tolerations"]] == [GPU]


def test_logs_of_all_nodes_are_streamed_once_each_line_although_the_connection_breaks(
    start: Callable[..., FakeCluster], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def talk(node: Node) -> int:
        for number in range(20):
            node.log(f"step {number}")
            time.sleep(0.02)
        return succeed(node)

    cluster = start(talk)
    cluster.cut_logs_after = 5
    run(tmp_path)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[node ")]
    for index in range(2):
        assert [line for line in lines if line.startswith(f"[node {index}]")] == [
            f"[node {index}] step {number}" for number in range(20)
        ]


def fail_with(text: str, *, known: bool) -> Callable[[Node], int]:
    def fail(node: Node) -> int:
        if node.index == 1:
            message = {"rank": 9, "known": known, "text": text}
            (node.folder / "error-9.json").write_text(json.dumps(message))
            return 1
        return until_killed(node)

    return fail


def test_a_rank_that_fails_fails_the_step_with_its_message(start: Callable[..., FakeCluster], tmp_path: Path) -> None:
    cluster = start(fail_with("problem p0 is bad", known=True))
    with pytest.raises(UserError, match="problem p0 is bad"):
        run(tmp_path)
    assert cluster.jobs == {}
    cluster.run = fail_with("Traceback: boom", known=False)
    with pytest.raises(RuntimeError, match="rank 9 of the update failed:\nTraceback: boom"):
        run(tmp_path)


def test_a_node_without_memory_is_named(start: Callable[..., FakeCluster], tmp_path: Path) -> None:
    start(lambda node: 137 if node.index == 1 else until_killed(node))
    with pytest.raises(RuntimeError, match=r"node-0-1-0 ended with code 137 \(OOMKilled\).*ppo_max_token_len_per_gpu"):
        run(tmp_path)


def test_preempted_pods_start_again_and_nothing_is_logged_twice(
    start: Callable[..., FakeCluster], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def preempted_once(node: Node) -> int:
        node.log(f"attempt {node.attempt}")
        if node.attempt == 1:
            return succeed(node)
        if node.index == 0:
            node.tell(2, loss=0.5)
            time.sleep(0.2)
            cluster.preempt(node)
        return until_killed(node)

    cluster, heard = start(preempted_once), Heard()
    assert run(tmp_path, heard) == OUTCOME
    assert [x for x, _ in heard.points] == [2, 3]
    output = capsys.readouterr().out
    assert all(f"[node {index}] attempt {attempt}" in output for index in (0, 1) for attempt in (0, 1))
    assert len(cluster.created) == 1, "JobSet starts the pods again, not the step"


def test_a_job_that_a_killed_try_left_is_replaced(start: Callable[..., FakeCluster], tmp_path: Path) -> None:
    cluster = start()
    name = trainjob.job_name(make_job(tmp_path))
    dead = {"apiVersion": "v1", "kind": "Pod", "name": "run-update-0", "uid": "gone"}
    cluster.jobs[name] = {"metadata": {"name": name, "ownerReferences": [dead]}}
    assert run(tmp_path) == OUTCOME
    assert cluster.deleted == [name, name]


def test_a_job_of_a_living_step_is_left_alone(start: Callable[..., FakeCluster], tmp_path: Path) -> None:
    cluster = start()
    other = cluster.add_pod({"metadata": {"name": "other"}, "spec": {}, "status": {"phase": "Running"}})
    name = trainjob.job_name(make_job(tmp_path))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": other["metadata"]["uid"]}
    cluster.jobs[name] = {"metadata": {"name": name, "ownerReferences": [owner]}}
    with pytest.raises(UserError, match="pod other is at this very update"):
        run(tmp_path)
    assert name in cluster.jobs
    assert cluster.deleted == []


STEP = """
import sys
from pathlib import Path
from components.policy_update.launch import launch
from tests.trainjob.step_in_cluster import Heard, make_job
folder = Path(sys.argv[1])
(folder / "scratch").mkdir()
launch(make_job(folder), Heard(), folder / "scratch")
"""


def start_step(cluster: FakeCluster, folder: Path) -> subprocess.Popen[bytes]:
    """A step in a process of its own, whose job runs when this returns."""
    process = subprocess.Popen([sys.executable, "-c", STEP, str(folder)], cwd=ROOT)
    end = time.monotonic() + 120
    while not cluster.nodes and time.monotonic() < end and process.poll() is None:
        time.sleep(0.05)
    assert cluster.nodes
    return process


def test_a_terminated_step_deletes_its_job(start: Callable[..., FakeCluster], tmp_path: Path) -> None:
    cluster = start(until_killed)
    process = start_step(cluster, tmp_path)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert len(cluster.deleted) == 1
    assert all(node.killed.is_set() for node in cluster.nodes.values())


def test_the_job_of_a_step_that_cannot_clean_up_goes_with_its_pod(
    start: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    cluster = start(until_killed)
    process = start_step(cluster, tmp_path)
    process.kill()
    process.wait()
    assert cluster.deleted == []
    cluster.delete_pod("run-update-1")
    assert len(cluster.deleted) == 1


def test_ranks_end_when_their_step_is_silent(tmp_path: Path) -> None:
    alive = tmp_path / heartbeat.ALIVE
    alive.write_text("7")
    code = (
        "import sys, time; from pathlib import Path; from components.policy_update.heartbeat import end_without\n"
        "end_without(Path(sys.argv[1]), patience_s=0.4); time.sleep(60)"
    )
    process = subprocess.run([sys.executable, "-c", code, str(alive)], cwd=ROOT, capture_output=True, timeout=50)
    assert process.returncode == 1
    assert b"silent" in process.stdout


def test_the_heartbeat_goes_on_while_the_step_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.01)
    with heartbeat.beating(tmp_path / "alive"):
        seen: set[str] = set()
        end = time.monotonic() + 30
        while len(seen) < 3 and time.monotonic() < end:
            seen.add((tmp_path / "alive").read_text())
    assert len(seen) >= 3


def test_an_api_server_that_is_away_for_a_moment_costs_nothing(
    start: Callable[..., FakeCluster], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = start()
    cluster.faults = [503, 429, 500]
    assert run(tmp_path) == OUTCOME
    assert "the Kubernetes API does not answer (ApiException: 503" in capsys.readouterr().out


def test_pods_that_wait_say_for_what(
    start: Callable[..., FakeCluster],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = start()
    monkeypatch.setattr(trainjob, "_COMPLAIN_S", 0.1)
    cluster.pending.set()

    def listen(label: str, text: str) -> None:
        progress.say(label, text)
        if "Insufficient" in text:
            cluster.pending.clear()

    monkeypatch.setattr(trainjob, "say", listen)
    assert run(tmp_path) == OUTCOME
    assert "waiting for pods: 0 of 2 run. 0/3 nodes are available: 3 Insufficient nvidia.com/gpu." in (
        capsys.readouterr().out
    )


def test_missing_rights_and_runtimes_are_explained(start: Callable[..., FakeCluster], tmp_path: Path) -> None:
    cluster = start()
    cluster.forbidden = {("create", "trainjobs")}
    with pytest.raises(UserError, match=r"cannot create resource trainjobs.*manifests/"):
        run(tmp_path)
    cluster.forbidden = set()
    with pytest.raises(UserError, match=r'runtime "none" not found.*policy_update.training_runtime'):
        run(tmp_path, training_runtime="none")


def test_the_role_in_manifests_allows_what_the_step_asks_for_and_no_more(
    start: Callable[..., FakeCluster], tmp_path: Path
) -> None:
    cluster = start()
    name = trainjob.job_name(make_job(tmp_path))
    cluster.jobs[name] = {"metadata": {"name": name}}
    run(tmp_path)
    role = next(yaml.safe_load_all((ROOT / "manifests/components/trainer/rbac.yaml").read_text()))
    allowed = {(verb, what) for rule in role["rules"] for what in rule["resources"] for verb in rule["verbs"]}
    assert cluster.asked == allowed


def test_what_the_nodes_cannot_reach_is_refused(start: Callable[..., FakeCluster], tmp_path: Path) -> None:
    cluster = start()
    cluster.claims["deepcoder-store"]["spec"]["accessModes"] = ["ReadWriteOnce"]
    with pytest.raises(UserError, match=r"deepcoder-store has access modes .*ReadWriteOnce.*needs ReadWriteMany"):
        run(tmp_path)
    assert run(tmp_path, nodes=1) == OUTCOME
    pod = copy.deepcopy(cluster.pods["run-update-1"])
    pod["spec"]["volumes"][0] = {"name": "store", "emptyDir": {}}
    cluster.pods["run-update-1"] = pod
    with pytest.raises(UserError, match="is not on a volume that other pods can mount"):
        run(tmp_path)


def test_outside_a_cluster_the_launcher_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(UserError, match="use launcher=deepspeed"):
        run(tmp_path)
