"""The hostile programs: what each tries, and the outcome that contains it.

A program that tries something and must be refused prints `refused` if it was, and something else if it got through, so
that its verdict is AC exactly when the wall held. Where the outcome is a verdict of its own (a limit, a signal), that
verdict is named. Files and processes outside are checked by the test as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

REFUSED = "AC"


@dataclass(frozen=True)
class Hostile:
    """One program, and the verdicts that mean it was contained."""

    name: str
    outcomes: tuple[str, ...]
    code: str
    time_limit_s: float = 0.5
    memory_limit_mb: int = 256

    def program(self, *, after: int) -> dict[str, Any]:
        """The line to grade; `after` harmless tests come first, in the same process (streamed mode)."""
        code = self.code
        if after:
            code = f"if input() == 'harmless':\n    print('refused')\nelse:\n{_indent(code)}"
        # The name makes the tests this program's own: tests that other programs failed would come first.
        tests = [
            {"kind": "stdin", "input": "harmless\n" + self.name * i, "output": "refused"} for i in range(1, after + 1)
        ]
        tests.append({"kind": "stdin", "input": "now" + " " * 999, "output": "refused"})
        limits = {"time_limit_s": self.time_limit_s, "memory_limit_mb": self.memory_limit_mb}
        return {"id": self.name, "code": code, "tests": tests} | limits


def _indent(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines())


def tries(name: str, *attempts: str, setup: str = "", errors: str = "OSError") -> Hostile:
    """Every attempt must raise one of the errors."""
    lines = ["import os, sys, ctypes", *setup.splitlines(), "got = []"]
    for attempt in attempts:
        lines += ["try:"] + [f"    {line}" for line in attempt.splitlines()]
        lines += [f"    got.append({attempt.splitlines()[-1]!r})", f"except ({errors},) as e:", "    pass"]
    lines.append("print(got or 'refused')")
    return Hostile(name, (REFUSED,), "\n".join(lines))


_SYSCALL = """libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(n, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(n), *(a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args))
    if r < 0:
        raise OSError(ctypes.get_errno(), 'refused')
    return r"""


def syscalls(name: str, **numbers: tuple[int, ...]) -> Hostile:
    """Raw system calls, as x86_64 numbers with their arguments; each must fail."""
    attempts = [f"call({', '.join(map(str, arguments))})  # {call}" for call, arguments in numbers.items()]
    return tries(name, *attempts, setup=_SYSCALL)


PROCESSES = [
    tries("fork bomb", "while 1: os.fork()"),
    tries("vfork and clone by hand", "call(58)", "call(56, 17, 0, 0, 0, 0)", "call(435, bytes(88), 88)",
          setup=_SYSCALL),
    tries("subprocess", "import subprocess\nsubprocess.run(['/bin/true'])"),
    Hostile("os.system", (REFUSED,), "import os\nprint('refused' if os.system('/bin/true') != 0 else 'ran')"),
    tries("execv", "os.execv('/bin/true', ['true'])", "os.execve('/proc/self/exe', ['x'], {})"),
    tries("posix_spawn", "os.posix_spawn('/bin/true', ['true'], {})"),
    tries("multiprocessing", "import multiprocessing\nmultiprocessing.Process(target=print).start()"),
    tries("kill the parent", "os.kill(os.getppid(), 9)", "os.kill(os.getppid(), 0)"),
    tries("kill everything", "os.kill(-1, 9)", "os.killpg(0, 9)"),
    syscalls("tgkill, tkill, pidfd", tgkill=(234, 1, 1, 19), tkill=(200, 1, 19), pidfd_open=(434, 1, 0),
             pidfd_send=(424, 3, 9, 0, 0), rt_sigqueueinfo=(129, 1, 9, 0)),
    tries("ptrace the parent", "call(101, 16, os.getppid(), 0, 0)", "call(101, 0, 0, 0, 0)", setup=_SYSCALL),
    tries("process_vm_readv", "call(310, os.getppid(), bytes(16), 1, bytes(16), 1, 0)", setup=_SYSCALL),
    tries("priority and scheduling", "os.nice(-5)", "os.sched_setaffinity(0, {0})", "os.setpriority(0, 0, -5)"),
    Hostile("thread bomb", ("RE", "MLE", "TLE"),
            "import threading, time\nthreading.stack_size(64 << 10)\nwhile 1:\n"
            "    threading.Thread(target=time.sleep, args=(60,)).start()", 2.0),
]  # fmt: skip

NETWORK = [
    tries("TCP out", "import socket\nsocket.create_connection(('127.0.0.1', 22), 1)"),
    tries("name lookup", "import socket\nsocket.getaddrinfo('example.com', 80)"),
    tries("unix socket", "import socket\nsocket.socket(socket.AF_UNIX)"),
    tries("netlink and raw", "import socket\nsocket.socket(16, 3, 0)", "import socket\nsocket.socket(2, 3, 1)"),
    syscalls("bind, listen, sendmsg", bind=(49, 3, 0, 0), listen=(50, 3, 1), sendmsg=(46, 3, 0, 0)),
    tries("urllib", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1')"),
]

FILES = [
    tries("write a file", "open('/tmp/sandbox_escape', 'w')", "open('/dev/shm/sandbox_escape', 'w')",
          "open('sandbox_escape', 'w')", "os.open('/tmp', os.O_RDWR | 0o20200000)"),
    tries("append to the library", "open(os.__file__, 'a')", "open(os.__file__, 'r+')"),
    tries("tempfile", "import tempfile\ntempfile.TemporaryFile()"),
    tries("read the accounts", "open('/etc/passwd')", "open('/etc/shadow')", "open('/etc/hostname')"),
    tries("list folders", "os.listdir('/')", "os.listdir('/tmp')", "os.listdir('/proc')", "os.listdir('/root')"),
    tries("own memory through /proc", "open('/proc/self/mem', 'rb')", "open('/proc/self/maps')",
          "open('/proc/self/environ')", "open('/proc/self/status')"),
    tries("the parent through /proc", "open(f'/proc/{os.getppid()}/mem', 'rb')",
          "open(f'/proc/{os.getppid()}/environ')", "os.readlink(f'/proc/{os.getppid()}/fd/3')",
          "open(f'/proc/{os.getppid()}/fd/3')", "open('/proc/1/environ')"),
    tries("change names and modes", "os.chmod('/tmp', 0o777)", "os.mkdir('/tmp/sandbox_escape')",
          "os.unlink('/tmp/x')", "os.rename('/tmp/x', '/tmp/y')", "os.symlink('/', '/tmp/sandbox_escape')",
          "os.truncate('/tmp/x', 0)", "os.link('/tmp/x', '/tmp/y')", "os.mkfifo('/tmp/sandbox_escape')",
          "os.utime('/tmp', (0, 0))", "os.chown('/tmp', 0, 0)", "os.setxattr('/tmp', 'user.x', b'')"),
    tries("installed packages", "os.listdir(os.path.dirname(os.__file__) + '/site-packages/pip')",
          "open(os.path.dirname(os.__file__) + '/site-packages/pip/__init__.py')", "import pip\npip",
          errors="OSError, ImportError"),
    tries("change folder or root", "os.chroot('/')", "os.chdir('/tmp')", "os.fchdir(0)"),
    tries("openat2 and handles", "call(437, 0, b'/etc/passwd', bytes(24), 24)",
          "call(304, 0, bytes(16), 0)", setup=_SYSCALL),
]  # fmt: skip

PRIVILEGES = [
    tries("take root", "call(105, 0)", "call(106, 0)", "os.setgroups([0])", "call(117, 0, 0, 0)", setup=_SYSCALL),
    tries("raise a limit", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
          "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))",
          "import resource\nresource.prlimit(0, resource.RLIMIT_CPU, (-1, -1))", errors="OSError, ValueError"),
    syscalls("namespaces and mounts", unshare=(272, 0x10000000), setns=(308, 0, 0), mount=(165, 0, 0, 0, 0, 0),
             pivot_root=(155, 0, 0), umount=(166, 0, 0)),
    syscalls("kernel interfaces", io_uring=(425, 8, 0), bpf=(321, 0, 0, 0), userfaultfd=(323, 0), keyctl=(250, 0, 0),
             perf=(298, 0, 0, 0, 0, 0), inotify=(294, 0), timerfd=(283, 0, 0), signalfd=(289, -1, 0, 8, 0),
             add_key=(248, 0, 0, 0, 0, 0), fanotify=(300, 0, 0), quotactl=(179, 0, 0, 0, 0)),
    syscalls("undo the layers", dumpable=(157, 4, 1, 0, 0, 0), pdeathsig=(157, 1, 0, 0, 0, 0),
             nnp=(157, 38, 0, 0, 0, 0), seccomp=(317, 1, 0, 0), landlock=(446, 0, 0),
             prctl_mm=(157, 35, 1, 0, 0, 0), personality=(135, 0), arch_prctl=(158, 0x1002, 0)),
    syscalls("machine", reboot=(169, 0, 0, 0, 0), settime=(227, 0, 0), syslog=(103, 3, 0, 0), sethostname=(170, 0, 1),
             init_module=(175, 0, 0, 0), swapon=(167, 0, 0), acct=(163, 0), iopl=(172, 3)),
    Hostile("x32 system call", ("RE",),
            "import ctypes\nctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 | 39))\nprint('passed')"),
    Hostile("32-bit system call by int 0x80", ("RE",),
            "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\n"
            "m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))\n"
            "a = ctypes.addressof(ctypes.c_char.from_buffer(m))\nctypes.CFUNCTYPE(ctypes.c_int)(a)()\nprint('passed')"),
]  # fmt: skip

MEMORY = [
    Hostile("one huge block", ("MLE",), "bytearray(1 << 36)"),
    Hostile("huge string", ("MLE",), "'a' * (1 << 40)"),
    Hostile("blocks until the end", ("MLE",), "a = []\nwhile 1: a.append(bytearray(16 << 20))", 2.0),
    Hostile("shared mappings", ("MLE", "RE"),
            "import mmap\na = []\nwhile 1:\n    m = mmap.mmap(-1, 16 << 20)\n    m.write(bytes(16 << 20))\n"
            "    a.append(m)",
            2.0),
    syscalls("memory outside the limit", memfd=(319, 0, 0), shmget=(29, 0, 1 << 30, 0o1600), mlock=(149, 0, 4096),
             msgget=(68, 0, 0o1600), semget=(64, 0, 1, 0o1600)),
    Hostile("endless recursion, limit lifted", ("MLE", "RE", "TLE"),
            "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f():\n    f()\nf()", 2.0),
    # Quadratic before it is deep enough to end the stack, so a short limit comes first.
    Hostile("repr of a deep list", ("RE", "MLE", "TLE"),
            "import sys\nsys.setrecursionlimit(10 ** 9)\na = []\nfor _ in range(10 ** 6):\n    a = [a]\nrepr(a)"),
    Hostile("null pointer", ("RE",), "import ctypes\nctypes.string_at(0)"),
]  # fmt: skip

TIME = [
    Hostile("endless loop", ("TLE",), "while 1: pass"),
    Hostile("big power, in C", ("TLE",), "len(str(7 ** 10 ** 8))"),
    Hostile("regex without end, in C", ("TLE",), "import re\nre.match('(a+)+$', 'a' * 40 + 'b')"),
    Hostile("sleep", ("TLE",), "import time\ntime.sleep(1e6)"),
    Hostile("signals ignored, exceptions swallowed", ("TLE",),
            "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n"
            "    except (OSError, ValueError): pass\nwhile 1:\n    try:\n        while 1: pass\n"
            "    except BaseException: pass"),
    Hostile("sleeping at exit", ("TLE",), "import atexit, time\natexit.register(time.sleep, 1e6)\nprint('refused')"),
    # A real process waits for such a thread for ever.
    Hostile("thread left running", ("TLE",),
            "import threading, time\nthreading.Thread(target=time.sleep, args=(1e6,)).start()\nprint('refused')"),
    Hostile("daemon thread left running", ("AC",),
            "import threading\ndef spin():\n    while 1: pass\nthreading.Thread(target=spin, daemon=True).start()\n"
            "print('refused')", 2.0),
    Hostile("waits on its own pipe", ("TLE",), "import os\nr, w = os.pipe()\nos.read(r, 1)"),
]  # fmt: skip

OUTPUT = [
    Hostile("endless output", ("OLE",), "while 1: print('x' * 1000)", 4.0),
    Hostile("one line of 100 MB", ("OLE",), "print('x' * (100 << 20))", 4.0, 512),
    Hostile("1 GB on standard error", ("AC", "TLE"),
            "import sys\nfor _ in range(1 << 10): sys.stderr.write('x' * (1 << 20))\nprint('refused')", 8.0),
    Hostile("descriptors until none is left", (REFUSED,),
            "import os\ntry:\n    while 1: os.pipe()\nexcept OSError:\n    print('refused')"),
    Hostile("only fds 0 to 3 are open", (REFUSED,),
            "import os\nfound = []\nfor fd in range(1024):\n    try: os.fstat(fd)\n    except OSError: continue\n"
            "    found.append(fd)\nprint('refused' if found == [0, 1, 2, 3] else found)"),
    Hostile("environment is empty", (REFUSED,), "import os\nprint(dict(os.environ) or 'refused')"),
    Hostile("garbage on every other descriptor", ("RE", "AC"),
            "import os\nfor fd in range(3, 100):\n    try: os.write(fd, b'garbage' * 100)\n    except OSError: pass\n"
            "print('refused')"),
    Hostile("answers forged on the data socket", ("RE", "WA"),
            "import os, struct\nos.write(3, struct.pack('<cI', b'D', 0) * 3)"),
    Hostile("a frame that promises 4 GB", ("RE",), "import os\nos.write(3, b'D\\xff\\xff\\xff\\xff')"),
    Hostile("data socket closed", ("RE",), "import os\nos.close(3)\nprint('refused')"),
    Hostile("standard output closed", ("RE", "WA"), "import os\nos.close(1)\nprint('refused')"),
    Hostile("invalid UTF-8 and NUL", ("WA",), "import sys\nsys.stdout.buffer.write(b'\\xff\\xfe\\x00refused')"),
    Hostile("leaves after its output", ("AC",), "import os\nprint('refused', flush=True)\nos._exit(0)"),
]  # fmt: skip

SOURCE = [
    Hostile("100,000 open brackets", ("CE",), "(" * 100_000 + ")" * 100_000),
    Hostile("NUL in the source", ("CE",), "print('refused')\0"),
    Hostile("deep expression", ("CE", "RE"), "x = " + "-" * 200_000 + "1"),
    Hostile("lone surrogate", ("CE", "RE"), "print('\ud800')"),
]

ALL = [*PROCESSES, *NETWORK, *FILES, *PRIVILEGES, *MEMORY, *TIME, *OUTPUT]
"""Run as they are and after harmless tests in the same process."""
