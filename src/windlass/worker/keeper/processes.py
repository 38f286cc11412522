"""Reads and signals Linux processes, for the keeper and for a restart.

The standard library only: the keeper imports this file and little else.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
DUMPABLE = 4  # PR_SET_DUMPABLE
PARENT_DEATH = 1  # PR_SET_PDEATHSIG
KILL_TRIES = 100


def boottime() -> float:
    """Returns seconds since boot: this never steps, and counts while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Seen(NamedTuple):
    """A live process. `started` (ms of CLOCK_BOOTTIME) identifies it if pids are reused."""

    pid: int
    parent: int
    group: int
    session: int
    started: int


def look_at(pid: int) -> Seen | None:
    """Returns the process with this pid; None if there is none, or only a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    return Seen(
        pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]) * 1000 // TICKS
    )


def all_processes() -> Iterator[Seen]:
    """Returns every process."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (seen := look_at(int(name))) is not None:
            yield seen


def environ_of(pid: int) -> list[bytes]:
    """Returns the environment a process was started with; nothing if it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def arguments_of(pid: int) -> list[bytes]:
    """Returns the command line of a process."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def children_of(pid: int) -> list[int]:
    """Returns the children of a process that has one thread, or of its main thread."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def tree_of(pid: int) -> Iterator[int]:
    """Returns a process and all that descend from it."""
    yield pid
    for child in children_of(pid):
        yield from tree_of(child)


def resident_bytes(pid: int) -> int:
    """Returns the memory in use by a process and its descendants."""
    total = 0
    for member in (pid, *children_of(pid)):
        if member != pid:
            total += resident_bytes(member)
            continue
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                total += int(file.read().split()[1]) * PAGE
        except (OSError, IndexError):
            pass
    return total


def out_of_memory_kills() -> int:
    """Returns how many processes the kernel has killed because memory ran out."""
    try:
        with open("/proc/vmstat", "rb") as file:
            for line in file:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def signal_group(pid: int, number: int) -> None:
    """Sends a signal to every member of a group, if any is left."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def kill(pid: int) -> None:
    """Kills a process, if it still exists."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def kill_user(uid: int, enter: Callable[[], None]) -> None:
    """Kills every process of a user; needs root, which `enter` may give.

    The kernel does it in one step, so that none can fork and get away. One of them may kill the
    process that asks for it: then we start another.
    """
    for _ in range(KILL_TRIES):
        pid = os.fork()
        if pid == 0:
            try:
                enter()
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                pass  # None is left.
            finally:
                os._exit(0)
        if os.WIFEXITED(os.waitpid(pid, 0)[1]):
            return


def hear_parent_die(number: int) -> None:
    """Makes the kernel send this signal when the parent dies."""
    import ctypes

    ctypes.CDLL(None).prctl(PARENT_DEATH, number, 0, 0, 0)


def become_subreaper() -> None:
    """Makes this process the parent of orphans below it, so that they are still found."""
    import ctypes

    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def become_private() -> None:
    """Hides this process's memory, environment and descriptors from others of the same user.

    They can neither read its files below /proc nor trace it. The programs that it starts are
    not affected. A user with CAP_SYS_PTRACE, such as root, is not kept out.
    """
    import ctypes

    ctypes.CDLL(None).prctl(DUMPABLE, 0, 0, 0, 0)
