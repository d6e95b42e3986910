"""Runs an update on the ranks of several pods, as a Kubeflow TrainJob."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from components.core.errors import UserError
from components.core.progress import say
from components.core.store import config_hash
from components.policy_update.cluster import Cluster
from components.policy_update.heartbeat import ALIVE, beating
from components.policy_update.job import Job, Outcome, Report
from components.policy_update.messages import Relay, rank_error
from components.policy_update.pod_logs import PodLogs
from components.policy_update.trainjob_manifest import Object, claim_of, owner, train_job

_POLL_S = 2.0
_COMPLAIN_S = 60.0
_GONE_S = 300.0
_GRACE_S = 20.0


def in_pods(job: Job, report: Report, folder: Path) -> Outcome:
    """Run the job as a TrainJob, and delete that when it is over, for whatever reason.

    Args:
        job: what to do; its paths must be on a volume that the pods share.
        report: hears of it.
        folder: for the messages between the processes, on that volume, too.

    Raises:
        UserError: a rank raised it, the cluster forbids it, or another pod is at this very update.
        RuntimeError: the TrainJob failed otherwise; the message says what is known.
    """
    update, cluster = job.config.policy_update, Cluster()
    pod = cluster.own_pod()
    _need_shared_volume(cluster, pod, job, folder)
    job_file, relay = folder / "job.json", Relay(folder / "events.jsonl", report)
    job.write(job_file)
    name = job_name(job)
    manifest = train_job(pod, name, job.config, job_file)

    def clean() -> None:
        left = cluster.job(name)
        if left is not None and owner(pod) in left["metadata"].get("ownerReferences", []):
            cluster.delete_job(name)
            _until_gone(cluster, name, _GRACE_S)

    with beating(folder / ALIVE), _even_if_terminated(clean):
        _create(cluster, manifest, pod)
        _watch(cluster, name, relay, folder, nodes=update.nodes)
    return Outcome(**json.loads((folder / "outcome.json").read_text()))


def job_name(job: Job) -> str:
    """The same for every try of one update, so that a try finds what an earlier one left."""
    where = [job.config.store, job.config.run, job.stage, job.iteration]
    return f"policy-update-s{job.stage}-i{job.iteration:02d}-{config_hash(where)[:8]}"


def _need_shared_volume(cluster: Cluster, pod: Object, job: Job, folder: Path) -> None:
    inputs = [job.policy, job.optimizer, job.reference, job.critic, *(path for pair in job.shards for path in pair)]
    paths = [folder, Path(job.output), *(Path(path) for path in inputs if path)]
    for claim in sorted({claim for path in paths if (claim := claim_of(pod, path))}):
        modes = cluster.access_modes(claim)
        if job.config.policy_update.nodes > 1 and "ReadWriteMany" not in modes:
            raise UserError(
                f"PersistentVolumeClaim {claim} has access modes {modes}: policy_update.nodes="
                f"{job.config.policy_update.nodes} needs ReadWriteMany. Use such a storage class, or nodes=1."
            )


def _create(cluster: Cluster, manifest: Object, pod: Object) -> None:
    """Create the TrainJob; one that an earlier, dead try left is deleted first: its folder is gone."""
    name = manifest["metadata"]["name"]
    while not cluster.create_job(manifest):
        old = cluster.job(name) or {"metadata": {}}
        for reference in old["metadata"].get("ownerReferences", []):
            its = cluster.pod(reference["name"])
            alive = its and its["metadata"]["uid"] == reference["uid"] and its["status"]["phase"] == "Running"
            if alive and reference["uid"] != pod["metadata"]["uid"]:
                raise UserError(
                    f"pod {reference['name']} is at this very update (TrainJob {name}). Wait for it, or delete it; "
                    "two runs of one configuration on one store need different run_name=."
                )
        say(name, "a TrainJob of an earlier try is still there; deleting it")
        cluster.delete_job(name)
        if not _until_gone(cluster, name, _GONE_S):
            raise RuntimeError(f"TrainJob {name} of an earlier try does not go away: look at its finalizers.")
    say(name, f"TrainJob created in namespace {cluster.namespace}")


def _until_gone(cluster: Cluster, name: str, patience_s: float) -> bool:
    end = time.monotonic() + patience_s
    while cluster.job(name) is not None:
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S / 4)
    return True


def _watch(cluster: Cluster, name: str, relay: Relay, folder: Path, *, nodes: int) -> None:
    """Pass on logs and events until the TrainJob is complete.

    Raises:
        UserError, RuntimeError: it failed.
    """
    logs, complained = PodLogs(cluster), time.monotonic()
    while True:
        job, pods = cluster.job(name), cluster.pods(name)
        logs.follow(pods)
        relay.pass_on()
        if job is None:
            raise RuntimeError(f"TrainJob {name} was deleted by someone else.")
        true = {c["type"]: c for c in job.get("status", {}).get("conditions", []) if c["status"] == "True"}
        if "Complete" in true or "Failed" in true:
            logs.finish()
            relay.pass_on()
            if "Failed" in true:
                raise _failure(folder, name, true["Failed"], cluster.pods(name))
            return
        if all(pod["status"].get("phase") == "Running" for pod in pods) and len(pods) == nodes:
            complained = time.monotonic()
        elif time.monotonic() - complained > _COMPLAIN_S:
            complained = time.monotonic()
            say(name, f"waiting for pods: {_waiting_for(pods, nodes)}")
        time.sleep(_POLL_S)


def _waiting_for(pods: list[Object], nodes: int) -> str:
    if not pods:
        return "there is none. Is Kubeflow Trainer's controller running, and is there quota?"
    running = sum(pod["status"].get("phase") == "Running" for pod in pods)
    reasons = []
    for pod in pods:
        for condition in pod["status"].get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                reasons.append(condition.get("message", condition.get("reason", "")))
        for container in pod["status"].get("containerStatuses", []):
            waiting = container["state"].get("waiting", {})
            reasons.append(f"{waiting.get('reason', '')} {waiting.get('message', '')}".strip())
    return f"{running} of {nodes} run. {'; '.join(sorted(set(filter(None, reasons))))}".strip()


def _failure(folder: Path, name: str, condition: Object, pods: list[Object]) -> Exception:
    """The best explanation there is: of a peer that was preempted, the other ranks say only that it is lost."""
    said = rank_error(folder)
    if isinstance(said, UserError):
        return said
    lost, ends = [], []
    for pod in pods:
        pod_name, status = pod["metadata"]["name"], pod["status"]
        for disruption in status.get("conditions", []):
            if disruption["type"] == "DisruptionTarget" and disruption["status"] == "True":
                lost.append(f"{pod_name} was preempted or evicted ({disruption.get('message', '')})")
        for container in status.get("containerStatuses", []):
            end = container["state"].get("terminated", {})
            if end.get("exitCode"):
                ends.append(f"{pod_name} ended with code {end['exitCode']} ({end.get('reason', '')})")
    if said is not None and not lost:
        return said
    hint = ""
    if any("OOMKilled" in end for end in ends):
        hint = " Lower policy_update.ppo_max_token_len_per_gpu or set policy_update.gradient_checkpointing=true."
    return RuntimeError(
        f"TrainJob {name} failed ({condition.get('reason', '')}: {condition.get('message', '')}): "
        f"{'; '.join(lost or ends) or 'no pod says why'}.{hint}"
    )


@contextmanager
def _even_if_terminated(clean: Callable[[], None]) -> Iterator[None]:
    """Clean up at the end, also when the step is terminated: SIGTERM becomes an exception, and is too late after it."""
    in_main = threading.current_thread() is threading.main_thread()

    def leave(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave) if in_main else None
    try:
        yield
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            clean()
        finally:
            if in_main:
                signal.signal(signal.SIGTERM, before)
