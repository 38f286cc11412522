"""User and mount namespaces, made once by the agent and entered by the programs of jobs.

A descriptor keeps a namespace alive. Agent and keeper stay outside: they own what they made, so
they can signal everything in it. The standard library only: the keeper imports this file.
"""

import ctypes
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from windlass.worker.keeper.processes import DUMPABLE

NEW_USER: Final = 0x1000_0000
NEW_MOUNTS: Final = 0x0002_0000
BIND: Final = 1 << 12
PRIVATE_VIEW: Final = 1 << 14 | 1 << 19  # MS_REC | MS_SLAVE
REMOUNT_READ_ONLY: Final = 1 << 5 | 1
NO_SUID_NO_DEVICES: Final = 1 << 1 | 1 << 2
FAILED: Final = 1
READY: Final = b"+"

_libc = ctypes.CDLL(None, use_errno=True)


def make_view(hidden: Sequence[str], kept: Sequence[str]) -> tuple[int, int]:
    """Returns a user and a mount namespace in which folders are empty except for those in `kept`.

    Everything else is as outside, including later mounts. It has only the caller's own user: files
    of others seem to belong to nobody. Raises `OSError`.
    """
    user, group = os.geteuid(), os.getegid()

    def make() -> None:
        _unshare(NEW_USER | NEW_MOUNTS)
        _write("setgroups", "deny")
        _write("uid_map", f"{user} {user} 1")
        _write("gid_map", f"{group} {group} 1")
        _mount(None, "/", None, PRIVATE_VIEW)
        held = [os.open(path, os.O_PATH) for path in kept]
        for path in hidden:
            _mount("none", path, "tmpfs", NO_SUID_NO_DEVICES, "mode=755")
        for path, fd in zip(kept, held, strict=True):
            place = f"/proc/self/fd/{fd}"
            _make_place(path, os.path.isdir(place))
            _mount(place, path, None, BIND)
            os.close(fd)
        for path in hidden:
            _mount(None, path, None, REMOUNT_READ_ONLY | NO_SUID_NO_DEVICES)

    users, mounts = _made(make, lambda _: None, ("user", "mnt"))
    return users, mounts


def make_users(assign: Callable[[int], None]) -> int:
    """Returns a user namespace; `assign` maps its users, given the pid of a process in it."""
    (found,) = _made(lambda: _unshare(NEW_USER), assign, ("user",))
    return found


def enter_view(user: int, mounts: int) -> None:
    """Enters both for good, keeping the folder; only for a process with one thread."""
    folder = os.getcwd()
    for fd in (user, mounts):
        _checked(_libc.setns(fd, 0))
    os.chdir(folder)


def enter_users(user: int) -> None:
    """Enters a user namespace for good, where this process has all rights."""
    _checked(_libc.setns(user, NEW_USER))


def run_in_users(users: int, act: Callable[[], None]) -> None:
    """Calls a function in a user namespace, where it has all rights, and waits for it."""
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            enter_users(users)
            act()
        os._exit(0)
    os.waitpid(pid, 0)


def _made(
    make: Callable[[], None], then: Callable[[int], None], kinds: Sequence[str]
) -> tuple[int, ...]:
    """Returns the namespaces that a process has after `make`; raises its `OSError`."""
    told, tell = os.pipe()
    wait, let = os.pipe()
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            os.close(let)
            _tell_how(make, tell)
            os.read(wait, 1)
        os._exit(FAILED)
    found: list[int] = []
    try:
        os.close(tell)
        os.close(wait)
        said = os.read(told, 4_096)
        if said != READY:
            number, _, text = said.decode().partition(" ")
            raise OSError(int(number or FAILED), text or "it was killed")
        found += [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
        then(pid)
    except BaseException:
        for fd in found:
            os.close(fd)
        raise
    finally:
        os.close(told)
        os.close(let)
        os.waitpid(pid, 0)
    return tuple(found)


def _tell_how(make: Callable[[], None], tell: int) -> None:
    try:
        make()
    except OSError as error:
        os.write(tell, f"{error.errno} {error.strerror}".encode())
    else:
        os.write(tell, READY)


def _unshare(flags: int) -> None:
    """Leaves namespaces; the kernel lets only a readable process set its ids in the new ones."""
    _checked(_libc.prctl(DUMPABLE, 1, 0, 0, 0))
    _checked(_libc.unshare(flags))


def _write(name: str, text: str) -> None:
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


def _make_place(path: str, is_folder: bool) -> None:
    """Makes a mount point in an empty folder."""
    os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
    if not is_folder:
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str | None = None
) -> None:
    words = (None if word is None else os.fsencode(word) for word in (source, target, kind))
    data = None if options is None else options.encode()
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), data))


def _checked(result: int) -> None:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
