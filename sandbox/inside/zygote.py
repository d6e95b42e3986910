"""The process that forks candidates: exec'ed without any test data, it never reads a candidate nor judges one.

Started as `python -S -s -P -B -c BOOT CONTROL STDIN STDOUT CONFIG`, with three descriptors: the control socket to the
judge and the two memory files that are a child's standard input and output.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import json
import os
import resource
import select
import signal
import socket
import sys
from typing import Any

from . import child, lockdown, real, wire

# Cheap to hold, and imported by most programs; the rest of the standard library stays importable.
# fmt: off
_PRELOADED = (
    "abc", "array", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal",
    "enum", "fractions", "functools", "gc", "heapq", "io", "itertools", "json", "math", "numbers", "operator", "os",
    "queue", "random", "re", "signal", "statistics", "string", "struct", "sys", "textwrap", "threading", "time",
    "types", "typing",
)
_SHARED_LIBRARIES = (
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
    "/lib64", "/usr/lib64",
)
# fmt: on
_READABLE_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/dev/null")


def standard_library() -> list[str]:
    """Every entry of the standard library's folder but the installed packages, which may hold data."""
    root = os.path.dirname(os.__file__)
    names = [name for name in os.listdir(root) if name not in ("site-packages", "dist-packages")]
    return [os.path.join(root, name) for name in names]


def load_packages(site: str, packages: list[str]) -> list[str]:
    """Make third-party packages importable after Landlock closes their parent folder; the paths to leave readable."""
    if not site:
        return []
    sys.path.append(site)
    readable: list[str] = []
    for name in packages:
        spec = importlib.util.find_spec(name)  # also fills the finder's cache, which cannot be read later
        if spec is None or spec.origin is None:
            continue
        places = spec.submodule_search_locations
        readable += list(places) if places else [spec.origin]
        if os.path.isdir(libraries := os.path.join(site, f"{name}.libs")):
            readable.append(libraries)
    if "numpy" in packages:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a thread pool does not survive a fork
        importlib.import_module("numpy")
    return readable


class Zygote:
    """Serves one child at a time to the judge at the other end of the control socket."""

    def __init__(self, control: int, stdin: int, stdout: int, config: dict[str, Any]) -> None:
        self._control = socket.socket(fileno=control)
        self._stdin, self._stdout = stdin, stdout
        self._null = os.open("/dev/null", os.O_RDWR)
        for name in _PRELOADED:
            importlib.import_module(name)
        readable = load_packages(config["site"], config["packages"])
        sys.set_int_max_str_digits(real.INT_DIGITS)
        self._interpreter = real.Interpreter()
        os.environ.clear()
        os.chdir("/")
        self._fork = ctypes.PyDLL(None).fork
        self._lock = lockdown.ChildLock()
        readable += [*standard_library(), *_SHARED_LIBRARIES, *_READABLE_FILES]
        self.layers = lockdown.enter_zygote(
            readable, config["private_uid"], config["parent"], landlock=config["landlock"]
        )
        self._pid = os.getpid()

    def serve(self) -> None:
        """Until the judge closes the socket."""
        gc.collect()
        gc.freeze()
        gc.disable()
        self._send({"ready": self.layers.as_dict()})
        while True:
            message, fds, _, _ = socket.recv_fds(self._control, 1 << 16, 1)
            if not message:
                return
            order = json.loads(message)
            if "job" in order:
                self._one_child(wire.Job(**order["job"]), fds[0])

    def _send(self, report: dict[str, Any]) -> None:
        self._control.send(json.dumps(report).encode("ascii"))

    def _one_child(self, job: wire.Job, data: int) -> None:
        # Not os.fork: its after-fork hooks cost more than the fork, and this process has one thread.
        pid = self._fork()
        if pid == 0:
            if job.mode == "lcb":  # its stdin and stdout are mocks, and the real ones are empty
                child.place_fds(self._null, self._null, self._null, data)
            else:
                child.place_fds(self._stdin, self._stdout, self._null, data)
            child.child_main(job, self._interpreter, self._lock, self._pid)
        os.close(data)
        if pid < 0:
            self._send({"failed": "fork"})
            return
        self._send({"pid": pid})
        self._send(self._wait(pid))

    def _wait(self, pid: int) -> dict[str, Any]:
        """Until the child is gone; any message in the meantime is the order to kill it."""
        handle = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while not any(fd == handle for fd, _ in poll.poll()):
            os.kill(pid, signal.SIGKILL)
            if not self._control.recv(1 << 16):
                poll.unregister(self._control)  # the judge is gone: reap, then leave
        os.close(handle)
        _, status, usage = os.wait4(pid, 0)
        return {"exit": status, "cpu_s": usage.ru_utime + usage.ru_stime, "rss_kb": usage.ru_maxrss}


def main(arguments: list[str]) -> None:
    """Entry point of the exec'ed process."""
    config = arguments[3]
    control, stdin, stdout = (int(value) for value in arguments[:3])
    sys.argv[:] = ["sol.py"]
    sys.orig_argv[:] = [sys.executable, "sol.py"]
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = lockdown.STACK_BYTES if hard == resource.RLIM_INFINITY else min(lockdown.STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (max(soft, wanted) if soft != resource.RLIM_INFINITY else wanted, hard))
    Zygote(control, stdin, stdout, json.loads(config)).serve()
