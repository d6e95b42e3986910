"""A small Kubeflow Pipelines API (v2beta1) in this process, which checks what it is sent as the real server does.

The checks of a run are those of the API server's template/v2_template.go: the pipeline and its platform settings must
parse as their protobufs, with a name and a schema version; each parameter must be one of the pipeline's, of its type.
"""

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlparse

from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

_TYPES: dict[str, tuple[type, ...]] = {
    "NUMBER_DOUBLE": (int, float),
    "NUMBER_INTEGER": (int, float),
    "STRING": (str,),
    "BOOLEAN": (bool,),
    "LIST": (list,),
    "STRUCT": (dict,),
}


class InvalidInput(Exception):
    """Becomes status 400, as in the real server."""


class Api:
    """What the server knows."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token
        self.experiments: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []
        self.requests: list[str] = []

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        parts = path.removeprefix("/apis/v2beta1/").split("/")
        match (method, *parts):
            case ("GET", "healthz"):
                return {"multi_user": False}
            case ("GET", "experiments"):
                return {"experiments": _filtered(self.experiments, query)}
            case ("POST", "experiments"):
                self.experiments.append({**body, "experiment_id": str(uuid.uuid4()), "storage_state": "AVAILABLE"})
                return self.experiments[-1]
            case ("GET", "runs"):
                of = [
                    run
                    for run in self.runs
                    if query.get("experiment_id", [run["experiment_id"]]) == [run["experiment_id"]]
                ]
                return {"runs": _filtered(of, query)}
            case ("POST", "runs"):
                self.runs.append(self._run(body))
                return self.runs[-1]
            case ("GET", "runs", run_id):
                return next((run for run in self.runs if run["run_id"] == run_id), None)
        return None

    def _run(self, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("experiment_id") not in {one["experiment_id"] for one in self.experiments}:
            raise InvalidInput("failed to create a run: the experiment does not exist")
        if not body.get("display_name"):
            raise InvalidInput("the run's display name is empty")
        check_pipeline(body.get("pipeline_spec") or {}, body.get("runtime_config", {}).get("parameters", {}))
        now = datetime.now(UTC).isoformat()
        return {**body, "run_id": str(uuid.uuid4()), "state": "PENDING", "created_at": now}


def check_pipeline(document: dict[str, Any], parameters: dict[str, Any]) -> None:
    """Refuse what the server would."""
    spec_json = document.get("pipeline_spec", document)
    try:
        spec = json_format.ParseDict(spec_json, pipeline_spec_pb2.PipelineSpec())
        json_format.ParseDict(document.get("platform_spec", {}), pipeline_spec_pb2.PlatformSpec())
    except json_format.ParseError as error:
        raise InvalidInput(f"invalid v2 pipeline spec: {error}") from error
    if spec.schema_version != "2.1.0":
        raise InvalidInput(f"KFP only supports schema version 2.1.0, but the pipeline spec has {spec.schema_version}")
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", spec.pipeline_info.name):
        raise InvalidInput(f"invalid v2 pipeline spec: name {spec.pipeline_info.name!r}")
    known = spec.root.input_definitions.parameters
    extra = sorted(set(parameters) - set(known))
    if extra:
        raise InvalidInput(f"parameter(s) provided are not required by pipeline: {', '.join(extra)}")
    for name, definition in known.items():
        kind = pipeline_spec_pb2.ParameterType.ParameterTypeEnum.Name(definition.parameter_type)
        if name not in parameters:
            if not definition.is_optional and not definition.HasField("default_value"):
                raise InvalidInput(f"parameter {name} is not optional, yet has neither default value nor value")
        elif not isinstance(parameters[name], _TYPES[kind]) or (
            isinstance(parameters[name], bool) and kind != "BOOLEAN"
        ):
            raise InvalidInput(f"input parameter {name} requires type {kind}")


def _filtered(items: list[dict[str, Any]], query: dict[str, list[str]]) -> list[dict[str, Any]]:
    predicates = json.loads(query["filter"][0])["predicates"] if "filter" in query else []
    for one in predicates:
        if one["operation"] not in (1, "EQUALS"):
            raise InvalidInput(f"unknown operation {one['operation']}")
        value = one.get("stringValue", one.get("string_value"))
        items = [item for item in items if item[one["key"]] == value]
    return items


@contextmanager
def serve(api: Api) -> Iterator[str]:
    """The server's address, while it runs."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            url = urlparse(self.path)
            api.requests.append(f"{self.command} {url.path}")
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            if api.token and self.headers.get("Authorization") != f"Bearer {api.token}":
                return self.reply(401, {"message": "no credentials"})
            try:
                found = api.answer(self.command, url.path, parse_qs(url.query), body)
            except InvalidInput as error:
                return self.reply(400, {"code": 3, "message": f"InvalidInputError: {error}", "details": []})
            return self.reply(404, {"code": 5, "message": "not found"}) if found is None else self.reply(200, found)

        do_GET = do_POST = handle_any

        def reply(self, status: int, value: Any) -> None:
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
