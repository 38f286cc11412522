"""How a worker runs jobs of one task: an executor gets a context and returns a result."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from windlass.domain.lifecycle.failures import Raised
from windlass.domain.matching.isolation import Isolation
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.sync import Outcome


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended: the fields of `Finished` without the ids.

    `misfit`: the arguments do not fit, and nothing was run. Raising `InvalidInput` before any
    process was started means the same. `unable`: this worker cannot run such jobs, others may; with
    `back_off`, not at once. `own_limit`: it exceeded its own limit. `quotes_log`: the last line of
    its log is added to the message.
    """

    outcome: Outcome = "completed"
    exit_code: int | None = None
    failure: str | None = None
    message: str | None = None
    result: Any = None
    misfit: bool = False
    raised: Raised | None = None
    size: int = 0  # bytes of the result as JSON; 0: unknown
    leaves_files: bool = False  # the result names files of the scratch directory
    unable: bool = False
    back_off: bool = False
    own_limit: bool = False
    quotes_log: bool = False

    def leaves_more(self, limit: int) -> bool:
        """Returns True if parts of it must be kept as artifacts: files, or more than `limit`
        bytes.
        """
        return self.leaves_files or self.size > limit


class Limits(msgspec.Struct, frozen=True):
    """What a program may use, together with all processes it starts; 0: no limit.

    `open_files` is per process. If `cpus` is not empty, it runs only on these.
    """

    memory_bytes: int = 0
    cpu_seconds: int = 0
    cpus: tuple[int, ...] = ()
    processes: int = 0
    open_files: int = 0
    disk_bytes: int = 0  # of the scratch directory


class Granted(msgspec.Struct, frozen=True, array_like=True):
    """The indexed resources of an attempt: its variables, and the CPUs that it is pinned to."""

    variables: dict[str, str]
    cpus: tuple[int, ...] = ()


class Exit(msgspec.Struct, frozen=True):
    """How a process ended: a code, or the signal that killed it.

    `over` is the limit that it exceeded, by its name in jobs; `limits` are its limits.
    """

    code: int | None
    signal: int | None = None
    out_of_memory: bool = False
    over: str = ""
    limits: Limits | None = None


class Process(Protocol):
    """A process group that the keeper started for a job."""

    @property
    def pid(self) -> int: ...

    @property
    def stdin(self) -> asyncio.StreamWriter | None: ...

    @property
    def stdout(self) -> asyncio.StreamReader | None:
        """The output, only with `capture=True`; otherwise it goes to the job's log."""

    async def wait(self) -> Exit: ...

    async def stop(self) -> Exit:
        """Sends SIGTERM to the whole group, SIGKILL after the grace; returns how it ended."""


class JobContext(Protocol):
    """An attempt as its executor sees it."""

    @property
    def job(self) -> int: ...
    @property
    def attempt(self) -> int:
        """The number that people see."""

    @property
    def namespace(self) -> str: ...
    @property
    def workflow(self) -> int | None: ...
    @property
    def args(self) -> Any: ...
    @property
    def spec(self) -> Mapping[str, Any]: ...
    @property
    def version(self) -> str | None:
        """The version of its function that the job requires."""

    @property
    def trace(self) -> str | None:
        """The context of its spans, in the form of `traceparent`, if it is traced."""

    @property
    def scratch(self) -> Path:
        """The attempt's own directory, removed at its end."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of its processes, without the agent's credentials."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secrets that the job declares, by name; `env` has them too."""

    @property
    def granted(self) -> Granted | None:
        """Its indexed resources, if any; `env` has the variables too."""

    @property
    def isolation(self) -> Isolation:
        """The mode of isolation in which its programs run."""

    @property
    def alone(self) -> bool:
        """Whether it shares no process with other jobs: it demands isolation, or has limits.

        Also if it needs files, in a mode in which a shared process would not see them.
        """

    @property
    def own_mode(self) -> bool:
        """Whether it is isolated just as the worker's other jobs are."""

    @property
    def timeout_ms(self) -> int | None: ...
    @property
    def stopping(self) -> asyncio.Event:
        """Set when the attempt is to stop: canceled, timed out, drained, lease lost."""

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes | int | None = None,
        limits: Limits | None = None,
        capture: bool = False,
    ) -> Process:
        """Starts a process in its own group, through the keeper.

        It sees the variables in `env` beside those that all programs of the job see. It reads
        `stdin`: these bytes, or this descriptor, which is closed here.
        """

    async def fetch(self, job: int, artifact: str, path: str) -> None:
        """Places an artifact of another job at `path` below the scratch directory."""

    async def upload(self, patterns: Sequence[str]) -> None:
        """Hashes and uploads the files of the scratch directory that match these globs."""

    async def measured(self, duration_ms: int) -> None:
        """Reports how long the media of the job is; the server says which timeout follows."""

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        """Submits jobs into the workflow of this one."""

    async def step(self, request: StepRequest) -> StepReply:
        """Stores a step of the function, or begins what it waits for."""

    def log(self, data: bytes) -> None: ...

    def log_full(self, resume: Callable[[], None]) -> bool:
        """Returns whether more output should wait; then `resume` is called once there is room."""

    def progress(self, value: Any) -> None: ...

    def alive(self) -> None:
        """Notes that the job is at work, although it writes nothing."""


class Executor(Protocol):
    """Runs the jobs of one task."""

    @property
    def task(self) -> str: ...

    async def run(self, context: JobContext) -> Result:
        """Runs one attempt to its end; ends it soon once `stopping` is set.

        An executor of very short jobs may have a method `begin(context, done)` beside it,
        which does the same without a task for each job: `done` is called with the result.
        """

    async def close(self) -> None: ...
