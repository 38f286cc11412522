"""Starts the programs of jobs, for the keeper.

The standard library only: the keeper imports this file.
"""

import _thread  # noqa: TID251 - rules of the kernel hold for the thread that asks for them
import errno
import os
import resource
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

# All that a process can ignore: a shell ignores SIGQUIT for what it starts in the background, and
# nohup SIGHUP, and programs hand both down.
RESET = frozenset(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}
NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS


class Allowed(NamedTuple):
    """What a job may use: bytes of memory, seconds, processes, files, bytes of disk; 0 is any."""

    memory: int = 0
    cpu: int = 0
    processes: int = 0
    files: int = 0  # open files of one process
    disk: int = 0

    @property
    def is_watched(self) -> bool:
        """Returns whether the job must be checked while it runs."""
        return bool(self.memory or self.cpu or self.processes or self.disk)

    @property
    def has_rlimits(self) -> bool:
        """Returns whether limits are set before the program starts."""
        return bool(self.memory or self.cpu or self.files or self.disk)


class Start(NamedTuple):
    """How a program is started.

    With a `user`, it has that uid and gid and no groups. `opens` are files that it finds open for
    reading, by descriptor. `nested`: the program itself runs below the started one, in a session of
    its own, which gets the signals; the started one switches to `user` by itself. It reports the
    process it starts as `child-pid` in JSON on the descriptor `status`, if that is not 0; the next
    descriptor reports how the program ended (`reporter.c`). `outside`: it asks another program to
    run the job's program elsewhere under this name, and a folder of that name says how to end that
    (`outside.py`). `apart`: it cannot signal, trace or read processes that it has not started
    (`walls.py`); `kept_out`: it cannot open Windlass's own files either.
    """

    allowed: Allowed = Allowed()
    user: int | None = None
    opens: tuple[tuple[int, str], ...] = ()
    nested: bool = False
    status: int = 0
    outside: str = ""
    apart: bool = False
    kept_out: bool = False

    @property
    def layers(self) -> int:
        """Counts the processes around the job's own: the sandbox, its init and the reporter."""
        return 3 if self.nested else 2 if self.outside else 0

    @classmethod
    def made(cls, parts: tuple[Any, ...]) -> "Start":
        """Returns it from what the agent has sent."""
        allowed, *others = parts
        return cls(Allowed(*allowed), *others)


PLAIN = Start()


def nothing() -> None:
    """Does nothing."""


class Parents:
    """Threads that have started a program and wait for its end.

    A thread can give up rights for itself alone, and whatever it starts lacks them as well: this
    takes a third of the time of a fork. It is the parent of that program, which may have asked to
    be killed when its parent ends.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, _thread.LockType] = {}  # by the pid of the program

    def start(self, spawn: Callable[[], int]) -> int:
        """Runs `spawn` in a new thread and returns its result; raises its `OSError`."""
        started, ended = _thread.allocate_lock(), _thread.allocate_lock()
        started.acquire()
        ended.acquire()
        found: list[int] = []
        failed: list[OSError] = []

        def run() -> None:
            try:
                found.append(spawn())
            except OSError as error:
                failed.append(error)
            finally:
                started.release()
            if found:
                ended.acquire()

        try:
            _thread.start_new_thread(run, ())
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, str(error)) from error
        started.acquire()
        if failed:
            raise failed[0]
        self._waiting[found[0]] = ended
        return found[0]

    def end(self, pid: int) -> None:
        """Ends the thread that has started this program, if one has."""
        ended = self._waiting.pop(pid, None)
        if ended is not None:
            ended.release()


def launch(
    argv: list[str],
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    start: Start = PLAIN,
    told: int = -1,
    prepare: Callable[[], None] | None = None,
    finish: Callable[[], None] = nothing,
    parents: Parents | None = None,
) -> int:
    """Starts a program in a session of its own, in the working directory; returns its pid.

    It finds `told` open as the descriptor `start.status`, and as the next one. The new process
    calls `prepare`, if given, and `finish` after it has become the user. If there are `parents`,
    one of them may do the latter.
    """
    path = find_program(argv[0], env)
    user = None if start.nested else start.user
    alone = finish is not nothing and parents is None
    if user is not None or start.allowed.has_rlimits or prepare is not None or alone:
        change = prepare or nothing
        return _fork(argv, lambda: _become(path, argv, env, streams, start, told, change, finish))
    actions: list[tuple[Any, ...]] = [
        (os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(streams)
    ]
    if start.status:
        actions.append((os.POSIX_SPAWN_DUP2, told, start.status))
        actions.append((os.POSIX_SPAWN_DUP2, told, start.status + 1))
    actions += [(os.POSIX_SPAWN_OPEN, number, file, os.O_RDONLY, 0) for number, file in start.opens]

    def spawn() -> int:
        finish()
        return os.posix_spawn(
            path, argv, env, file_actions=actions, setsid=True, setsigdef=RESET, setsigmask=()
        )

    try:
        return spawn() if parents is None or finish is nothing else parents.start(spawn)
    except OSError as error:
        raise _named(error, argv[0]) from error


@contextmanager
def pinned(cpus: tuple[int, ...]) -> Iterator[None]:
    """Makes programs started inside run on these processors only; on all of ours if none is named.

    A child inherits them; other threads are not affected.
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
    """Returns the path of a program, by the PATH that it would see itself."""
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
    """Starts a process with changes between fork and exec; slower."""
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
    prepare: Callable[[], None],
    finish: Callable[[], None],
) -> None:
    os.setsid()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    if start.status:
        for number in (start.status, start.status + 1):
            os.dup2(told, number)
            os.set_inheritable(number, True)
    for number, file in start.opens:
        os.dup2(os.open(file, os.O_RDONLY), number)
    signal.set_wakeup_fd(-1)
    for number in RESET:
        signal.signal(number, signal.SIG_DFL)
    prepare()
    _limit(start)
    if start.user is not None and not start.nested:
        _become_user(start.user)
    finish()
    os.execve(path, argv, env)


def _limit(start: Start) -> None:
    """Sets the limits for each process, and those of a user that only this job has."""
    memory, cpu, processes, files, disk = start.allowed
    if memory:
        # Counts writable private memory: what a process asked for, not what it maps.
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
