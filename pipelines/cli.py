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
    for command in (compiler, run):
        command.add_argument("--images", type=Path, help="the file that `make images` wrote: names by digest or tag")
    _profile_command(commands, "config", "print the whole configuration, validated")
    evaluation.add_arguments(commands.add_parser("eval", help=evaluation.__doc__, description=evaluation.__doc__))
    namespace = parser.parse_args(arguments)
    try:
        if getattr(namespace, "images", None):
            use_images(namespace.images)
        {"compile": _compile, "run": _run, "config": _config, "eval": evaluation.run}[namespace.command](namespace)
    except UserError as error:
        print(f"deepcoder: {error}", file=sys.stderr)
        return 1
    return 0


def _profile_command(commands: argparse._SubParsersAction, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--profile", default="demo", help="a name below pipelines/profiles, or a YAML file")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="any configuration key, dotted")
    return parser


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


if __name__ == "__main__":
    sys.exit(main())
