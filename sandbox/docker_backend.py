"""An outer wall: the grader itself runs in a container without network, capabilities or a writable file.

The container's process is `python -m sandbox grade - -`; programs go in and verdicts come out through its standard
streams, so that no folder is shared and the engine may be remote. Its user, seccomp profile and limits are those of a
restricted pod, and inside it the same layers hold every candidate.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .model import Mode

if TYPE_CHECKING:
    from docker.models.containers import Container

_PACKAGE = Path(__file__).resolve().parent


class ContainerError(RuntimeError):
    """The grader in the container ended before all verdicts were there; its last words are in the message."""


@dataclass(frozen=True)
class ContainerSettings:
    """The container that a grader runs in."""

    image: str
    """An image with Python 3.11 or newer and, unless `mount_package`, this package."""
    memory_bytes: int = 4 << 30
    """For the grader and all its candidates together."""
    processes: int = 1024
    """Processes and threads together."""
    mount_package: bool = False
    """Mount this package's folder read-only, for an image that lacks it; needs an engine on this machine."""
    python: str = "python3"
    """The interpreter in the image."""


def _command(settings: ContainerSettings, mode: Mode, workers: int | None, early_exit: bool, weak: bool) -> list[str]:
    command = [settings.python, "-B", "-m", "sandbox", "grade", "-", "-", "--mode", mode]
    if workers is not None:
        command += ["--workers", str(workers)]
    return command + ["--all-tests"] * (not early_exit) + ["--allow-weak"] * weak


def _start(settings: ContainerSettings, command: list[str]) -> Container:
    import docker

    volumes = {str(_PACKAGE): {"bind": "/opt/grader/sandbox", "mode": "ro"}} if settings.mount_package else {}
    environment = {"PYTHONPATH": "/opt/grader"} if settings.mount_package else {}
    return docker.from_env().containers.create(
        settings.image,
        command,
        stdin_open=True,
        user="65534:65534",
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        mem_limit=settings.memory_bytes,
        memswap_limit=settings.memory_bytes,
        pids_limit=settings.processes,
        volumes=volumes,
        environment=environment,
    )


def _feed(container: Container, programs: Iterable[Any], failures: list[BaseException]) -> None:
    stream = container.attach_socket(params={"stdin": 1, "stream": 1})
    try:
        for program in programs:
            stream._sock.sendall(json.dumps(program).encode("ascii") + b"\n")
    except BrokenPipeError:
        pass  # the grader has left; the reader says why
    except BaseException as error:
        failures.append(error)
    finally:
        # End of input; the connection itself stays, since its end would count as our leaving.
        stream._sock.shutdown(1)
        stream.close()


def _lines(chunks: Iterable[tuple[bytes | None, bytes | None]], errors: bytearray) -> Iterator[bytes]:
    """Whole lines of standard output; standard error is kept aside, its end only."""
    rest = b""
    for out, err in chunks:
        if err:
            errors += err
            del errors[:-4000]
        *whole, rest = (rest + (out or b"")).split(b"\n")
        yield from whole


def grade_in_container(
    programs: Iterable[Any],
    settings: ContainerSettings,
    *,
    mode: Mode = "real",
    workers: int | None = None,
    early_exit: bool = True,
    allow_weak: bool = False,
) -> Iterator[dict[str, Any]]:
    """As `grade`, in a container that is removed at the end, however it comes.

    Raises ContainerError if the grader ends early, and docker's own errors if there is no engine or no image.
    """
    container = _start(settings, _command(settings, mode, workers, early_exit, allow_weak))
    failures: list[BaseException] = []
    errors = bytearray()
    try:
        chunks = container.attach(stdout=True, stderr=True, stream=True, logs=True, demux=True)
        container.start()
        feeder = threading.Thread(target=_feed, args=(container, programs, failures), daemon=True)
        feeder.start()
        for line in _lines(chunks, errors):
            yield json.loads(line)
        status = container.wait()["StatusCode"]
        if failures:
            raise failures[0]
        if status != 0:
            words = errors.decode("utf-8", "replace").strip()
            raise ContainerError(f"the grader in {settings.image} ended with status {status}: {words[-1500:]}")
    finally:
        container.remove(force=True)
