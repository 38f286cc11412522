"""The guard: the keeper's parent, which ends what a killed keeper leaves.

It waits for the keeper's end and does nothing else. The orphans of a killed keeper become children
of the guard, whatever session and environment they have: it kills them all and exits. So no process
of a job is left if agent and keeper are killed at the same moment, and starting a job costs nothing
more.

The standard library only: the keeper imports this file.
"""

import os
import select
import signal

from windlass.worker.keeper import processes
from windlass.worker.keeper.outside import end_all

TITLE = b"windlass guard"
PAUSE_S = 0.005
END_S = 10.0  # time to end what jobs run elsewhere
ARGUMENTS = slice(45, 47)  # fields of /proc/self/stat, after the name: where the command line is


def fork_keeper(sock: int, outside: str) -> None:
    """Returns in a child that is the keeper; this process becomes its guard and never returns.

    The keeper gets SIGUSR1 if its guard dies. `outside` names what jobs run elsewhere.
    """
    parent = os.getpid()
    keeper = os.fork()
    if keeper:
        try:
            os.close(sock)  # The agent must see it close when the keeper ends.
            _rename()
            os.waitpid(keeper, 0)
            _end_orphans()
            end_all(outside, END_S)
        finally:
            os._exit(0)
    os.setsid()  # A signal to one group must not hit both.
    processes.hear_parent_die(signal.SIGUSR1)
    if os.getppid() != parent:
        os._exit(1)


def _end_orphans() -> None:
    """Kills all children, and the orphans they leave, until there are none."""
    me = os.getpid()
    while _reap():
        for seen in list(processes.all_processes()):
            if seen.parent == me:
                for pid in processes.tree_of(seen.pid):
                    processes.kill(pid)
        select.select((), (), (), PAUSE_S)


def _reap() -> bool:
    """Reaps the children that have ended; returns whether others are left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _rename() -> None:
    """Shows up as the guard in lists of processes, where it would look like a second keeper."""
    import ctypes

    try:
        with open("/proc/self/stat", "rb") as file:
            start, end = map(int, file.read().rpartition(b")")[2].split()[ARGUMENTS])
    except (OSError, ValueError):
        return
    if len(TITLE) < end - start:
        ctypes.memmove(start, TITLE.ljust(end - start, b"\0"), end - start)
