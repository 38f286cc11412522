"""The agent's side of its keeper: starts processes and learns how they ended.

It also kills what an older agent of the same directory has left behind. A process is known by its
pid together with its start time, or by the marker in its environment: a stranger that got the same
pid later is never touched.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from windlass.ports.clock import Clock
from windlass.ports.executor import Limits
from windlass.worker.keeper.keeper import FENCED
from windlass.worker.keeper.kept_process import Fenced, KeptProcess, Program, SpawnFailed
from windlass.worker.keeper.link import Link
from windlass.worker.keeper.processes import Seen, all_processes, environ_of, look_at
from windlass.worker.keeper.record import boot_id
from windlass.worker.keeper.walls import CLOSED, USERS, VIEW

FDS_PER_FRAME = 100
# its whole environment
OWN = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ", "USER")
MARKER = "WINDLASS_KEEPER"  # in the environment of every job: which agent it belongs to

SLACK_MS = 20  # the kernel counts start times in hundredths of a second
PAUSE_MS = 10
MAX_LINE = 40  # bytes: two numbers of 64 bits


# The packages are created bare: the keeper must not load what their `__init__` files import.
_START = """
import sys, types
for name, path in (("windlass", sys.argv[3]), ("windlass.worker", sys.argv[4])):
    package = types.ModuleType(name)
    package.__path__ = [path]
    sys.modules[name] = package
from windlass.worker.keeper.keeper import main
main()
"""


class KeeperClient:
    """Starts the keeper's process and exchanges messages with it."""

    def __init__(
        self,
        record: Path,
        base: Mapping[str, str],
        on_death: Callable[[], None],
        cgroup: str | None = None,
    ) -> None:
        self.grace_ms = 10_000
        self.base = dict(base)
        self._record = record
        self._cgroup = cgroup or ""  # the folder for the boxes of jobs
        self._on_death = on_death
        self._link: Link | None = None
        self.pid = 0  # the keeper's pid, once it has reported it
        self.controllers: tuple[str, ...] = ()  # mechanisms by which cgroups limit jobs
        self._process: subprocess.Popen[bytes] | None = None  # the pid of its guard
        self._numbers = 0
        self._kept: dict[int, KeptProcess] = {}
        self._outgoing: list[tuple[Any, ...]] = []
        self._fds: list[int] = []
        self._scheduled = False
        self._writing = False
        self._walls: list[tuple[tuple[Any, ...], tuple[int, ...]]] = []  # for each keeper

    def start(self) -> None:
        """Starts the keeper's process."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        here = Path(__file__).parent.parent
        fd = str(theirs.fileno())
        # No site packages and none of our environment: it starts fast and knows no secrets. Only
        # jobs carry the marker: a later agent must not kill the guard; it exits by itself.
        command = [sys.executable, "-I", "-S", "-c", _START, fd, str(self._record)]
        self._process = subprocess.Popen(
            [*command, str(here.parent), str(here), self._cgroup], pass_fds=[theirs.fileno()],
            env={name: self.base[name] for name in OWN if name in self.base},
            stdin=subprocess.DEVNULL, start_new_session=True, cwd="/",
        )  # fmt: skip
        theirs.close()
        self._link = Link(ours)
        asyncio.get_running_loop().add_reader(ours.fileno(), self._receive)
        self.send(("base", self.base))
        for message, fds in self._walls:
            self._send_with(message, fds)

    def hide_by_view(self, user: int, mounts: int) -> None:
        """Starts programs that are kept out in these namespaces; owns the descriptors."""
        self._add_wall(("wall", VIEW), (user, mounts))

    def close_folders(self, closed: Sequence[str], kept: Sequence[str]) -> None:
        """Closes folders, except those in `kept`, to programs that are kept out."""
        self._add_wall(("wall", CLOSED, list(closed), list(kept)))

    def use_users(self, users: int) -> None:
        """Starts programs of other users in this namespace."""
        self._add_wall(("wall", USERS), (os.dup(users),))

    def drop_walls(self) -> None:
        """Closes the descriptors of namespaces; no keeper will follow."""
        for _, fds in self._walls:
            for fd in fds:
                os.close(fd)
        self._walls.clear()

    def _add_wall(self, message: tuple[Any, ...], fds: tuple[int, ...] = ()) -> None:
        self._walls.append((message, fds))
        if self._link is not None:
            self._send_with(message, fds)

    def _send_with(self, message: tuple[Any, ...], fds: tuple[int, ...]) -> None:
        self._fds += [os.dup(fd) for fd in fds]
        self.send(message)

    def close(self) -> None:
        """Disconnects: the keeper kills everything and ends."""
        self._hang_up()
        self._reap()
        self.fail_all()

    def _reap(self) -> None:
        if self._process is not None:
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGKILL)
                self._process.wait()
            self._process = None
            self.pid = 0

    def set_deadline(self, soft_s: float, hard_s: float) -> None:
        """Sets when jobs are stopped and when the last is killed, in CLOCK_BOOTTIME seconds."""
        self.send(("deadline", soft_s, hard_s))

    def remove(self, path: Path) -> None:
        """Removes a folder without waiting for it."""
        self.send(("remove", str(path)))

    def spawn(
        self,
        program: Program,
        *,
        stdin: int | None = None,
        stdout: int | None = None,
        tag: bytes = b"\0",
    ) -> KeptProcess:
        """Requests a process; the client owns the descriptors from here on."""
        self._numbers += 1
        number, limits = self._numbers, program.limits
        process = self._kept[number] = KeptProcess(self, number, limits)
        self._fds += [fd for fd in (stdin, stdout) if fd is not None]
        bits = (stdin is not None) | (stdout is not None) << 1
        cpus = () if limits is None else limits.cpus
        how = (_allowed(limits), *program.start[1:])
        self.send((
            "spawn", number, list(program.argv), program.env, program.whole, program.cwd,
            program.make, bits, tag, cpus, how,
        ))  # fmt: skip
        if len(self._fds) >= FDS_PER_FRAME:
            self._flush()
        return process

    def send(self, message: tuple[Any, ...]) -> None:
        """Sends a message, together with all others of this turn of the loop."""
        self._outgoing.append(message)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if self._link is not None and self._outgoing:
            self._link.add(self._outgoing, self._fds)
            self._outgoing, self._fds = [], []
        self._write()

    def _write(self) -> None:
        link = self._link
        if link is None:
            return
        try:
            link.send()
        except OSError:
            self._died()
            return
        if self._writing != link.waiting:
            self._writing = link.waiting
            loop, fd = asyncio.get_running_loop(), link.fileno()
            loop.add_writer(fd, self._write) if self._writing else loop.remove_writer(fd)

    def _receive(self) -> None:
        messages = [] if self._link is None else self._link.receive()
        if messages is None:
            self._died()
            return
        for message in messages:
            self._hear(message)

    def _hear(self, message: tuple[Any, ...]) -> None:
        kind, number = message[0], message[1]
        if kind == "keeper":
            self.pid, self.controllers = number, message[2]
            return
        fd = self._link.fds.popleft() if kind == "pipe" and self._link is not None else -1
        process = self._kept.get(number)
        if process is None:
            if fd >= 0:
                os.close(fd)
        elif kind == "started":
            process.begin(message[2])
        elif kind == "exit":
            del self._kept[number]
            process.end(*message[2:])
        elif kind == "output":
            process.on_output(message[2])
        elif kind == "pipe":
            process.on_pipe(fd)
        elif kind == "failed":
            del self._kept[number]
            _, _, code, text = message
            process.tell(Fenced(text) if code == FENCED else SpawnFailed(code, text))

    def _hang_up(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(link.fileno())
            loop.remove_writer(link.fileno())
            link.close()
        for fd in self._fds:
            os.close(fd)
        self._fds, self._outgoing = [], []
        self._scheduled = self._writing = False

    def fail_all(self) -> None:
        """Tells everyone who waits for a process that it was killed."""
        kept, self._kept = self._kept, {}
        for process in kept.values():
            process.tell(Fenced("the keeper is gone"))

    def _died(self) -> None:
        """Handles the death of the keeper: nobody watches over its groups any more."""
        self._hang_up()
        self._reap()
        self._on_death()


def _allowed(limits: Limits | None) -> tuple[int, ...]:
    """Returns the limits as the keeper's process reads them (`Allowed`)."""
    if limits is None:
        return ()
    return (
        limits.memory_bytes, limits.cpu_seconds, limits.processes, limits.open_files,
        limits.disk_bytes,
    )  # fmt: skip


