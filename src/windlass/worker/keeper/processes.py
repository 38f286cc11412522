"""Reads, starts and signals Linux processes, for the keeper and for a restart.

The standard library only: the keeper imports this file and little else.
"""

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
RESET = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
DUMPABLE = 4  # PR_SET_DUMPABLE
PARENT_DEATH = 1  # PR_SET_PDEATHSIG
NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS
KILL_TRIES = 100


class Allowed(NamedTuple):
    """What a job may use: bytes of memory, seconds, processes, files, bytes of disk; 0 is any."""

    memory: int = 0
    cpu: int = 0
    processes: int = 0
    files: int = 0  # that one process has open
    disk: int = 0

    @property
    def is_watched(self) -> bool:
        """Whether the job is to be looked at while it runs."""
        return bool(self.memory or self.cpu or self.processes or self.disk)

    @property
    def has_rlimits(self) -> bool:
        """Whether something is set before the program starts."""
        return bool(self.memory or self.cpu or self.files or self.disk)


class Start(NamedTuple):
    """How a program is started.

    As `user`, it has that uid and gid and no groups. `opens` are files that it finds open for
    reading, by descriptor. `nested`: the program itself is below the one that is started, in a
    session of its own, which gets the signals, and that becomes `user` by itself; a signal that
    kills the inner one becomes the exit code 128 + its number. Which process it starts, it says
    in JSON as `child-pid` on the descriptor `status`, if that is not 0. `outside`: it asks another
    program to run the job's elsewhere under this name, and a folder of that name says how to end
    that (`outside.py`).
    """

    allowed: Allowed = Allowed()
    user: int | None = None
    opens: tuple[tuple[int, str], ...] = ()
    nested: bool = False
    status: int = 0
    outside: str = ""

    @classmethod
    def made(cls, parts: tuple[Any, ...]) -> "Start":
        """Returns it from what the agent has sent."""
        allowed, *others = parts
        return cls(Allowed(*allowed), *others)


PLAIN = Start()


def boottime() -> float:
    """Seconds since the machine was started: it never steps and counts while it sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Seen(NamedTuple):
    """A live process: `started` is in ms of CLOCK_BOOTTIME, and tells two of one pid apart."""

    pid: int
    parent: int
    group: int
    session: int
    started: int


def look_at(pid: int) -> Seen | None:
    """Returns the process of this number; None if there is none, or only a zombie."""
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
    """Returns what a process was started with; nothing where that cannot be read."""
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
    """Sends a signal to every member of a group, if there is one left."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def kill(pid: int) -> None:
    """Kills a process, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def kill_user(uid: int) -> None:
    """Kills every process of a user; needs root.

    The kernel does it in one step, so that none can fork and get away. One of them may kill the
    process that asks for it: then another asks.
    """
    for _ in range(KILL_TRIES):
        pid = os.fork()
        if pid == 0:
            try:
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
    """Lets the kernel send this signal when the parent dies."""
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


def launch(
    argv: list[str],
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    start: Start = PLAIN,
    told: int = -1,
) -> int:
    """Starts a program in a session of its own, in the working directory; returns its pid.

    It finds `told` open as the descriptor `start.status`.
    """
    path = find_program(argv[0], env)
    user = None if start.nested else start.user
    if user is not None or start.allowed.has_rlimits:
        return _fork(argv, lambda: _become(path, argv, env, streams, start, told))
    actions: list[tuple[Any, ...]] = [
        (os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(streams)
    ]
    if start.status:
        actions.append((os.POSIX_SPAWN_DUP2, told, start.status))
    actions += [(os.POSIX_SPAWN_OPEN, number, file, os.O_RDONLY, 0) for number, file in start.opens]
    try:
        return os.posix_spawn(
            path, argv, env, file_actions=actions, setsid=True, setsigdef=RESET, setsigmask=()
        )
    except OSError as error:
        raise _named(error, argv[0]) from error


@contextmanager
def pinned(cpus: tuple[int, ...]) -> Iterator[None]:
    """Lets what is started inside run on these processors only; on all of ours if none is named.

    A child inherits them, and this process has one thread: nothing else is affected.
    """
    if not cpus:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def find_program(name: str, env: Mapping[str, str]) -> str:
    """Returns where a program is, by the PATH it would see itself."""
    if "/" in name:
        return name
    for folder in env.get("PATH", os.defpath).split(":"):
        path = f"{folder or '.'}/{name}"
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise FileNotFoundError(2, f"program {name} was not found on the PATH")


def _named(error: OSError, program: str) -> OSError:
    """Returns the error with the name of the program that could not be started."""
    return OSError(error.errno, f"cannot start {program}: {error.strerror}")


def _fork(argv: list[str], become: Callable[[], None]) -> int:
    """Starts a process that is changed between fork and exec; slower."""
    listen, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become()
        except OSError as error:
            os.write(tell, f"{error.errno} {error.strerror}".encode())
        finally:
            os._exit(127)
    os.close(tell)
    failure = os.read(listen, 4_096).decode()
    os.close(listen)
    if failure:
        os.waitpid(pid, 0)
        number, _, text = failure.partition(" ")
        raise _named(OSError(int(number), text), argv[0])
    return pid


def _become(
    path: str,
    argv: list[str],
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    start: Start,
    told: int,
) -> None:
    os.setsid()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    if start.status:
        os.dup2(told, start.status)
        os.set_inheritable(start.status, True)
    for number, file in start.opens:
        os.dup2(os.open(file, os.O_RDONLY), number)
    signal.set_wakeup_fd(-1)
    for number in (*RESET, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    _limit(start)
    if start.user is not None and not start.nested:
        _become_user(start.user)
    os.execve(path, argv, env)


def _limit(start: Start) -> None:
    """Sets the limits that hold for each process, and those of a user that nobody else is."""
    memory, cpu, processes, files, disk = start.allowed
    if memory:
        # Counts what is writable and private: what a process asked for, not what it maps.
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    if cpu:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    if files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if disk:
        resource.setrlimit(resource.RLIMIT_FSIZE, (disk, disk))
    if processes and start.user is not None and not start.nested:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def _become_user(uid: int) -> None:
    """Becomes a user without groups and without a way to become another."""
    import ctypes

    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
