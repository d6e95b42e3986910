"""`python -m sandbox grade IN.jsonl OUT.jsonl`: grade a file of programs, or go on with one."""

from __future__ import annotations

import argparse
import sys

from .api import WeakSandboxError
from .docker_backend import ContainerError, ContainerSettings
from .files import grade_file
from .model import VERDICTS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description="Grade untrusted Python programs.")
    commands = parser.add_subparsers(dest="command", required=True)
    grade = commands.add_parser("grade", help="grade a JSON-lines file; a rerun goes on after the rows already in OUT")
    grade.add_argument("programs", metavar="IN.jsonl", help="a program a line; - is standard input")
    grade.add_argument("verdicts", metavar="OUT.jsonl", help="verdicts are appended; - is standard output")
    _add_grading_options(grade)
    return parser


def _add_grading_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", choices=("real", "lcb"), default="real", help="semantics (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=None, metavar="N", help="lanes (default: one a core)")
    parser.add_argument("--all-tests", action="store_true", help="do not stop at a program's first failing test")
    parser.add_argument(
        "--allow-weak", action="store_true", help="score although a layer is not in force; every verdict records it"
    )
    parser.add_argument("--container", metavar="IMAGE", help="grade in a container of this image (needs Docker)")
    parser.add_argument(
        "--mount-package", action="store_true", help="mount this package into the container, if the image lacks it"
    )


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0, or 2 with the reason on standard error where nothing may be scored or a file is not to be had."""
    options = _parser().parse_args(arguments)
    container = None
    if options.container:
        container = ContainerSettings(options.container, mount_package=options.mount_package)
    try:
        counts = grade_file(
            options.programs,
            options.verdicts,
            mode=options.mode,
            workers=options.workers,
            early_exit=not options.all_tests,
            allow_weak=options.allow_weak,
            container=container,
        )
    except (WeakSandboxError, ContainerError) as error:
        print(f"nothing may be scored: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename or 'the files'}: {error.strerror or error}", file=sys.stderr)
        return 2
    print("  ".join(f"{name} {counts[name]}" for name in VERDICTS if counts[name]), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
