"""Workers as processes on the server's own machine: the default, also on a laptop.

A worker is found by the token on its command line, so any server on this machine finds it, even
after a crash. It survives the death of the server and continues when the server is back. Servers on
other machines cannot see it: its name begins with the name of its host.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from windlass.domain.pools.pools import Pool
from windlass.ports.clock import Clock
from windlass.ports.programs import start_program
from windlass.ports.provider import Machine, Order, Owner, ProviderFault
from windlass.providers.options import Options

PROC = Path("/proc")
# The worker must not inherit the server's rights.
WITHHELD = ("WINDLASS_TOKEN", "WINDLASS_CONFIG")
STATE = "state"
LOG = "worker.log"
MAX_WORDS = 500  # bytes of the log quoted in a reason
LOOK_MS = 100
PATIENCE = 15  # after this many requests to stop, a worker is killed


class LocalProvider:
    """Starts `windlass worker` with the server's environment plus the given variables.

    It runs in the server's directory, as the workers of `windlass up` do, so modules there can be
    imported.
    """

    settle_ms = 0

    def __init__(self, pool: Pool, place: Path, clock: Clock) -> None:
        self.host = socket.gethostname()
        options = Options(pool.options)
        self._env = options.texts("env")
        self._words = options.words("arguments", ())
        options.done()
        self._place = place
        self._clock = clock
        self._asked: dict[str, int] = {}

    async def launch(self, order: Order) -> Machine:
        """Starts a process unless one with this token exists."""
        for machine in await self.find(order.owner):
            if machine.token == order.token:
                return machine
        folder = self._folder(order.owner) / order.token
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with (folder / LOG).open("ab") as log:
                process = await start_program(
                    sys.executable, "-m", *order.command(), "--state", str(folder / STATE),
                    *self._words, env=self._environment(order), stdin=asyncio.subprocess.DEVNULL,
                    stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            raise ProviderFault(f"cannot start a worker in {folder}: {error.strerror}") from None
        # Until its command line is visible, another server would think it is missing.
        while _is_being_made(process.pid):
            await self._clock.sleep_ms(1)
        return self._machine(order.token, process.pid)

    async def find(self, owner: Owner) -> Sequence[Machine]:
        """Returns the processes whose state is in a folder of the pool, under any server's
        directory; each token is one machine."""
        found: dict[str, Machine] = {}
        for pid, state in _workers():
            if state.parts[-4:-2] == owner and state.name == STATE:
                token = state.parent.name
                found.setdefault(token, self._machine(token, pid))
        self._tidy(owner, found)
        return list(found.values())

    def last_words(self, owner: Owner, token: str) -> str | None:
        """Returns the end of the worker's log."""
        try:
            with (self._folder(owner) / token / LOG).open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - MAX_WORDS))
                lines = log.read().decode(errors="replace").strip().splitlines()
        except OSError:
            return None
        return lines[-1].removeprefix("windlass: ") if lines else None

    async def terminate(self, machines: Sequence[Machine]) -> None:
        """Asks the workers to stop, so that they hand back their jobs; kills those that do not."""
        for machine in machines:
            times = self._asked[machine.token] = self._asked.get(machine.token, 0) + 1
            number = signal.SIGKILL if times > PATIENCE else signal.SIGTERM
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid_of(machine), number)

    def _machine(self, token: str, pid: int) -> Machine:
        return Machine(token, f"{self.host}:{pid}")

    def _environment(self, order: Order) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if name not in WITHHELD}
        home = {"WINDLASS_DATA": str(self._folder(order.owner) / order.token)}
        return {**own, **home, **self._env, **order.environment()}

    def _folder(self, owner: Owner) -> Path:
        return self._place.absolute() / owner.installation / owner.pool

    def _tidy(self, owner: Owner, living: Mapping[str, Machine]) -> None:
        """Removes the state of workers that were terminated and have exited."""
        for token in [token for token in self._asked if token not in living]:
            del self._asked[token]
            shutil.rmtree(self._folder(owner) / token, ignore_errors=True)


def pid_of(machine: Machine) -> int:
    """Returns the process id of a local machine."""
    return int(machine.id.rpartition(":")[2])


def workers_below(folder: Path) -> list[int]:
    """Returns the worker processes whose state is in `folder`."""
    return [pid for pid, state in _workers() if state.is_relative_to(folder.absolute())]


def names_below(folder: Path) -> frozenset[str]:
    """Returns the names of the workers whose state is in `folder`, which are their tokens."""
    below = (state for _, state in _workers() if state.is_relative_to(folder.absolute()))
    return frozenset(state.parent.name for state in below)


def _workers() -> Iterator[tuple[int, Path]]:
    """Yields the process id and the state directory of each worker on this machine.

    A worker that is starting a program shows up twice for a moment: its child keeps its
    command line until it executes the program. Only the parent counts.
    """
    found: dict[int, Path] = {}
    for entry in sorted(PROC.iterdir()):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has just ended
            words = [os.fsdecode(word) for word in (entry / "cmdline").read_bytes().split(b"\0")]
            if "worker" in words and "--state" in words[:-1]:
                found[int(entry.name)] = Path(words[words.index("--state") + 1])
    for pid, state in found.items():
        if found.get(_parent(pid)) != state:
            yield pid, state


def _parent(pid: int) -> int:
    """Returns the process id of a process's parent, or 0 if the process has ended."""
    try:
        return int((PROC / str(pid) / "stat").read_bytes().rpartition(b") ")[2].split()[1])
    except OSError:
        return 0


def _is_being_made(pid: int) -> bool:
    """Returns whether a process has just started and does not show its command line yet."""
    try:
        state = (PROC / str(pid) / "stat").read_bytes().rpartition(b") ")[2][:1]
        return state not in (b"Z", b"X") and not (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


async def end_workers(place: Path, clock: Clock, limit_ms: int) -> None:
    """Asks all workers of local pools to stop, and waits for them for a limited time."""
    deadline = clock.now_ms() + limit_ms
    for pid in workers_below(place):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    while workers_below(place) and clock.now_ms() < deadline:
        await clock.sleep_ms(LOOK_MS)
