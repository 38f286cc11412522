"""The keeper: a small process that starts the jobs of one agent and never outlives a lease.

It kills every process group at once when the agent's socket closes. When its deadline passes
without word from the agent, it asks them to stop, then kills them: a killed or stopped agent leaves
nothing behind. Deadlines are readings of CLOCK_BOOTTIME, which both sides share and which counts
while the machine sleeps.

A process that leaves its group (a session of its own, a double fork) is found as well: the keeper
becomes the parent of orphans and kills those whose job has ended. If it was given a cgroup, each
job has a box of its own there, and everything in it ends with the job.

If the keeper is killed as well, its guard kills what it left (`guard.py`).

It imports the standard library and a few files of this folder only, so that it starts within
milliseconds and stays small. `link.py` carries its messages.
"""

import errno
import os
import select
import signal
import socket
import sys
from contextlib import nullcontext
from typing import Any

from windlass.worker.keeper import processes
from windlass.worker.keeper.cgroups import Boxes
from windlass.worker.keeper.group import DiskMeter, Group, passed, usage_of
from windlass.worker.keeper.guard import fork_keeper
from windlass.worker.keeper.launch import Allowed, Parents, Start, launch, pinned
from windlass.worker.keeper.link import Link
from windlass.worker.keeper.outside import end_all, find_root, place_of, start_ender
from windlass.worker.keeper.processes import boottime
from windlass.worker.keeper.record import Record
from windlass.worker.keeper.walls import Walls, holds_something

FENCED = -1  # instead of an errno: the deadline has passed, nothing may be started
INLINE = 16_384  # bytes relayed before the agent gets the pipe
TICK_S = 1.0  # the longest wait while there are jobs, to notice soon that a machine slept
WATCH_S = 0.05  # interval of checking stops and the usage of limited jobs
FULL = 0.8  # part of its limit: a job that failed with this much memory in use wanted more
LAST_WORDS = 2 * 65_536
END_S = 5.0  # time to end what jobs run elsewhere
LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT
# The kernel's signals to a process that has passed a limit of its own.
OF_SIGNAL: dict[int, str] = {signal.SIGXCPU: "cpu_time", signal.SIGXFSZ: "disk"}


