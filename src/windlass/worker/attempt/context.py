"""What all attempts of one incarnation share, and which of them uses which index.

The server assigns indices with leases. But a lease may end before the processes of its attempt:
then the next attempt with the same index waits here until they are gone.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from windlass.domain.job.forms import JobLimits
from windlass.domain.matching.clauses import CPUS
from windlass.domain.matching.indices import variables
from windlass.ports.clock import Clock
from windlass.ports.executor import Granted
from windlass.ports.gateway import AttemptGateway
from windlass.worker.attempt.job_socket import Submit
from windlass.worker.attempt.records import Records
from windlass.worker.attempt.secrets import Secrets
from windlass.worker.core.ports import Deadline, Key
from windlass.worker.isolation.modes import Modes
from windlass.worker.keeper.kept_process import KeptProcess, Program
from windlass.worker.keeper.scratch import Scratch

Names = Mapping[str, tuple[str, ...]]


class IndexUse:
    """The indices in use on one machine, by any incarnation; `pins` is the worker's option."""

    def __init__(self, pins: bool = False) -> None:
        self._pins = pins
        self._users: dict[tuple[str, str], Key] = {}
        self._freed = asyncio.Event()
        self.vendor: object = None  # of the GPUs

    def grant(self, indices: Names) -> Granted:
        """Returns what these indices mean to a job."""
        cpus = indices.get(CPUS, ()) if self._pins else ()
        return Granted(variables(indices, self.vendor), tuple(map(int, cpus)))

    async def take(self, key: Key, indices: Names) -> None:
        """Waits until no other attempt uses any of these, and marks them as used."""
        wanted = [(resource, name) for resource, names in indices.items() for name in names]
        while any(self._users.get(one, key) != key for one in wanted):
            self._freed.clear()
            await self._freed.wait()
        self._users.update(dict.fromkeys(wanted, key))

    def free(self, key: Key) -> None:
        """Frees what this attempt used: its processes have ended."""
        self._users = {one: user for one, user in self._users.items() if user != key}
        self._freed.set()


class Keeper(Protocol):
    """Starts processes and ends them; `base` is the environment all of them see."""

    @property
    def base(self) -> Mapping[str, str]: ...

    def spawn(
        self,
        program: Program,
        *,
        stdin: int | None = None,
        stdout: int | None = None,
        tag: bytes = b"\0",
    ) -> KeptProcess:
        """Requests a process; see `KeeperClient.spawn`."""


class SubmitSocket(Protocol):
    """Lets the programs of attempts submit jobs; `path` is where it listens."""

    @property
    def path(self) -> Path | None: ...

    def admit(self, key: Key, submit: Submit) -> dict[str, str]:
        """Returns the variables that tell an attempt's programs how to connect."""

    def dismiss(self, key: Key) -> None:
        """Refuses the programs of an attempt from now on."""


class AgentContext(NamedTuple):
    """What all attempts of one incarnation share."""

    records: Records
    gateway: AttemptGateway
    keeper: Keeper
    scratch: Scratch
    clock: Clock
    worker: int
    incarnation: int
    log_limit: int
    grace_ms: int
    deadline: Deadline
    secrets: Secrets
    socket: SubmitSocket
    index_use: IndexUse
    isolation: Modes
    user_socket: SubmitSocket | None = None  # for jobs that run as other users
    limits: JobLimits | None = None  # the maximum that a job may use
    result_limit: int = 1024 * 1024  # larger results are stored as artifacts
