"""Sends a compiled pipeline to Kubeflow Pipelines, after everything has been checked that can be checked before."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from components.core.config import Config
from components.core.errors import UserError
from components.core.resolve import GRAPH_KEYS, resolve, scalar
from pipelines.compile import measure, too_large
from pipelines.deepcoder import configuration_key

_OVERRIDES = "overrides"
_ACTIVE = ("PENDING", "RUNNING", "PAUSED", "CANCELING")


@dataclass(frozen=True)
class Request:
    """A run that may be sent."""

    package: Path
    parameters: dict[str, Any]
    """Pipeline parameters that differ from the compiled ones, `overrides` among them."""
    config: Config
    """What the first step of the run will resolve."""


def make_request(package: Path, pairs: list[str], *, allow_tags: bool = False) -> Request:
    """Check a compiled pipeline and the `key=value` texts for it.

    A key that is a pipeline parameter becomes one, any other goes into the parameter `overrides`, as when a person
    clones the run in the UI.

    Args:
        package: the compiled pipeline.
        pairs: `key=value` texts, keys dotted.
        allow_tags: take images that are named by a tag, for a cluster whose images were loaded by hand.

    Raises:
        UserError: the file is no compiled pipeline of ours or too large, an image is not pinned, a key shapes the graph
            or is unknown, a value is wrong, or the store would be lost with each pod.
    """
    document = _read(package)
    if excess := too_large(measure(package)):
        raise UserError(f"{package}: {excess}. Compile it again with fewer iterations")
    if not allow_tags:
        _check_images(document)
    known = document["root"]["inputDefinitions"]["parameters"]
    parameters = _split(pairs, known)
    profile, constants = _compiled(document, package)
    values = {name: parameters.get(name, definition.get("defaultValue")) for name, definition in known.items()}
    overrides = values.pop(_OVERRIDES, None) or {}
    config = resolve(
        profile, {configuration_key(name): values[name] for name in constants if name in values}, overrides
    )
    if not config.store.startswith(("s3://", "/")):
        raise UserError(
            f"store={config.store}: a relative directory is another one in each pod. Give s3://bucket/prefix, or the "
            "path of a volume that all pods mount"
        )
    return Request(package, parameters, config)


def submit(request: Request, endpoint: str, *, namespace: str | None = None, token: str | None = None) -> str:
    """Create the run; returns its address in the UI.

    The KFP experiment has the configuration's name for it, the run has the name of its folder in the store: the same
    configuration is the same run, and a second one finds what the first had completed.

    Args:
        request: what to send.
        endpoint: of the KFP API.
        namespace: of a multi-user installation.
        token: for the API, if it asks for one.

    Raises:
        UserError: the API does not answer or refuses, or a run of this configuration is active.
    """
    import kfp
    import kfp_server_api
    import urllib3

    _reach(endpoint, token)
    try:
        with redirect_stdout(io.StringIO()):  # the client prints addresses of its own
            client = kfp.Client(host=endpoint, namespace=namespace or "kubeflow", existing_token=token)
            experiment = client.create_experiment(request.config.experiment, namespace=namespace)
            _refuse_second(client, experiment.experiment_id, request.config.run)
            run = client.run_pipeline(
                experiment.experiment_id, request.config.run, str(request.package), params=request.parameters
            )
    except kfp_server_api.ApiException as error:
        raise UserError(f"{endpoint}: the API refused ({error.status} {error.reason}): {_message(error)}") from error
    except urllib3.exceptions.HTTPError as error:
        raise UserError(f"{endpoint}: the connection broke ({error})") from error
    return f"{endpoint.rstrip('/')}/#/runs/details/{run.run_id}"


def _read(package: Path) -> dict[str, Any]:
    try:
        document = next(yaml.load_all(package.read_text(), yaml.CSafeLoader))
        if "deploymentSpec" in document and "parameters" in document["root"]["inputDefinitions"]:
            return dict(document)
    except OSError as error:
        raise UserError(f"{package}: cannot be read ({error}); `deepcoder compile` writes it") from error
    except (yaml.YAMLError, StopIteration, KeyError, TypeError):
        pass
    raise UserError(f"{package}: not a compiled pipeline; `deepcoder compile` writes one")


def _check_images(document: dict[str, Any]) -> None:
    images = {
        one["container"]["image"] for one in document["deploymentSpec"]["executors"].values() if "container" in one
    }
    loose = sorted(image for image in images if "@sha256:" not in image)
    if loose:
        raise UserError(
            f"images without a digest: {', '.join(loose)}. What a tag means may change while the run is going on. "
            "Compile again with --images, the file of digests that `make images` writes, or pass --allow-tags"
        )


def _split(pairs: list[str], known: dict[str, Any]) -> dict[str, Any]:
    """Pipeline parameters, the rest below `overrides`."""
    parameters: dict[str, Any] = {}
    overrides: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UserError(f"{pair!r}: write key=value, for example learning_rate=1e-6")
        for shape in GRAPH_KEYS:
            if key == shape or key.startswith(f"{shape}."):
                raise UserError(
                    f"{key}: shapes the graph, which is fixed in a compiled pipeline. Compile again with it: deepcoder "
                    f"compile --profile NAME {key}=..."
                )
        value = scalar(text)
        name = next((one for one in known if key in (one, configuration_key(one))), None)
        if name == _OVERRIDES:
            if not isinstance(value, dict):
                raise UserError(f"{pair}: overrides are a mapping of configuration keys to values, as JSON")
            overrides |= value
        elif name is None:
            overrides[key] = value
        else:
            kind = known[name]["parameterType"]
            parameters[name] = text if kind == "STRING" else _number(name, value, kind)
    return {**parameters, **({_OVERRIDES: overrides} if overrides else {})}


def _number(name: str, value: Any, kind: str) -> int | float:
    """A number as the API will take it.

    Raises:
        UserError: it is of another type.
    """
    if name == "max_steps" and value is None:
        return 0
    if isinstance(value, int | float) and not isinstance(value, bool):
        if kind == "NUMBER_DOUBLE":
            return float(value)
        if float(value).is_integer():
            return int(value)
    raise UserError(f"{name}={value}: the pipeline's parameter is a {kind}")


def _compiled(document: dict[str, Any], package: Path) -> tuple[dict[str, Any], list[str]]:
    """The profile that a pipeline carries, and the names of the parameters that its first step takes."""
    for task in document["root"]["dag"]["tasks"].values():
        inputs = task.get("inputs", {}).get("parameters", {})
        if "profile" in inputs:
            taken = [name for name, source in inputs.items() if "componentInputParameter" in source]
            return json.loads(inputs["profile"]["runtimeValue"]["constant"]), taken
    raise UserError(f"{package}: a pipeline, but none that `deepcoder compile` wrote: it carries no profile")


def _reach(endpoint: str, token: str | None) -> None:
    """One short question, since the client asks five times and shows each failure."""
    import httpx2

    if not endpoint.startswith(("http://", "https://")):
        raise UserError(f"--endpoint {endpoint}: write it with http:// or https://")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx2.get(f"{endpoint.rstrip('/')}/apis/v2beta1/healthz", headers=headers, timeout=20)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise UserError(
            f"{endpoint}: does not answer ({type(error).__name__}). Is the port forwarded? kubectl port-forward "
            "-n kubeflow svc/ml-pipeline-ui 8080:80"
        ) from error
    if answer.status_code in (401, 403):
        raise UserError(f"{endpoint}: asks for credentials ({answer.status_code}); give a token with --token-file")
    if not answer.is_success:
        raise UserError(f"{endpoint}: no Kubeflow Pipelines API there (healthz answers {answer.status_code})")


def _refuse_second(client: Any, experiment_id: str, name: str) -> None:
    """Two active runs of one configuration would write the same folders."""
    equals = {"operation": 1, "key": "display_name", "stringValue": name}
    found = client.list_runs(
        experiment_id=experiment_id,
        filter=json.dumps({"predicates": [equals]}),
        page_size=20,
        sort_by="created_at desc",
    )
    active = [run for run in found.runs or [] if run.display_name == name and run.state in _ACTIVE]
    if active:
        raise UserError(
            f"a run of this configuration is {active[0].state.lower()} already ({active[0].run_id}); it writes to "
            f"runs/{name}. Terminate it first, or change seed= or run_name="
        )


def _message(error: Any) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (ValueError, TypeError, KeyError):
        return str(error.body)[:500]
