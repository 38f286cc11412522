"""A real context for executors under test: processes through a real keeper, no server."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from windlass.domain.matching.isolation import Isolation
from windlass.domain.values.errors import InvalidInput
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.ports.executor import Granted, Limits
from windlass.worker.agent.environment import job_environment
from windlass.worker.keeper.client import MARKER, KeeperClient
from windlass.worker.keeper.kept_process import KeptProcess, Program
from windlass.worker.keeper.processes import boottime

HOUR_S = 3_600


def is_alive(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    return os.path.exists(f"/proc/{pid}")


class Workbench:
    """A keeper, and contexts whose processes it starts."""

    def __init__(self, keeper: KeeperClient, folder: Path) -> None:
        self.keeper = keeper
        self.folder = folder
        self._jobs = 0

    def context(self, args: object, **spec: object) -> "BenchContext":
        self._jobs += 1
        return BenchContext(self, self._jobs, args, spec)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        limits: Limits | None,
        stdin: int,
    ) -> KeptProcess:
        """A process for no job in particular."""
        program = Program(argv=tuple(argv), env=dict(env), cwd=str(cwd), limits=limits)
        process = self.keeper.spawn(program, stdin=stdin)
        process.on_output = sys.stderr.buffer.write  # type: ignore[assignment]
        await process.started()
        return process


class BenchContext:
    """Implements `JobContext`; remembers what an executor tells it."""

    attempt = 1
    timeout_ms = None
    version = None
    trace = None
    isolation: Isolation = "process"
    own_mode = True
    alone = False

    def __init__(self, bench: Workbench, job: int, args: object, spec: Mapping[str, Any]) -> None:
        self.job = job
        self.args: Any = args
        self.spec = spec
        self.scratch = bench.folder / f"job-{job}"
        self.scratch.mkdir()
        self.env: Mapping[str, str] = {**bench.keeper.base, "WINDLASS_JOB": str(job)}
        self.secrets: Mapping[str, str] = {}
        self.granted: Granted | None = None
        self.stopping = asyncio.Event()
        self.written = b""
        self.values: list[Any] = []
        self.uploaded: list[str] = []
        self.durations: list[int] = []
        self.requests: list[SubmitRequest] = []
        self.steps: list[StepRequest] = []
        self.signs = 0
        self.processes: list[KeptProcess] = []
        self.news = asyncio.Event()
        self._bench = bench

    @property
    def namespace(self) -> str:
        return str(self.spec.get("namespace", "default"))

    @property
    def workflow(self) -> int | None:
        return self.spec.get("workflow")

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes | int | None = None,
        limits: Limits | None = None,
        capture: bool = False,
    ) -> KeptProcess:
        assert stdin is None
        listen, stdout = os.pipe() if capture else (-1, None)
        program = Program(
            argv=tuple(argv), env={**self.env, **(env or {})}, whole=True,
            cwd=str(cwd or self.scratch), limits=limits,
        )  # fmt: skip
        process = self._bench.keeper.spawn(program, stdout=stdout)
        process.on_output = self.log
        process.on_pipe = self._attach
        self.processes.append(process)
        if capture:
            process.stdout = await _reader(listen)
        await process.started()
        return process

    async def fetch(self, job: int, artifact: str, path: str) -> None:
        raise NotImplementedError

    async def upload(self, patterns: Sequence[str]) -> None:
        for pattern in patterns:
            self.uploaded += [
                path.relative_to(self.scratch).as_posix() for path in self.scratch.glob(pattern)
            ]

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        self.requests.append(request)
        if not request.jobs:
            raise InvalidInput("jobs", "at least one job", 0)
        return SubmitReply([100 + n for n in range(len(request.jobs))], [True] * len(request.jobs))

    async def step(self, request: StepRequest) -> StepReply:
        self.steps.append(request)
        return StepReply("pending" if request.wait_ms else "done", request.value)

    def alive(self) -> None:
        self.signs += 1
        self.news.set()

    async def measured(self, duration_ms: int) -> None:
        self.durations.append(duration_ms)

    def log(self, data: bytes) -> None:
        self.written += data
        self.news.set()

    def log_full(self, resume: Callable[[], None]) -> bool:
        return False

    def progress(self, value: Any) -> None:
        self.values.append(value)
        self.news.set()

    def stop(self) -> None:
        """What an agent does to end an attempt."""
        for process in self.processes:
            process.ask_to_stop()
        self.stopping.set()

    async def until_written(self, text: bytes) -> None:
        """Wait until the log holds `text`."""
        while text not in self.written:
            self.news.clear()
            await self.news.wait()

    async def until_progress(self, count: int = 1) -> None:
        """Wait for so many values of progress."""
        while len(self.values) < count:
            self.news.clear()
            await self.news.wait()

    def _attach(self, fd: int) -> None:
        os.set_blocking(fd, False)
        asyncio.get_running_loop().add_reader(fd, self._read, fd)

    def _read(self, fd: int) -> None:
        data = os.read(fd, 65_536)
        if data:
            self.log(data)
        else:
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)


@asynccontextmanager
async def workbench(folder: Path, *, grace_ms: int = 300) -> AsyncIterator[Workbench]:
    """A keeper whose deadline is far away."""
    died = asyncio.Event()
    base = job_environment(os.environ, {MARKER: f"bench-{folder.name}"}, {})
    base["PYTHONPATH"] = os.pathsep.join((str(Path.cwd()), base.get("PYTHONPATH", "")))
    keeper = KeeperClient(folder / "record", base, died.set)
    keeper.grace_ms = grace_ms
    keeper.start()
    keeper.set_deadline(boottime() + HOUR_S, boottime() + HOUR_S + 1)
    try:
        yield Workbench(keeper, folder)
    finally:
        keeper.close()
        assert not died.is_set(), "the keeper died"


async def _reader(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    file = os.fdopen(fd, "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    return reader
