"""The manifests, rendered by kustomize: what a schema, a policy or plain arithmetic can say without a cluster."""

from __future__ import annotations

import ipaddress
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubeflow_trainer_api.models import TrainerV1alpha1TrainingRuntime

from components.core.pods import STEPS
from components.core.update_config import PolicyUpdateConfig
from components.policy_update.trainjob_manifest import CONTAINER
from pipelines.compile import load_profile
from pipelines.placement import SANDBOX_LABEL

ROOT = Path(__file__).parents[2]
OVERLAYS = ["overlays/minikube", "overlays/cluster"]
KUBERNETES = "1.36"
"""MutatingAdmissionPolicy is v1 from here on; up.sh starts this version."""

Object = dict[str, Any]
Render = Callable[[str], list[Object]]


def of_kind(objects: list[Object], *kinds: str) -> list[Object]:
    return [thing for thing in objects if thing["kind"] in kinds]


def pod_specs(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    for thing in of_kind(objects, "Deployment", "StatefulSet"):
        yield thing["metadata"]["name"], thing["spec"]["template"]["spec"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_object_fits_its_strict_schema(render: Render, overlay: str) -> None:
    for thing in render(overlay):
        if thing["kind"] == "TrainingRuntime":
            # The models drop what they do not know, so the way there and back shows a wrong field.
            assert TrainerV1alpha1TrainingRuntime.from_dict(thing).to_dict() == thing
        else:
            kubernetes_validate.validate(thing, KUBERNETES, strict=True)


def test_the_schema_refuses_a_misspelt_field(render: Render) -> None:
    (policy, *_) = of_kind(render("overlays/minikube"), "NetworkPolicy")
    policy = {**policy, "spec": {**policy["spec"], "egres": []}}
    with pytest.raises(kubernetes_validate.ValidationError, match="egres"):
        kubernetes_validate.validate(policy, KUBERNETES, strict=True)


def cores(quantity: str) -> float:
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)


def gib(quantity: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)([KMGT]i)", quantity).groups()  # type: ignore[union-attr]
    return float(number) * 1024.0 ** ("KMGT".index(unit[0]) - 2)


def test_minikube_fits_into_4_cores_and_8_gib(render: Render) -> None:
    # Kubeflow Pipelines 2.16, from the table of kubeflow/manifests; Kubernetes' own pods with Calico, from their files.
    cpu, memory = 0.97 + 0.85 + 0.25, 3552 / 1024 + 0.3
    for _, spec in pod_specs(render("overlays/minikube")):
        for container in spec["containers"]:
            cpu += cores(container["resources"]["requests"]["cpu"])
            memory += gib(container["resources"]["requests"]["memory"])
    # Two shards side by side, or one of the other steps, and a driver (100m, 64Mi) for each.
    smoke = load_profile("smoke", [])[1].kubernetes
    for step in STEPS:
        pod = smoke.pod(step)
        beside = 2 if step in ("rollout", "reward") else 1
        assert cpu + beside * (cores(pod.cpu) + 0.1) <= 4, step
        assert memory + beside * (gib(pod.memory) + 0.0625) <= 8, step


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_our_pods_keep_to_the_restricted_pod_security_standard(render: Render, overlay: str) -> None:
    (namespace,) = of_kind(render(overlay), "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    found = dict(pod_specs(render(overlay)))
    assert set(found) == {"mlflow", "postgres"}
    for name, spec in found.items():
        security = spec["securityContext"]
        assert security["runAsNonRoot"], name
        assert security["runAsUser"] > 0, name
        assert security["seccompProfile"]["type"] == "RuntimeDefault", name
        assert not spec["automountServiceAccountToken"], name
        assert all({"emptyDir", "persistentVolumeClaim"} & set(volume) for volume in spec["volumes"]), name
        for container in spec["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False, name
            assert own["readOnlyRootFilesystem"] is True, name
            assert own["capabilities"] == {"drop": ["ALL"]}, name
            assert "memory" in container["resources"]["limits"], name


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_secrets_are_named_and_never_held(render: Render, overlay: str) -> None:
    objects = render(overlay)
    assert not of_kind(objects, "Secret")
    named = {
        (entry["valueFrom"]["secretKeyRef"]["name"], entry["valueFrom"]["secretKeyRef"]["key"])
        for _, spec in pod_specs(objects)
        for container in spec["containers"]
        for entry in container.get("env", [])
        if "secretKeyRef" in entry.get("valueFrom", {})
    }
    assert named == {
        ("mlflow-postgres", "password"),
        ("deepcoder-s3", "AWS_ACCESS_KEY_ID"),
        ("deepcoder-s3", "AWS_SECRET_ACCESS_KEY"),
    }
    readme = (ROOT / "manifests/README.md").read_text()
    for secret, key in named:
        assert secret in readme, "the README says how to make each Secret"
        assert key in readme


def selects(selector: Object, labels: Object) -> bool:
    return selector.get("matchLabels", {}).items() <= labels.items()


def reaches(policy: Object, *, namespace: str = "", labels: Object | None = None, ip: str = "", port: int) -> bool:
    """Whether a NetworkPolicy lets its pods open a TCP connection, by the rules of networking.k8s.io/v1."""
    name = "kubernetes.io/metadata.name"
    own = {"matchLabels": {name: policy["metadata"]["namespace"]}}
    for rule in policy["spec"].get("egress", []):
        ports = rule.get("ports")
        if ports and not any(p.get("port") == port and p.get("protocol", "TCP") == "TCP" for p in ports):
            continue
        for peer in rule.get("to", [{"ipBlock": {"cidr": "0.0.0.0/0"}}]):
            if "ipBlock" in peer:
                if ip and ipaddress.ip_address(ip) in ipaddress.ip_network(peer["ipBlock"]["cidr"]):
                    return True
            elif selects(peer.get("namespaceSelector", own), {name: namespace}) and selects(
                peer.get("podSelector", {}), labels or {}
            ):
                return True
    return False


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_sandbox_pods_reach_the_store_and_their_own_machinery_and_nothing_else(render: Render, overlay: str) -> None:
    (policy,) = [p for p in render(overlay) if p["metadata"]["name"] == "deepcoder-sandbox"]
    spec = policy["spec"]
    assert spec["podSelector"] == {"matchLabels": {SANDBOX_LABEL: "true"}}, "the label that the pipeline puts on"
    assert set(spec["policyTypes"]) == {"Ingress", "Egress"}
    assert not spec.get("ingress")
    assert all(rule.get("to") for rule in spec["egress"]), "a rule without peers allows all"

    assert reaches(policy, namespace="kubeflow", labels={"app": "seaweedfs"}, port=8333)
    assert reaches(policy, namespace="deepcoder", labels={"app.kubernetes.io/name": "mlflow"}, port=5000)
    assert reaches(policy, namespace="kube-system", labels={"k8s-app": "kube-dns"}, port=53)
    assert reaches(policy, namespace="kubeflow", labels={"app": "ml-pipeline"}, port=8887)
    assert reaches(policy, namespace="kubeflow", labels={"component": "metadata-grpc-server"}, port=8080)

    kubernetes = {"overlays/minikube": ("192.168.49.2", 8443), "overlays/cluster": ("10.0.0.1", 443)}[overlay]
    assert reaches(policy, ip=kubernetes[0], port=kubernetes[1])

    assert not reaches(policy, ip="8.8.8.8", port=443)
    assert not reaches(policy, ip="169.254.169.254", port=80), "a cloud's metadata server gives out keys"
    assert not reaches(policy, namespace="deepcoder", labels={"app.kubernetes.io/name": "postgres"}, port=5432)
    assert not reaches(policy, namespace="kubeflow", labels={"app": "mysql"}, port=3306)
    assert not reaches(policy, namespace="kubeflow", labels={SANDBOX_LABEL: "true"}, port=8333)


def test_gvisor_is_put_on_the_pods_that_the_pipeline_labels(render: Render) -> None:
    objects = render("overlays/cluster")
    (policy,) = of_kind(objects, "MutatingAdmissionPolicy")
    (binding,) = of_kind(objects, "MutatingAdmissionPolicyBinding")
    (runtime,) = of_kind(objects, "RuntimeClass")
    constraints = policy["spec"]["matchConstraints"]
    assert constraints["objectSelector"] == {"matchLabels": {SANDBOX_LABEL: "true"}}
    assert constraints["resourceRules"][0]["resources"] == ["pods"]
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    (mutation,) = policy["spec"]["mutations"]
    assert f'runtimeClassName: "{runtime["metadata"]["name"]}"' in mutation["applyConfiguration"]["expression"]


def test_the_training_runtime_is_the_one_that_updates_ask_for(render: Render) -> None:
    (runtime,) = of_kind(render("overlays/cluster"), "TrainingRuntime")
    assert runtime["metadata"]["name"] == PolicyUpdateConfig().training_runtime
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert job["name"] == CONTAINER
    assert [container["name"] for container in job["template"]["spec"]["template"]["spec"]["containers"]] == [CONTAINER]


def test_mlflow_answers_to_its_service_and_to_no_other_name(render: Render) -> None:
    from mlflow.server.security_utils import is_allowed_host_header

    (settings,) = of_kind(render("overlays/cluster"), "ConfigMap")
    hosts = settings["data"]["MLFLOW_SERVER_ALLOWED_HOSTS"].split(",")
    for name in ("mlflow.deepcoder:5000", "mlflow.deepcoder.svc.cluster.local:5000", "localhost:5000"):
        assert is_allowed_host_header(hosts, name), name
    assert not is_allowed_host_header(hosts, "evil.example:5000")


def test_mlflow_s_arguments_are_those_of_its_command_line(render: Render) -> None:
    from mlflow.cli import server

    for overlay in OVERLAYS:
        (deployment,) = of_kind(render(overlay), "Deployment")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["command"] == ["mlflow"]
        name, *arguments = container["args"]
        assert name == server.name
        # Kubernetes leaves a reference that it cannot resolve as it is; each is set here.
        set_here = {entry["name"] for entry in container["env"]} | {"ARTIFACTS_DESTINATION"}
        assert set(re.findall(r"\$\((\w+)\)", " ".join(arguments))) <= set_here
        parsed = server.make_context(name, arguments).params
        assert parsed["host"] == "0.0.0.0"
        assert parsed["serve_artifacts"] is True


def test_images_have_versions_and_mlflow_is_the_one_that_the_steps_use(render: Render) -> None:
    for overlay in OVERLAYS:
        for name, spec in pod_specs(render(overlay)):
            for container in spec["containers"]:
                assert re.search(r":v?\d+\.\d+", container["image"]), name
    version = re.search(r"^mlflow==(.+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert version is not None
    mlflow = dict(pod_specs(render("overlays/cluster")))["mlflow"]
    assert mlflow["containers"][0]["image"] == f"ghcr.io/mlflow/mlflow:v{version[1]}-full"


def test_no_manifest_is_left_out(render: Render) -> None:
    rendered = {(o["kind"], o["metadata"]["name"]) for overlay in OVERLAYS for o in render(overlay)}
    listed = subprocess.run(["git", "ls-files", "manifests"], cwd=ROOT, capture_output=True, text=True, check=True)
    for path in listed.stdout.split():
        if path.endswith(".yaml") and not path.endswith("kustomization.yaml"):
            for thing in yaml.safe_load_all((ROOT / path).read_text()):
                assert (thing["kind"], thing["metadata"]["name"]) in rendered, path
