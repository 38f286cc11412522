"""What all attempts of one incarnation share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from windlass.domain.job.forms import JobLimits
from windlass.ports.clock import Clock
from windlass.ports.executor import Limits
from windlass.ports.gateway import AttemptGateway
from windlass.worker.attempt.index_use import IndexUse
from windlass.worker.attempt.job_socket import Submit
from windlass.worker.attempt.records import Records
from windlass.worker.attempt.secrets import Secrets
from windlass.worker.core.deadline import Deadline
from windlass.worker.core.ports import Key
from windlass.worker.isolation.modes import Modes
from windlass.worker.keeper.kept_process import AS_WORKER, KeptProcess, RunAs
from windlass.worker.keeper.scratch import Scratch


class Keeper(Protocol):
    """Starts processes and ends them; `base` is the environment all of them see."""

    @property
    def base(self) -> Mapping[str, str]: ...

    def spawn(
        self,
        argv: Sequence[str],
        env: dict[str, str] | None,
        *,
        whole: bool = False,
        cwd: str | None = None,
        make: bool = False,
        stdin: int | None = None,
        stdout: int | None = None,
        limits: Limits | None = None,
        tag: bytes = b"\0",
        run_as: RunAs = AS_WORKER,
    ) -> KeptProcess:
        """Asks for a process; see `KeeperClient.spawn`."""
        ...


class SubmitSocket(Protocol):
    """Lets the programs of attempts submit jobs; `path` is where it listens."""

    @property
    def path(self) -> Path | None: ...

    def admit(self, key: Key, submit: Submit) -> dict[str, str]:
        """Returns the variables by which the programs of an attempt find it."""
        ...

    def dismiss(self, key: Key) -> None:
        """Refuses the programs of an attempt from now on."""
        ...


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
    limits: JobLimits | None = None  # the most that a job may use
    result_limit: int = 1024 * 1024  # larger results are kept as artifacts
