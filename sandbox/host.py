"""The judge's side of one zygote: starting it, having it fork a child, watching that child from outside."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import socket
import subprocess
import sys
import sysconfig
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .inside.lockdown import MAX_THREADS
from .inside.wire import Job

# The folder goes away again at once: a candidate must not import the sandbox's own modules by name.
_BOOT = "import sys; sys.path.insert(0, {!r}); from inside import zygote; del sys.path[0]; zygote.main(sys.argv[1:])"
_START_TIMEOUT_S = 60.0
_REPLY_TIMEOUT_S = 30.0
_PRIVATE_UIDS = 1_000_000_000

PACKAGES = ("numpy", "scipy", "pandas", "dateutil", "pytz", "six", "sortedcontainers", "networkx", "sympy", "mpmath")
"""Third-party packages that a candidate may import where they are installed."""


class HostError(RuntimeError):
    """A zygote did not start, or went away: no fault of a candidate's."""


@dataclass(frozen=True)
class HostConfig:
    """How zygotes are started."""

    python: str = sys.executable
    landlock: bool = True
    with_packages: bool = False
    """Let candidates import PACKAGES; such a zygote is larger and forks more slowly."""


def installed_packages() -> list[str]:
    """Which of PACKAGES this interpreter has."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is not None]


class Host:
    """One zygote and the two memory files that its children have as standard input and output."""

    def __init__(self, config: HostConfig, number: int) -> None:
        self.config = config
        self.pid: int | None = None
        """The child now running, if any."""
        self.layers: dict[str, Any] = {}
        self.stdin = os.memfd_create("stdin", os.MFD_CLOEXEC)
        self.stdout = os.memfd_create("stdout", os.MFD_CLOEXEC)
        self._errors = os.memfd_create("stderr", os.MFD_CLOEXEC)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        packages = installed_packages() if config.with_packages else []
        settings = {
            "parent": os.getpid(),
            "private_uid": _PRIVATE_UIDS + (os.getpid() * 1024 + number) % 1_000_000_000,
            "landlock": config.landlock,
            "site": sysconfig.get_paths()["purelib"] if packages else "",
            "packages": packages,
        }
        fds = (theirs.fileno(), self.stdin, self.stdout)
        boot = _BOOT.format(str(Path(__file__).resolve().parent))
        command = [config.python, "-S", "-s", "-P", "-B", "-c", boot, *map(str, fds), json.dumps(settings)]
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=fds,
                env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
                cwd="/",
            )

    def wait_ready(self) -> None:
        """Block until the zygote has taken its layers; HostError with its own words if it did not."""
        if not self._wait_readable(_START_TIMEOUT_S):
            raise HostError(f"a zygote was not ready after {_START_TIMEOUT_S:.0f} s: {self._last_words()}")
        self.layers = self.receive()["ready"]

    def _last_words(self) -> str:
        return os.pread(self._errors, 4000, 0).decode("utf-8", "replace").strip()[-600:]

    def launch(self, job: Job) -> socket.socket:
        """Fork a child for a program; the judge's end of its data socket, not blocking."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                socket.send_fds(self.control, [json.dumps({"job": asdict(job)}).encode("ascii")], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise HostError(f"zygote gone: {error}: {self._last_words()}") from None
        ours.setblocking(False)
        return ours

    def has_report(self) -> bool:
        """Whether `receive` would return at once."""
        return self._wait_readable(0)

    def _wait_readable(self, seconds: float) -> bool:
        poll = select.poll()  # select() cannot take descriptors above 1023
        poll.register(self.control, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def receive(self) -> dict[str, Any]:
        """The zygote's next report, waited for; HostError if it is gone."""
        if not self._wait_readable(_REPLY_TIMEOUT_S):
            raise HostError(f"a zygote has not answered for {_REPLY_TIMEOUT_S:.0f} s")
        try:
            message = self.control.recv(1 << 16)
        except OSError as error:
            raise HostError(f"zygote gone: {error}") from None
        if not message:
            raise HostError(f"zygote gone: {self._last_words()}")
        report: dict[str, Any] = json.loads(message)
        if "failed" in report:
            raise HostError(f"a zygote could not {report['failed']}")
        if "pid" in report:
            self.pid = report["pid"]
        elif "exit" in report:
            self.pid = None
        return report

    def kill_child(self) -> None:
        """Have the zygote kill its child; its exit report follows."""
        try:
            self.control.send(b'{"kill": 1}')
        except OSError as error:
            raise HostError(f"zygote gone: {error}") from None

    def set_input(self, data: bytes) -> None:
        """Make `data` the standard input, and the standard output empty."""
        os.ftruncate(self.stdin, 0)
        view = memoryview(data)
        position = 0
        while position < len(view):
            position += os.pwrite(self.stdin, view[position:], position)
        os.lseek(self.stdin, 0, os.SEEK_SET)
        os.ftruncate(self.stdout, 0)
        os.lseek(self.stdout, 0, os.SEEK_SET)

    def output_size(self) -> int:
        """Bytes on standard output so far."""
        return os.fstat(self.stdout).st_size

    def output(self, limit: int) -> bytes:
        """What is on standard output, up to `limit` bytes."""
        return os.pread(self.stdout, limit, 0)

    def cpu_seconds(self) -> float:
        """CPU time of the child so far, 0 when it is gone."""
        if self.pid is None:
            return 0.0
        try:
            # The kernel's encoding of "the CPU clock of process PID"; no permission is needed to read it.
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            return 0.0

    def waited_seconds(self) -> float:
        """How long the child was ready to run and had no core, by its worst thread; 0 where the kernel does not say."""
        worst = 0
        try:
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                with open(f"/proc/{self.pid}/task/{thread}/schedstat", encoding="ascii") as stat:
                    worst = max(worst, int(stat.read().split()[1]))
        except (OSError, ValueError, IndexError):
            pass
        return worst / 1e9

    def too_many_threads(self) -> bool:
        """Whether the child has more threads than one may have."""
        try:
            with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as stat:
                return int(stat.read().rpartition(")")[2].split()[17]) > MAX_THREADS
        except (OSError, ValueError, IndexError):
            return False

    def close(self) -> None:
        """End the zygote, and by its death signal the child; leaves no process and no descriptor."""
        self.control.close()
        try:
            self._process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for fd in (self.stdin, self.stdout, self._errors):
            os.close(fd)
