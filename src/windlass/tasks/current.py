"""The job that a function runs for: `windlass.current()`."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict, InvalidInput, read_invalid_input
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.tasks.local_files import refuse_files
from windlass.tasks.submitting import about_one, with_ids
from windlass.tasks.task import spec_of
from windlass.tracing.current import current_trace, with_trace

SCRATCH: Final = b"scratch"  # requests from a job to its agent
PROGRESS_LIMIT: Final = 4_096  # bytes as JSON, the limit of servers
LOST: Final = "lease_lost"
JOBS: Final = "jobs"  # the default kind of request to an agent


T = TypeVar("T")


class Canceled(BaseException):
    """Raised inside a job that must stop. Let it propagate; clean up in `finally`."""


class Channel(Protocol):
    """How a job's process talks to its agent."""

    def progress(self, seq: int, value: object) -> None: ...

    def log(self, seq: int, text: str) -> None: ...

    def canceled(self, seq: int) -> bool: ...

    def ask(self, seq: int, body: bytes, what: str = JOBS) -> "Answer": ...

    async def ask_async(self, seq: int, body: bytes, what: str = JOBS) -> "Answer": ...

    def alive(self, seq: int) -> None: ...


class Answer(Protocol):
    """The server's answer to a request: JSON, which is an error if it was `refused`."""

    @property
    def body(self) -> bytes: ...

    @property
    def refused(self) -> bool: ...


class Current(msgspec.Struct, frozen=True):
    """The job that a function runs for."""

    job: int
    attempt: int
    workflow: int | None
    seq: int
    channel: Channel
    secrets: Mapping[str, str] = {}
    keys: set[str] = msgspec.field(default_factory=set)  # keys of the steps that it has used
    unmet: list[str] = []  # the keys of waits that have ended this attempt with `Suspended`
    folders: list[Path] = []  # folders that this process has made for it: one at most

    def progress(
        self, value: object, *, total: float | None = None, text: str | None = None
    ) -> None:
        """Reports progress: a number from 0 to 1, or any JSON value up to 4 KiB.

        With `total`, the value says how much of it is done; `text` says what is being done.
        """
        if total is not None or text is not None:
            value = {"done": value, "total": total, "text": text}
        _check_progress(value)
        self.channel.progress(self.seq, value)

    def heartbeat(self) -> None:
        """Reports that the function is still at work; restarts its idle timeout."""
        self.channel.alive(self.seq)

    def log(self, text: str) -> None:
        """Writes a line to the job's log, from any thread."""
        self.channel.log(self.seq, text if text.endswith("\n") else text + "\n")

    def secret(self, name: str) -> str:
        """Returns a secret that the job declared; it is masked in the log and in results."""
        if name not in self.secrets:
            declared = ", ".join(sorted(self.secrets)) or "none"
            raise InvalidInput("secret", f"one that the job declares ({declared})", name)
        return self.secrets[name]

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> int:
        """Adds a call of a marked function to this job's workflow and returns the new job's id."""
        spec = spec_of(function, args, kwargs)
        with about_one(spec):
            (job,) = self.submit_many([spec])
        return job

    def submit_many(self, jobs: Sequence[JobSpec], key: str | None = None) -> list[int]:
        """Adds jobs to this job's workflow, all or none, and returns their ids.

        With a `key` that this workflow has seen, for example from an earlier attempt, it returns
        the existing jobs. Jobs without a priority inherit this job's; “+1” and “-1” raise and lower
        it.
        """
        answer = self.channel.ask(self.seq, _asked(jobs, key))
        return read_answer(answer, SubmitReply).ids

    async def submit_many_async(self, jobs: Sequence[JobSpec], key: str | None = None) -> list[int]:
        """Does the same in async functions."""
        answer = await self.channel.ask_async(self.seq, _asked(jobs, key))
        return read_answer(answer, SubmitReply).ids

    @property
    def scratch(self) -> Path:
        """Returns a directory for this attempt's files; it is removed when the attempt ends."""
        return self._folder(self.channel.ask(self.seq, SCRATCH))

    async def scratch_async(self) -> Path:
        """Returns the same in async functions."""
        return self._folder(await self.channel.ask_async(self.seq, SCRATCH))

    def _folder(self, answer: Answer) -> Path:
        """Returns the folder that the agent names, else one that this process makes."""
        named: str | None = msgspec.json.decode(answer.body)
        if named is not None:
            return Path(named)
        if not self.folders:
            from tempfile import mkdtemp  # few functions need this import

            made = mkdtemp(prefix=f"job-{self.job}-", dir=_Process.folder)
            self.folders.append(Path(made))
        return self.folders[0]

    def remove_folders(self) -> None:
        """Removes the folders made here; the function has ended."""
        for folder in self.folders:
            import shutil  # few functions need this import

            shutil.rmtree(folder, ignore_errors=True)

    @property
    def canceled(self) -> bool:
        """Returns whether the job must stop: canceled, or out of time."""
        return self.channel.canceled(self.seq)

    def check_canceled(self) -> None:
        """Raises `Canceled` if the job must stop."""
        if self.canceled:
            raise Canceled


def _check_progress(value: object) -> None:
    """Refuses here what the server would refuse, since its refusal would go unnoticed."""
    try:
        size = len(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput("progress", "a JSON value", str(error)) from None
    if size > PROGRESS_LIMIT:
        raise InvalidInput(
            "progress", f"at most {PROGRESS_LIMIT:,} bytes as JSON", f"{size:,} bytes"
        )


def _asked(jobs: Sequence[JobSpec], key: str | None) -> bytes:
    refuse_files(jobs)
    ready = with_trace([with_ids(job) for job in jobs], current_trace())
    return msgspec.json.encode(SubmitRequest(jobs=ready, key=key))


def read_answer(answer: Answer, kind: type[T]) -> T:
    """Returns what the server answered; raises the error that it answered with."""
    if not answer.refused:
        return msgspec.json.decode(answer.body, type=kind)
    error = msgspec.json.decode(answer.body)["error"]
    if error["code"] == LOST:  # Another attempt continues, or none does.
        raise Canceled
    if "field" in error and "expected" in error:
        raise read_invalid_input(error)
    raise Conflict(error["code"], error["message"], error.get("retry_after_ms"))


class _Process:
    """The job of a process that runs one at a time; its threads see it too.

    `folder` is where a process that serves several jobs makes folders for them.
    """

    job: Current | None = None
    folder: str | None = None


_CURRENT: Final[ContextVar[Current | None]] = ContextVar("windlass_job", default=None)


def current() -> Current:
    """Returns the job this function runs for."""
    job = find_current()
    if job is None:
        raise Conflict("no_job", "windlass.current() was called outside a job")
    return job


def find_current() -> Current | None:
    """Returns the job this code runs for, or None outside jobs."""
    return _CURRENT.get() or _Process.job


def make_folders_in(folder: str) -> None:
    """Sets where this process makes folders for its jobs."""
    _Process.folder = folder


def enter(job: Current | None, *, alone: bool) -> None:
    """Enters a job (None leaves it): for the whole process if `alone`, else for its context."""
    if alone:
        _Process.job = job
    else:
        _CURRENT.set(job)