async def kill_leftovers(record: Path, marker: str, clock: Clock, patience_ms: int) -> bool:
    """Kills every process that the record or the marker names; returns whether none is left."""
    noted = dict(_read_record(record))
    for _ in range(max(1, patience_ms // PAUSE_MS)):
        found = _find_leftovers(noted, marker)
        if not found:
            return True
        for seen in found:
            try:
                os.kill(seen.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        await clock.sleep_ms(PAUSE_MS)
    return False


def _read_record(record: Path) -> Iterator[tuple[int, int]]:
    """Returns pids, each with the time it was noted, in ms since boot."""
    try:
        boot, *lines = record.read_bytes().split(b"\n")
    except OSError:
        return
    if boot != boot_id():
        return  # Nothing outlives a reboot.
    for line in lines:
        pid, _, noted = line.partition(b" ")
        if pid.isdigit() and noted.isdigit() and len(line) <= MAX_LINE:
            yield int(pid), int(noted)


def _find_leftovers(noted: dict[int, int], marker: str) -> list[Seen]:
    """Finds the processes to kill, the keeper first, so that it starts nothing more."""
    leaders = {pid for pid, at in noted.items() if _is_leader(pid, at)}
    mark = f"{MARKER}={marker}".encode()
    found = [
        seen
        for seen in all_processes()
        if seen.pid in leaders or seen.session in leaders or mark in environ_of(seen.pid)
    ]
    order = {pid: index for index, pid in enumerate(noted)}
    return sorted(found, key=lambda seen: order.get(seen.pid, len(order)))


def _is_leader(pid: int, noted: int) -> bool:
    seen = look_at(pid)
    return seen is not None and seen.session == pid and seen.started <= noted + SLACK_MS
