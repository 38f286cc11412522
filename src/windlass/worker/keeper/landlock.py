"""Landlock: rights that a process gives up for itself and all that it starts.

The standard library only: the keeper imports this file.
"""

import ctypes
import os
from collections.abc import Iterable
from typing import Final

CREATE: Final = 444  # landlock_create_ruleset, and two more; the same on all architectures
ADD_RULE: Final = 445
RESTRICT_SELF: Final = 446
GET_VERSION: Final = 1
BENEATH: Final = 1
NO_NEW_PRIVILEGES: Final = 38  # PR_SET_NO_NEW_PRIVS

SCOPES: Final = 6  # first version that can restrict signals and abstract sockets
MOVES: Final = 2  # first version that allows moving files

READ_DIR: Final = 1 << 3
MAKE_DEVICE: Final = 1 << 11  # making block devices, which an ordinary user cannot do
OF_FILES: Final = 0b111 | 1 << 14 | 1 << 15  # execute, write, read, truncate, ioctl
# By version: the number of file rights.
RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
ALL_RIGHTS: Final = 16
ABSTRACT_SOCKETS_AND_SIGNALS: Final = 3

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Returns the Landlock version of this kernel; 0 if none."""
    found: int = _libc.syscall(CREATE, None, 0, GET_VERSION)
    return max(0, found)


def keep_apart(known: int) -> int:
    """Returns rules that keep a program from signalling, tracing and reading other processes.

    Processes that it starts itself are exempt. Returns a descriptor; raises `OSError`. Kernels
    without scopes only prevent tracing and reading.
    """
    if known >= SCOPES:
        return _create(0, ABSTRACT_SOCKETS_AND_SIGNALS)
    return _create(MAKE_DEVICE, 0)


def close_folders(known: int, closed: Iterable[str], kept: Iterable[str]) -> int:
    """Returns rules that close folders to a program, and keep it apart.

    Folders in `kept` stay open, even inside a closed one. Landlock has no rules that close, so
    these open everything next to the closed folders, and next to the folders above them. What
    appears there later stays closed.
    """
    rights = (1 << RIGHTS.get(known, ALL_RIGHTS)) - 1
    fd = _create(rights, ABSTRACT_SOCKETS_AND_SIGNALS if known >= SCOPES else 0)
    shut = set(closed)
    above = {parent for path in shut for parent in parents(path)}
    for folder in sorted(above):
        _allow(fd, folder, READ_DIR)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if path not in above and path not in shut:
                _allow(fd, path, rights)
    for path in kept:
        _allow(fd, path, rights)
    return fd


def restrict(rules: int, *, gains: bool = False) -> None:
    """Applies rules to the calling thread and to all that it starts; raises `OSError`.

    From then on no program that it starts can gain rights, for example by a setuid bit; with
    `gains` it can, if this process may allow that.
    """
    if gains and _libc.syscall(RESTRICT_SELF, rules, 0) == 0:
        return
    _checked(_libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(_libc.syscall(RESTRICT_SELF, rules, 0))


def parents(path: str) -> Iterable[str]:
    """Returns the folders above a path."""
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _create(files: int, scoped: int) -> int:
    wanted = _Ruleset(files, 0, scoped)
    # Older kernels know only the first field.
    size = ctypes.sizeof(wanted) if scoped else ctypes.sizeof(ctypes.c_uint64)
    return _checked(_libc.syscall(CREATE, ctypes.byref(wanted), size, 0))


def _allow(rules: int, path: str, rights: int) -> None:
    """Opens a file, or a folder with its contents; does nothing if it is missing."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        is_folder = os.path.isdir(f"/proc/self/fd/{fd}")
        rule = _Beneath(rights if is_folder else rights & OF_FILES, fd)
        _checked(_libc.syscall(ADD_RULE, rules, BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(fd)


def _checked(result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
