"""The `deepcoder` command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from components.core.errors import UserError
from components.core.images import use_images
from pipelines import eval as evaluation


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, and show a UserError without a traceback; returns the exit status."""
    parser = argparse.ArgumentParser(prog="deepcoder", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    compiler = _profile_command(commands, "compile", "write pipeline.yaml")
    compiler.add_argument("--output", default="pipeline.yaml")
    run = _profile_command(commands, "run", "run the compiled pipeline on this machine")
    run.add_argument("--runner", choices=["subprocess", "docker"], default="subprocess")
    _profile_command(commands, "config", "print the whole configuration, validated")
    submit = _profile_command(commands, "submit", "check a pipeline and send it to Kubeflow Pipelines")
    _submit_options(submit)
    for command in (compiler, run, submit):
        command.add_argument("--images", type=Path, help="the file that `make images` wrote: names by digest or tag")
    _plan_options(_profile_command(commands, "plan", "estimate memory, time and cost of a run on GPUs"))
    evaluation.add_arguments(commands.add_parser("eval", help=evaluation.__doc__, description=evaluation.__doc__))
    namespace = parser.parse_args(arguments)
    try:
        if getattr(namespace, "images", None):
            use_images(namespace.images)
        handlers = {
            "compile": _compile,
            "run": _run,
            "config": _config,
            "eval": evaluation.run,
            "submit": _submit,
            "plan": _plan,
        }
        handlers[namespace.command](namespace)
    except UserError as error:
        print(f"deepcoder: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("deepcoder: interrupted; started again, a run goes on where it stopped", file=sys.stderr)
        return 130
    return 0


def _profile_command(commands: argparse._SubParsersAction, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--profile", default="demo", help="a name below pipelines/profiles, or a YAML file")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="any configuration key, dotted")
    return parser


def _submit_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(profile=None)
    parser.add_argument("--file", help="a compiled pipeline; without it --profile is compiled")
    parser.add_argument("--endpoint", required=True, help="of the KFP API, as http://localhost:8080")
    parser.add_argument("--namespace", help="of a multi-user installation")
    parser.add_argument("--token-file", help="a file that holds a token for the API")
    parser.add_argument("--allow-tags", action="store_true", help="take images that no digest pins")


def _plan_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpus", type=int, required=True, help="how many the cluster has")
    parser.add_argument("--gpu", default="H100", help="a name of pipelines/plan/gpus.yaml, or a YAML file of one")
    parser.add_argument(
        "--assume", action="append", default=[], metavar="key=value", help="see pipelines/plan/hardware.py"
    )
    parser.add_argument("--architecture", help="a model of equal shape, where model_name does not say it")
    parser.add_argument("--json", action="store_true", help="all numbers, assumptions included")


def _compile(namespace: argparse.Namespace) -> None:
    from pipelines.compile import compile_profile, load_profile, warnings

    values, config = load_profile(namespace.profile, namespace.overrides)
    size = compile_profile(values, config, Path(namespace.output))
    print(
        f"{namespace.output}: {size['tasks']} tasks, {size['yaml_bytes'] >> 10} KiB; as an Argo workflow an estimated "
        f"{size['workflow_bytes'] >> 10} KiB of at most 600 KiB"
    )
    for warning in warnings(config):
        print(f"warning: {warning}", file=sys.stderr)


def _run(namespace: argparse.Namespace) -> None:
    from pipelines.compile import local_profile
    from pipelines.local import run_local

    values, config = local_profile(namespace.profile, namespace.overrides)
    run_local(values, config, namespace.runner)


def _config(namespace: argparse.Namespace) -> None:
    from pipelines.compile import load_profile

    _, config = load_profile(namespace.profile, namespace.overrides)
    print(config.model_dump_json(indent=1))


def _submit(namespace: argparse.Namespace) -> None:
    import tempfile

    from pipelines.compile import compile_profile, load_profile
    from pipelines.submit import make_request, submit

    if bool(namespace.file) == bool(namespace.profile):
        raise UserError("submit: give either --file pipeline.yaml or --profile NAME")
    try:
        token = Path(namespace.token_file).read_text().strip() if namespace.token_file else None
    except OSError as error:
        raise UserError(f"--token-file {namespace.token_file}: cannot be read ({error})") from error
    with tempfile.TemporaryDirectory(prefix="deepcoder-") as scratch:
        package = Path(namespace.file or f"{scratch}/pipeline.yaml")
        if namespace.profile:
            compile_profile(*load_profile(namespace.profile, []), package)
        request = make_request(package, namespace.overrides, allow_tags=namespace.allow_tags)
        address = submit(request, namespace.endpoint, namespace=namespace.namespace, token=token)
    print(f"run {request.config.run}, store {request.config.store}")
    print(address)


def _plan(namespace: argparse.Namespace) -> None:
    import json

    from pipelines.plan.plan import make_plan
    from pipelines.plan.table import render, warnings

    plan = make_plan(
        namespace.profile,
        namespace.overrides,
        gpus=namespace.gpus,
        gpu=namespace.gpu,
        assume=namespace.assume,
        architecture=namespace.architecture,
    )
    print(json.dumps({**plan, "warnings": warnings(plan)}, indent=1) if namespace.json else render(plan))


if __name__ == "__main__":
    sys.exit(main())