class Keeper:
    """Serves one agent over `sock`; `record` is the file that names the live groups."""

    def __init__(self, sock: socket.socket, record: str, boxes: Boxes | None = None) -> None:
        self._link = Link(sock)
        self._boxes = boxes
        self._untidy = False  # ended jobs may have left something
        self._groups: dict[int, Group] = {}  # by pid
        self._numbers: dict[int, Group] = {}
        self._pipes: dict[int, Group] = {}  # by the pipe's descriptor
        self._helpers: set[int] = set()
        self._inner: dict[int, tuple[Group, Any]] = {}  # those whose leader has ended, by pid
        # by the pid of the process that returns its folder
        self._returning: dict[int, tuple[Group, Any]] = {}
        self._walls = Walls()
        self._parents = Parents()
        self._base: dict[str, str] = {}
        self._messages: list[tuple[Any, ...]] = []
        self._writing = False
        self._soft = self._hard = 0.0  # nothing is started before the agent has set them
        self._ended = False
        self._oom_kills = processes.out_of_memory_kills()
        self._swept_at = self._watched_at = self._tidied_at = 0.0
        self._null = os.open(os.devnull, os.O_RDWR)
        self._disk = DiskMeter(self._null)
        self._wake = _wake_on_children()
        self._epoll = select.epoll()
        self._epoll.register(sock.fileno(), select.EPOLLIN)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._record = Record(record)
        self._outside = place_of(record)
        self._messages.append(("keeper", os.getpid(), () if boxes is None else boxes.controllers))

    def end(self) -> None:
        """Exits: without its guard, nobody would end the jobs of a killed keeper."""
        self._ended = True

    def run(self) -> None:
        """Serves until the agent is gone, then kills what is left."""
        while not self._ended:
            self._turn()
        give_up = boottime() + 5
        while boottime() < give_up:
            for group in self._groups.values():
                group.kill()
            for child in processes.children_of(os.getpid()):
                if child not in self._helpers:
                    processes.kill(child)
            self._reap()
            if not self._groups and not processes.children_of(os.getpid()):
                break
            self._epoll.poll(0.01)
        end_all(self._outside, END_S)
        if self._boxes is not None:
            self._boxes.close()

    def _turn(self) -> None:
        for fd, _ in self._epoll.poll(self._patience()):
            if fd == self._wake:
                os.read(fd, 4_096)
            elif fd in self._pipes:
                self._read_output(self._pipes[fd])
            elif fd == self._link.fileno():
                self._receive()
        self._reap()
        if self._groups:
            self._look_at_time(boottime())
        if self._untidy:
            self._tidy(boottime())
        if self._messages:
            self._say([])
        if self._link.waiting:
            self._flush()

    def _patience(self) -> float:
        if self._untidy:
            return WATCH_S
        if not self._groups:
            return -1
        if any(group.watched for group in self._groups.values()):
            return WATCH_S
        return min(TICK_S, max(0.0, self._soft - boottime()))

    # Messages of the agent

    def _receive(self) -> None:
        messages = self._link.receive()
        if messages is None:
            self._ended = True
            return
        for message in messages:
            self._obey(message)
        self._record.write(self._groups)

    def _obey(self, message: tuple[Any, ...]) -> None:
        kind = message[0]
        if kind == "spawn":
            self._spawn(*message[1:])
        elif kind == "deadline":
            self._soft, self._hard = message[1:]
        elif kind == "stop":
            self._stop(message[1], message[2])
        elif kind == "remove":
            self._remove(message[1])
        elif kind == "base":
            self._base = message[1]
        elif kind == "wall":
            self._walls.add(*message[1:], self._link.fds)

    def _stop(self, number: int, grace: float) -> None:
        """Sends SIGTERM to the group and SIGKILL after the grace; without grace at once."""
        group = self._numbers.get(number)
        if group is None:
            return
        if grace > 0 and not group.kill_at:
            group.ask_to_end()
        kill_at = boottime() + grace
        group.kill_at = min(group.kill_at or kill_at, kill_at)

    def _remove(self, path: str) -> None:
        """Removes a folder of any size, in a process of its own."""
        rm, enter = ["rm", "-rf", "--", path], self._walls.entering_users
        try:
            self._helpers.add(launch(rm, self._base, (self._null,) * 3, prepare=enter))
        except OSError:
            pass  # The next agent tries again.

    def _spawn(
        self, number: int, argv: list[str], env: dict[str, str], whole: bool,
        cwd: str | None, make: bool, fds: int, tag: bytes, cpus: tuple[int, ...],
        how: tuple[Any, ...],
    ) -> None:  # fmt: skip
        given = [self._link.fds.popleft() for _ in range((fds & 1) + (fds >> 1))]
        opened: list[int] = []
        start = Start.made(how)
        try:
            if boottime() >= self._soft:
                raise OSError(FENCED, "no server has answered for too long")
            prepare, finish = self._walls.steps(start, cwd, make)
            if cwd is not None:
                self._walls.go_to(cwd, make, start)
            pipe, write = opened = [*os.pipe()]
            status, told = os.pipe() if start.status else (-1, -1)
            opened += [fd for fd in (status, told) if fd >= 0]
            full = env if whole else {**self._base, **env}
            stdin = given[0] if fds & 1 else self._null
            stdout = given[-1] if fds & 2 else write
            boxed = nullcontext() if self._boxes is None else self._boxes.inside()
            with pinned(cpus), boxed as box:
                # Limits of a container do not apply to the program that requests it.
                plain = start._replace(allowed=Allowed()) if start.outside else start
                streams = (stdin, stdout, write)
                pid = launch(argv, full, streams, plain, told, prepare, finish, self._parents)
            if box is not None and not start.outside:
                box.limit(start.allowed.memory, start.allowed.processes, start.layers)
        except (OSError, ValueError) as error:
            code = error.errno if isinstance(error, OSError) else errno.EINVAL
            text = error.strerror if isinstance(error, OSError) else str(error)
            self._messages.append(("failed", number, code, text))
            given += opened
        else:
            given += [fd for fd in (write, told) if fd >= 0]
            kept = cwd if make else None
            self._keep(Group(number, pid, pipe, kept, tag, box, start, status))
        for fd in given:
            os.close(fd)

    def _keep(self, group: Group) -> None:
        self._groups[group.pid] = self._numbers[group.number] = group
        os.set_blocking(group.pipe, False)
        self._pipes[group.pipe] = group
        self._epoll.register(group.pipe, select.EPOLLIN)
        self._record.note(group.pid)
        self._messages.append(("started", group.number, group.pid))

    # Output

    def _read_output(self, group: Group) -> None:
        try:
            data = os.read(group.pipe, INLINE)
        except BlockingIOError:
            return
        if not data:
            self._close_pipe(group)
            return
        self._messages.append(("output", group.number, data))
        group.inline += len(data)
        if group.inline >= INLINE:
            # A chatty job: from here on the agent reads by itself, at its own pace.
            self._messages.append(("pipe", group.number))
            self._say([os.dup(group.pipe)])
            self._close_pipe(group)

    def _close_pipe(self, group: Group) -> None:
        self._epoll.unregister(group.pipe)
        del self._pipes[group.pipe]
        os.close(group.pipe)
        group.pipe = -1

    def _drain(self, group: Group) -> None:
        """Reads the last output of a job that has ended and closes its pipe."""
        try:
            while (data := os.read(group.pipe, 65_536)) and group.inline < LAST_WORDS:
                self._messages.append(("output", group.number, data))
                group.inline += len(data)
        except BlockingIOError:
            pass
        self._close_pipe(group)

    # Endings

    def _reap(self) -> None:
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, LOOK)
            except ChildProcessError:
                return
            if found is None:
                return
            pid = found.si_pid
            group = self._groups.pop(pid, None)
            if group is not None:
                # The leader's pid stays taken until it is reaped: this hits no stranger.
                group.kill()
                self._end_user(group.user)
                self._untidy = True
            _, status, usage = os.wait4(pid, 0)
            self._parents.end(pid)
            self._helpers.discard(pid)
            self._disk.ended(pid)
            if pid in self._returning:
                self._report(*self._returning.pop(pid))
            elif pid in self._inner:
                self._report(*self._inner.pop(pid), usage)
            elif group is not None:
                group.code = os.waitstatus_to_exitcode(status)
                self._end_leader(group, usage)

    def _end_user(self, user: int | None) -> None:
        """Kills what is left of a user that no other group has."""
        if user is not None and all(group.user != user for group in self._groups.values()):
            processes.kill_user(user, self._walls.enter_users)

    def _end_leader(self, group: Group, usage: Any) -> None:
        """Reports the end of a group; for a nested one, only when the inner process is gone."""
        shared = any(other.user == group.user for other in self._groups.values())
        if not shared and (helper := self._walls.return_folder(group.user, group.cwd)):
            self._helpers.add(helper)
            self._returning[helper] = group, usage
            return
        pid = group.read_status()
        try:
            if pid:
                os.waitid(os.P_PID, pid, LOOK)
        except ChildProcessError:
            pid = 0  # The leader has reaped it.
        if pid:
            group.pid = pid
            self._inner[pid] = group, usage
        else:
            self._report(group, usage)

    def _report(self, group: Group, *usages: Any) -> None:
        code = group.code
        del self._numbers[group.number]
        if group.pipe >= 0:
            self._drain(group)
        dirty = group.cwd is not None and holds_something(group.cwd)
        over = group.over
        if not over and group.box is not None:
            over = group.box.passed
        if group.box is not None and self._boxes is not None:
            self._boxes.end(group.box)
        if code == -signal.SIGKILL and not group.kill_at:
            before, self._oom_kills = self._oom_kills, processes.out_of_memory_kills()
            over = over or ("memory" if self._oom_kills > before else "")
        peak = 0 if group.outside else max(usage.ru_maxrss for usage in usages) * 1024
        if code and not over and group.allowed.memory and peak >= FULL * group.allowed.memory:
            over = "memory"  # It could not get more, and gave up.
        over = over or OF_SIGNAL.get(-code, "")
        cpu = max(usage.ru_utime + usage.ru_stime for usage in usages)
        self._messages.append(("exit", group.number, code, over, group.fenced, dirty, peak, cpu))

    # Time

    def _look_at_time(self, now: float) -> None:
        if now >= self._soft:
            self._fence()
        for group in self._groups.values():
            if group.kill_at and now >= group.kill_at:
                self._kill(group)
        if now - self._watched_at >= WATCH_S:
            self._watched_at = now
            self._watch_use(now)
        if now - self._swept_at >= TICK_S:
            self._swept_at = now
            self._untidy = True

    def _root_of(self, group: Group) -> int:
        """Returns the topmost process of a job: for a container, its monitor."""
        if not group.outside:
            return group.pid
        others = (c for c in processes.children_of(os.getpid()) if c not in self._groups)
        group.root = find_root(group.outside, group.root, others)
        return group.root

    def _kill(self, group: Group, over: str = "") -> None:
        """Kills a group, and starts the command that ends what it runs elsewhere."""
        group.kill(over)
        now = boottime()
        if not group.outside or now < group.ending_at:
            return
        group.ending_at = now + TICK_S
        if helper := start_ender(self._outside, group.outside, self._null):
            self._helpers.add(helper)

    def _fence(self) -> None:
        """Stops all jobs: no server has answered for too long, so others may soon run them."""
        for group in self._groups.values():
            if not group.fenced:
                group.fenced = True
                group.kill_at = min(group.kill_at or self._hard, self._hard)
                group.ask_to_end()

    def _watch_use(self, now: float) -> None:
        for group in self._groups.values():
            if not group.allowed.is_watched:
                continue
            over = passed(group.allowed, usage_of(self._root_of(group)), group.box, group.layers)
            if over:
                self._kill(group, over)
            measuring = self._disk.look_at(group, now, self._base, self._walls.entering_users)
            if measuring:
                self._helpers.add(measuring)

    def _tidy(self, now: float) -> None:
        """Removes what ended jobs left; repeats until nothing is left, but not too often."""
        if self._groups and now - self._tidied_at < WATCH_S:
            return
        self._tidied_at = now
        self._untidy = self._sweep() if self._boxes is None else self._boxes.tidy()

    def _sweep(self) -> bool:
        """Kills orphans of ended jobs that left their group; returns whether there were any."""
        strays = [c for c in processes.children_of(os.getpid()) if c not in self._groups]
        groups = self._groups.values() if strays else ()
        tags = {group.tag for group in groups}
        names = {group.outside.encode() for group in groups if group.outside}
        found = False
        for pid in strays:
            seen = processes.look_at(pid)
            if seen is None or pid in self._helpers or seen.session in self._groups:
                continue
            if names and names.intersection(processes.arguments_of(pid)):
                continue  # It watches over a container, and has an environment of its own.
            if not tags.intersection(processes.environ_of(pid)):
                # The orphans these leave become the keeper's, and are found the next time.
                for member in processes.tree_of(pid):
                    processes.kill(member)
                found = True
        return found

    # Sending

    def _say(self, fds: list[int]) -> None:
        self._link.add(self._messages, fds)
        self._messages = []

    def _flush(self) -> None:
        """Sends what the socket takes; a stopped agent must not block the keeper."""
        try:
            self._link.send()
        except OSError:
            self._ended = True
        if self._writing != self._link.waiting:
            self._writing = self._link.waiting
            wanted = select.EPOLLIN | (select.EPOLLOUT if self._writing else 0)
            self._epoll.modify(self._link.fileno(), wanted)


def _wake_on_children() -> int:
    """Returns a descriptor that becomes readable when a child has ended."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read


def main() -> None:
    """Serves the agent whose socket is the descriptor in the first argument."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    processes.become_private()
    processes.become_subreaper()
    fork_keeper(int(sys.argv[1]), place_of(sys.argv[2]))
    processes.become_subreaper()
    sock = socket.socket(fileno=int(sys.argv[1]))
    sock.set_inheritable(False)  # No job may speak in the keeper's name.
    keeper = Keeper(sock, sys.argv[2], _open_boxes(sys.argv[5]))
    signal.signal(signal.SIGUSR1, lambda *_: keeper.end())
    os.chdir("/")
    keeper.run()


def _open_boxes(root: str) -> Boxes | None:
    """Opens boxes below this folder; jobs run without if it is not allowed after all."""
    try:
        return Boxes(root) if root else None
    except OSError:
        return None


if __name__ == "__main__":
    main()
