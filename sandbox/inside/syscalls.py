"""The seccomp filter of a candidate, compiled to BPF from an allow-list.

The list is what CPython, its standard library, numpy and threads need to compute, read and print; everything else
answers EPERM. A foreign architecture or the x32 table kills the process, since the numbers would mean other calls.
"""

from __future__ import annotations

import platform
import struct

# name: (x86_64, aarch64); None where the architecture has no such call.
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "poll": (7, None),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "pread64": (17, 67),
    "pwrite64": (18, 68),
    "readv": (19, 65),
    "writev": (20, 66),
    "access": (21, None),
    "pipe": (22, None),
    "select": (23, None),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "dup": (32, 23),
    "dup2": (33, None),
    "nanosleep": (35, 101),
    "getitimer": (36, 102),
    "alarm": (37, None),
    "setitimer": (38, 103),
    "getpid": (39, 172),
    "socketpair": (53, 199),
    "exit": (60, 93),
    "uname": (63, 160),
    "getcwd": (79, 17),
    "readlink": (89, None),
    "gettimeofday": (96, 169),
    "getrlimit": (97, 163),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "times": (100, 153),
    "getuid": (102, 174),
    "getgid": (104, 176),
    "geteuid": (107, 175),
    "getegid": (108, 177),
    "getppid": (110, 173),
    "getgroups": (115, 158),
    "rt_sigpending": (127, 136),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "time": (201, None),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "getdents64": (217, 61),
    "set_tid_address": (218, 96),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "epoll_wait": (232, None),
    "epoll_ctl": (233, 21),
    "newfstatat": (262, 79),
    "readlinkat": (267, 78),
    "faccessat": (269, 48),
    "pselect6": (270, 72),
    "ppoll": (271, 73),
    "set_robust_list": (273, 99),
    "epoll_pwait": (281, 22),
    "eventfd2": (290, 19),
    "epoll_create1": (291, 20),
    "dup3": (292, 24),
    "pipe2": (293, 59),
    "preadv": (295, 69),
    "getrandom": (318, 278),
    "membarrier": (324, 283),
    "statx": (332, 291),
    "rseq": (334, 293),
    "close_range": (436, 436),
    "faccessat2": (439, 439),
    # Allowed only for some arguments, or answered otherwise than by EPERM; see _argument_rules.
    "open": (2, None),
    "openat": (257, 56),
    "clone": (56, 220),
    "prlimit64": (302, 261),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "clone3": (435, 435),
    "openat2": (437, 437),
}
_SPECIAL = frozenset({"open", "openat", "clone", "prlimit64", "ioctl", "fcntl", "clone3", "openat2"})

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32_BIT = 0x40000000

_EPERM, _ENOSYS = 1, 38
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGS = 0, 4, 16  # offsets in struct seccomp_data

# Any of these makes an open a write. O_TMPFILE contains O_DIRECTORY, so only its own bit is named: reading a
# directory, which package imports do, must stay possible.
_OPEN_WRITES = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000
_CLONE_THREAD = 0x00010000
_IOCTLS = (0x5401, 0x541B, 0x5451, 0x5450, 0x5421)  # TCGETS FIONREAD FIOCLEX FIONCLEX FIONBIO
# F_DUPFD F_GETFD F_SETFD F_GETFL F_DUPFD_CLOEXEC; not F_SETFL, whose flags would stay on the lane's memory files.
_FCNTLS = (0, 1, 2, 3, 1030)

Instruction = tuple[int, int, int, int]


def _insn(code: int, jump_true: int, jump_false: int, operand: int) -> Instruction:
    return (code, jump_true, jump_false, operand)


def _low(arg: int) -> int:
    return _ARGS + 8 * arg


def _only_values(number: int, arg: int, values: tuple[int, ...]) -> list[Instruction]:
    """Allow the call if the low half of its argument is one of the values, else EPERM."""
    body = [_insn(_LOAD, 0, 0, _low(arg))]
    for i, value in enumerate(values):
        body.append(_insn(_JEQ, len(values) - i, 0, value))
    body += [_insn(_RETURN, 0, 0, _ERRNO | _EPERM), _insn(_RETURN, 0, 0, _ALLOW)]
    return [_insn(_JEQ, 0, len(body), number), *body]


def _by_bits(number: int, arg: int, bits: int, *, allow_if_set: bool) -> list[Instruction]:
    """Allow the call by whether any of the bits is set in the low half of its argument, else EPERM."""
    if_set, if_clear = (_ALLOW, _ERRNO | _EPERM) if allow_if_set else (_ERRNO | _EPERM, _ALLOW)
    body = [
        _insn(_LOAD, 0, 0, _low(arg)),
        _insn(_JSET, 0, 1, bits),
        _insn(_RETURN, 0, 0, if_set),
        _insn(_RETURN, 0, 0, if_clear),
    ]
    return [_insn(_JEQ, 0, len(body), number), *body]


def _argument_rules(numbers: dict[str, int]) -> list[Instruction]:
    program: list[Instruction] = []
    for name, arg in (("open", 1), ("openat", 2)):
        if name in numbers:
            program += _by_bits(numbers[name], arg, _OPEN_WRITES, allow_if_set=False)
    program += _by_bits(numbers["clone"], 0, _CLONE_THREAD, allow_if_set=True)
    program += _only_values(numbers["ioctl"], 1, _IOCTLS)
    program += _only_values(numbers["fcntl"], 1, _FCNTLS)
    # prlimit64 may read limits, not set them: both halves of the pointer to the new limit must be zero.
    body = [
        _insn(_LOAD, 0, 0, _low(2)),
        _insn(_JEQ, 0, 3, 0),
        _insn(_LOAD, 0, 0, _low(2) + 4),
        _insn(_JEQ, 0, 1, 0),
        _insn(_RETURN, 0, 0, _ALLOW),
        _insn(_RETURN, 0, 0, _ERRNO | _EPERM),
    ]
    program += [_insn(_JEQ, 0, len(body), numbers["prlimit64"]), *body]
    # ENOSYS, so that the C library falls back to clone and openat.
    for name in ("clone3", "openat2"):
        program += [_insn(_JEQ, 0, 1, numbers[name]), _insn(_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    return program


def build_filter(machine: str | None = None) -> bytes:
    """The filter as an array of struct sock_filter for this machine's architecture.

    Raises NotImplementedError on an architecture without a table.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise NotImplementedError(f"no system call table for {machine}: known are {', '.join(_ARCHITECTURES)}")
    column, audit_arch = _ARCHITECTURES[machine]
    numbers = {name: pair[column] for name, pair in NUMBERS.items()}
    present = {name: number for name, number in numbers.items() if number is not None}
    program = [
        _insn(_LOAD, 0, 0, _ARCH),
        _insn(_JEQ, 1, 0, audit_arch),
        _insn(_RETURN, 0, 0, _KILL),
        _insn(_LOAD, 0, 0, _NR),
    ]
    if machine == "x86_64":
        program += [_insn(_JGE, 0, 1, _X32_BIT), _insn(_RETURN, 0, 0, _KILL)]
    for name, number in present.items():
        if name not in _SPECIAL:
            program += [_insn(_JEQ, 0, 1, number), _insn(_RETURN, 0, 0, _ALLOW)]
    program += _argument_rules(present)
    program.append(_insn(_RETURN, 0, 0, _ERRNO | _EPERM))
    return b"".join(struct.pack("HBBI", *insn) for insn in program)
