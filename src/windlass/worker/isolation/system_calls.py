"""The system calls that a sandbox refuses, and the filter (classic BPF) that does so.

It refuses calls that make or enter namespaces, change mounts, clocks, swap or the kernel, use
keyrings, or have often been used to attack the kernel. Most need rights that a job does not have:
the filter is a second wall. Debuggers work: a process may trace others of its own sandbox.
"""

import errno
import struct
from typing import Final, NamedTuple

ALLOW: Final = 0x7FFF_0000  # SECCOMP_RET_ALLOW
ERROR: Final = 0x0005_0000  # SECCOMP_RET_ERRNO
LOAD: Final = 0x20  # a word of `struct seccomp_data`
EQUAL: Final = 0x15
AT_LEAST: Final = 0x35
ANY_BIT: Final = 0x45
RETURN: Final = 0x06

NUMBER: Final = 0  # offset in `struct seccomp_data` of the call's number,
ARCHITECTURE: Final = 4  # the architecture,
FIRST: Final = 16  # and the low halves of its arguments
SECOND: Final = 24

X32: Final = 0x4000_0000  # calls of another ABI with the same architecture
NAMESPACES: Final = 0x7E02_0000  # CLONE_NEW*
TERMINAL_INPUT: Final = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX type into a terminal


class Table(NamedTuple):
    """One architecture: its audit number, and numbers of calls."""

    audit: int
    refused: tuple[int, ...]
    clone: int
    ioctl: int
    clone3: int = 435
    has_x32: bool = False


# The same on all architectures: open_tree, move_mount, fsopen, fsconfig, fsmount, fspick,
# io_uring_setup, io_uring_enter, io_uring_register, mount_setattr, quotactl_fd.
_NEW: Final = (428, 429, 430, 431, 432, 433, 425, 426, 427, 442, 443)

TABLES: Final = {
    "x86_64": Table(
        0xC000_003E,
        (
            *_NEW,
            272, 308,  # unshare, setns
            165, 166, 155, 161,  # mount, umount2, pivot_root, chroot
            321, 298, 323, 312,  # bpf, perf_event_open, userfaultfd, kcmp
            246, 320, 175, 313, 176, 174,  # kexec_load and _file_load, init, finit, delete_module
            169, 167, 168, 163, 153,  # reboot, swapon, swapoff, acct, vhangup
            164, 227, 305,  # settimeofday, clock_settime, clock_adjtime
            170, 171, 103, 179,  # sethostname, setdomainname, syslog, quotactl
            248, 249, 250,  # add_key, request_key, keyctl
            304, 212, 180,  # open_by_handle_at, lookup_dcookie, nfsservctl
            172, 173, 134, 156,  # iopl, ioperm, uselib, _sysctl
        ),
        clone=56,
        ioctl=16,
        has_x32=True,
    ),
    "aarch64": Table(
        0xC000_00B7,
        (
            *_NEW,
            97, 268,  # unshare, setns
            40, 39, 41, 51,  # mount, umount2, pivot_root, chroot
            280, 241, 282, 272,  # bpf, perf_event_open, userfaultfd, kcmp
            104, 294, 105, 273, 106,  # kexec_load and _file_load, init, finit, delete_module
            142, 224, 225, 89, 58,  # reboot, swapon, swapoff, acct, vhangup
            170, 112, 266,  # settimeofday, clock_settime, clock_adjtime
            161, 162, 116, 60,  # sethostname, setdomainname, syslog, quotactl
            217, 218, 219,  # add_key, request_key, keyctl
            265, 18, 42,  # open_by_handle_at, lookup_dcookie, nfsservctl
        ),
        clone=220,
        ioctl=29,
    ),
}  # fmt: skip


def filter_program(machine: str) -> bytes | None:
    """Returns the filter for a machine as `os.uname` calls it; None if its calls are not known."""
    table = TABLES.get(machine)
    if table is None:
        return None
    refuse = _return(ERROR | errno.EPERM)
    allow = _return(ALLOW)
    program = [
        _load(ARCHITECTURE),
        _jump(EQUAL, table.audit, 1, 0),
        refuse,
        _load(NUMBER),
        *([_jump(AT_LEAST, X32, 0, 1), refuse] if table.has_x32 else []),
        # Its flags are in memory, which the caller could change. The C library then uses clone.
        _jump(EQUAL, table.clone3, 0, 1),
        _return(ERROR | errno.ENOSYS),
        _jump(EQUAL, table.clone, 0, 4),
        _load(FIRST),
        _jump(ANY_BIT, NAMESPACES, 0, 1),
        refuse,
        allow,
        _jump(EQUAL, table.ioctl, 0, 5),
        _load(SECOND),
        _jump(EQUAL, TERMINAL_INPUT[0], 1, 0),
        _jump(EQUAL, TERMINAL_INPUT[1], 0, 1),
        refuse,
        allow,
    ]
    for number in table.refused:
        program += [_jump(EQUAL, number, 0, 1), refuse]
    return b"".join([*program, allow])


def _load(offset: int) -> bytes:
    return struct.pack("=HBBI", LOAD, 0, 0, offset)


def _jump(test: int, value: int, if_true: int, if_false: int) -> bytes:
    """Skips this many instructions."""
    return struct.pack("=HBBI", test, if_true, if_false, value)


def _return(value: int) -> bytes:
    return struct.pack("=HBBI", RETURN, 0, 0, value)
