"""The layers that hold a candidate: privileges, Landlock, rlimits and seccomp, by direct system calls.

The zygote takes the layers that its children inherit (`enter_zygote`); a child adds the limits of its program and the
strict filter (`enter_child`), after which nothing of it can be undone.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from dataclasses import asdict, dataclass, field

from .syscalls import build_filter

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 22, 38, 47
_SECCOMP_MODE_FILTER = 2
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522

# The same numbers on every architecture.
_CLOSE_RANGE = 436
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_READ_FILE, _LANDLOCK_READ_DIR = 1 << 2, 1 << 3
_FS_RIGHTS_BY_ABI = {1: 1 << 13, 2: 1 << 14, 3: 1 << 15, 4: 1 << 15, 5: 1 << 16}
_CAPGET_CAPSET = {"x86_64": 126, "aarch64": 91}

MAX_THREADS = 128
"""Threads of one candidate; where the uid is private RLIMIT_NPROC holds it, elsewhere the judge watches."""
MAX_FDS = 64
STACK_BYTES = 120 << 20
"""Soft stack limit: recursion through C code goes deep in contests. The kernel leaves 128 MiB at the least below the
stack, whatever the limit was at exec."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


@dataclass
class Layers:
    """Which layers are in force in a zygote; the self-test and the run's record read it."""

    no_new_privs: bool = False
    not_dumpable: bool = False
    landlock_abi: int = 0
    uid: int = -1
    private_uid: bool = False
    capabilities_dropped: bool = False
    problems: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return asdict(self)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, arg: int = 0, arg3: int = 0) -> None:
    unsigned = ctypes.c_ulong
    zero = unsigned(0)
    _check(_libc.prctl(option, unsigned(arg), unsigned(arg3), zero, zero), f"prctl({option})")


def set_not_dumpable() -> None:
    """Close /proc/PID/mem, ptrace and process_vm_readv of this process to others of the same uid."""
    _prctl(_PR_SET_DUMPABLE, 0)


def set_dumpable() -> None:
    """Undo set_not_dumpable, in a process that no candidate shares the machine with any more."""
    _prctl(_PR_SET_DUMPABLE, 1)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` dies; exit at once if it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _others_may_read(path: str) -> bool:
    """Whether an unrelated uid reaches a directory: every step must be searchable by others."""
    while path != "/":
        if not os.stat(path).st_mode & 0o005:
            return False
        path = os.path.dirname(path)
    return True


def leave_root(private_uid: int, paths: list[str], layers: Layers) -> None:
    """Take an unprivileged uid where root may; always give up every capability.

    Where the standard library lies in a folder closed to others, the uid stays 0, without capabilities: the other
    layers hold all the same, and the judge watches the number of threads instead of RLIMIT_NPROC.
    """
    if os.geteuid() == 0:
        if all(_others_may_read(path) for path in paths):
            for uid in (private_uid, 65534):
                try:
                    os.setgroups([])
                    os.setresgid(uid, uid, uid)
                    os.setresuid(uid, uid, uid)
                except OSError as error:  # an id that this user namespace does not map
                    layers.problems.append(f"setuid({uid}): {error.strerror}")
                else:
                    layers.private_uid = uid == private_uid
                    break
        if os.geteuid() == 0:
            for capability in range(64):
                try:
                    _prctl(_PR_CAPBSET_DROP, capability)
                except OSError:
                    break
    _drop_capabilities()
    layers.capabilities_dropped = True
    layers.uid = os.getuid()


def _drop_capabilities() -> None:
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    number = _CAPGET_CAPSET[platform.machine()]
    _check(_libc.syscall(ctypes.c_long(number), header, bytes(24)), "capset")


def landlock_abi() -> int:
    """The kernel's Landlock version, 0 without it."""
    version = _libc.syscall(
        ctypes.c_long(_LANDLOCK_CREATE), ctypes.c_void_p(None), ctypes.c_size_t(0), ctypes.c_uint32(1)
    )
    return max(0, int(version))


def restrict_files(readable: list[str], abi: int) -> None:
    """Landlock: reading below the given paths stays, every other use of the file system and of TCP ends."""
    fs_rights = max(bits for version, bits in _FS_RIGHTS_BY_ABI.items() if version <= abi) - 1
    net_rights = 0b11 if abi >= 4 else 0
    scopes = 0b11 if abi >= 6 else 0
    attributes = struct.pack("QQQ", fs_rights, net_rights, scopes)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = _check(
        _libc.syscall(ctypes.c_long(_LANDLOCK_CREATE), attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)),
        "landlock_create_ruleset",
    )
    for path in readable:
        try:
            target = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        rights = _LANDLOCK_READ_FILE | (_LANDLOCK_READ_DIR if os.path.isdir(path) else 0)
        rule = struct.pack("=Qi", rights, target)
        number, kind = ctypes.c_long(_LANDLOCK_ADD), ctypes.c_int(1)
        added = _libc.syscall(number, ctypes.c_int(ruleset), kind, rule, ctypes.c_uint32(0))
        _check(added, f"landlock_add_rule({path})")
        os.close(target)
    _check(
        _libc.syscall(ctypes.c_long(_LANDLOCK_RESTRICT), ctypes.c_int(ruleset), ctypes.c_uint32(0)),
        "landlock_restrict_self",
    )
    os.close(ruleset)


def close_from(first: int) -> None:
    """Close every descriptor from `first` on, also those above the limit on their number."""
    last = ctypes.c_uint(0xFFFFFFFF)
    _check(_libc.syscall(ctypes.c_long(_CLOSE_RANGE), ctypes.c_uint(first), last, ctypes.c_uint(0)), "close_range")


def _limit(which: int, soft: int) -> None:
    """Lower a limit for good; one already below stays."""
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(which, (soft, soft))


def virtual_bytes() -> int:
    """Address space of this process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()


def enter_zygote(readable: list[str], private_uid: int, parent: int, *, landlock: bool = True) -> Layers:
    """Take every layer that children inherit. What could not be had is in the result's `problems`."""
    layers = Layers()
    leave_root(private_uid, [path for path in sys.path if os.path.isdir(path)], layers)
    die_with_parent(parent)  # after the change of uid, which clears it
    set_not_dumpable()
    layers.not_dumpable = True
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_MEMLOCK, 0)
    _limit(resource.RLIMIT_MSGQUEUE, 0)
    _limit(resource.RLIMIT_NOFILE, MAX_FDS)
    if layers.private_uid:
        _limit(resource.RLIMIT_NPROC, MAX_THREADS)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    layers.no_new_privs = True
    abi = landlock_abi()
    if landlock and abi:
        restrict_files(readable, abi)
        layers.landlock_abi = abi
    else:
        layers.problems.append("no Landlock in this kernel" if landlock else "Landlock switched off")
    return layers


class ChildLock:
    """What a child needs for its last step, prepared once in the zygote so that a fork stays cheap."""

    def __init__(self) -> None:
        code = build_filter()
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(self._code))
        self._base = virtual_bytes()

    def enter(self, parent: int, memory_bytes: int, cpu_seconds: int, file_bytes: int) -> None:
        """Limits of one program, then the strict filter.

        memory_bytes is a budget above the interpreter's own address space; cpu_seconds backs up the judge, who kills
        first; file_bytes caps what is written to standard output.
        """
        die_with_parent(parent)
        _limit(resource.RLIMIT_AS, self._base + memory_bytes)
        _limit(resource.RLIMIT_FSIZE, file_bytes)
        _limit(resource.RLIMIT_CPU, cpu_seconds)
        _check(
            _libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), self._program, ctypes.c_ulong(0), 0),
            "seccomp",
        )
