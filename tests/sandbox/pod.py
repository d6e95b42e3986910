"""Runs a command as a restricted pod would: uid 65534, no capabilities, no_new_privs, a container's default seccomp.

    python pod.py COMMAND…

Needs root, and a script of its own so that the target interpreter, which must be readable for others, can run it. The
filter refuses what the default profile of moby and containerd refuses without capabilities, on x86_64.
"""

import ctypes
import os
import struct
import sys

# acct add_key bpf clock_adjtime clock_settime delete_module fanotify_init fsconfig fsmount fsopen fspick finit_module
# init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind mount mount_setattr move_mount
# move_pages name_to_handle_at nfsservctl open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root quotactl
# quotactl_fd reboot request_key set_mempolicy setdomainname sethostname setns settimeofday swapon swapoff sysfs
# umount2 unshare uselib userfaultfd ustat vhangup io_uring_* syslog chroot get_mempolicy
REFUSED = (
    163, 248, 321, 305, 227, 176, 300, 431, 432, 430, 433, 313, 175, 173, 172, 312, 320, 246, 250, 212, 237, 165, 442,
    429, 279, 303, 180, 304, 428, 298, 438, 155, 179, 443, 169, 249, 238, 171, 170, 308, 164, 167, 168, 139, 166, 272,
    134, 323, 136, 153, 425, 426, 427, 103, 161, 239,
)  # fmt: skip
CLONE, CLONE3, NAMESPACES = 56, 435, 0x7E020000
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026


def seccomp() -> None:
    load, jeq, jset, ret = 0x20, 0x15, 0x45, 0x06
    program = [(load, 0, 0, 0)]
    for number in REFUSED:
        program += [(jeq, 0, 1, number), (ret, 0, 0, EPERM)]
    program += [(jeq, 0, 1, CLONE3), (ret, 0, 0, ENOSYS)]
    program += [(jeq, 0, 3, CLONE), (load, 0, 0, 16), (jset, 0, 1, NAMESPACES), (ret, 0, 0, EPERM), (ret, 0, 0, ALLOW)]
    code = b"".join(struct.pack("HBBI", *insn) for insn in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    fprog = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(38, ctypes.c_ulong(1), zero, zero, zero) or libc.prctl(22, ctypes.c_ulong(2), fprog, zero, zero):
        raise OSError(ctypes.get_errno(), "seccomp")


def main() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(24, ctypes.c_ulong(capability), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    seccomp()
    os.execv(sys.argv[1], sys.argv[1:])


main()
