"""A real engine, and agents that run real processes against it.

Agents run in the test's own process, or in one of theirs, where they can be killed and
stopped; those speak through a socket (`bridge.py`) that a test can cut.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from tests.support.files import MemoryFiles
from tests.support.running import run
from tests.support.specs import spec_of
from tests.worker.bridge import Bridge
from windlass.clock import RealChance, RealClock
from windlass.domain.config import Config, health_pause_ms
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.records import Attempt, JobRecord
from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.fleet.workers import Enrolled
from windlass.engine.loops.scheduling import HealthLoop
from windlass.executors.loading import load_executors
from windlass.ports.executor import Executor
from windlass.ports.gateway import Gateway
from windlass.store.sqlite.memory import MemoryStore
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.direct import DirectGateway
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.keeper.guard import TITLE
from windlass.worker.keeper.processes import arguments_of, children_of, look_at

MAX_TEST_S = 180

CONFIG = Config(term_grace_ms=1_000, retry=RetryPolicy(initial_backoff_ms=10, max_backoff_ms=10))
# Heartbeats a machine under load still keeps, and a deadline 2.7 s after the last.
SHORT = msgspec.structs.replace(
    CONFIG, heartbeat_interval_ms=300, term_grace_ms=200, heartbeat_timeout_ms=8_000
)


class ShiftedClock(RealClock):
    """The real clock, which a test may put forward."""

    def __init__(self) -> None:
        super().__init__()
        self.offset_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.offset_ms


class OtherUser(Protocol):
    """A user of this machine: how programs are started as that one, and what they see."""

    @property
    def env(self) -> Mapping[str, str]: ...

    def command(self, argv: Sequence[str]) -> list[str]: ...


class Rig:
    """`engine` on a memory store, `files` beside it, and agents."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.folder = folder
        self.clock = ShiftedClock()
        self.store = MemoryStore(self.clock, "s1")
        self.engine = Engine(self.store, config, RealChance())
        self.files = MemoryFiles()
        self.gateway = DirectGateway(self.engine, self.files)
        self.bridge = Bridge(self.gateway, folder / "socket")
        self.health = HealthLoop(self.engine)

    # Jobs

    async def submit(self, *argv: str, **more: Any) -> int:
        """Submit a shell job; keywords are fields of the job, the rest its arguments."""
        known = JobSpec.__struct_fields__
        fields = {k: more.pop(k) for k in list(more) if k.removesuffix("_ms") in known}
        args = fields.pop("args", {"argv": list(argv), **more})
        task = fields.pop("task", "shell")
        submitted = await self.engine.submit([spec_of(task=task, args=args, **fields)])
        return submitted.ids[0]

    async def ended(self, job: int) -> JobRecord:
        """The job, once it has ended."""
        while not await self.engine.jobs.wait_ended(job, MAX_TEST_S * 1000):
            pass  # `play` does not wait for ever
        return await self.record(job)

    async def record(self, job: int) -> JobRecord:
        snapshot = await self.store.snapshot()
        return next(record for record in snapshot.jobs if record.facts.id == job)

    async def store_says(self, job: int, holds: Callable[[JobRecord], bool]) -> None:
        """Wait until what the store holds of a job is so."""
        while not holds(await self.record(job)):
            await self.clock.sleep_ms(10)

    async def attempts(self, job: int) -> list[Attempt]:
        """The closed attempts before the newest."""
        found = await self.store.read(lambda tx: tx.jobs.attempts([job]))
        return found.get(job, [])

    async def enrol(self, name: str, **more: Any) -> Enrolled:
        return await self.engine.workers.enrol(Enrolment(name=name, **more))

    # Agents

    @asynccontextmanager
    async def agent(
        self,
        name: str = "w",
        gateway: Gateway | None = None,
        executors: Mapping[str, Executor] | None = None,
        **options: Any,
    ) -> AsyncIterator[Agent]:
        """An agent in this process, enrolled; it is stopped in the end."""
        found = WorkerOptions(name=name, state=self.folder / name, **options)
        runs = load_executors(["shell"]) if executors is None else executors
        agent = Agent(gateway or self.gateway, found, runs, self.clock, RealChance())
        task = asyncio.get_running_loop().create_task(agent.run())
        enrolled = asyncio.get_running_loop().create_task(agent.enrolled.wait())
        try:
            await asyncio.wait((task, enrolled), return_when=asyncio.FIRST_COMPLETED)
            enrolled.cancel()
            if task.done():
                await task
            yield agent
        finally:
            agent.stop()
            await task

    @asynccontextmanager
    async def agent_process(
        self, name: str = "w", slots: int = 1, task: str = "shell", bridge: Bridge | None = None,
        metadata: Mapping[str, object] | None = None, user: "OtherUser | None" = None,
        environ: Mapping[str, str] | None = None,
    ) -> AsyncIterator["AgentProcess"]:  # fmt: skip
        """An agent in a process of its own, of another user if one is given; killed in the end."""
        told = msgspec.json.encode(metadata or {}).decode()
        path = (bridge or self.bridge).path
        command = [sys.executable, "-m", "tests.worker.agent_process", str(path)]
        command += [str(self.folder / name), name, str(slots), task]
        base: Mapping[str, str] = os.environ if user is None else user.env
        process = await asyncio.create_subprocess_exec(
            *(command if user is None else user.command(command)),
            env={**base, "WINDLASS_TOKEN": "secret", "AWS_SECRET_ACCESS_KEY": "secret",
                 "WINDLASS_TOLD": told, **(environ or {})},
        )  # fmt: skip
        agent = AgentProcess(process)
        try:
            yield agent
        finally:
            agent.signal(signal.SIGCONT)
            agent.signal(signal.SIGKILL)
            await process.wait()

    async def lose_silent_workers(self) -> None:
        """Let the leases of workers that say nothing run out."""
        await self.health.run_once(self.clock.now_ms())
        config = self.engine.config
        for _ in range(0, config.heartbeat_timeout_ms + 1_000, health_pause_ms(config)):
            self.clock.offset_ms += health_pause_ms(config)
            await self.health.run_once(self.clock.now_ms())


class AgentProcess:
    """An agent that can be killed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def signal(self, number: int) -> None:
        if self.process.returncode is None:
            self.process.send_signal(number)


class Witness:
    """A process of a job, told from any other that gets the same pid later."""

    def __init__(self, pid: int) -> None:
        seen = look_at(pid)
        assert seen is not None, f"no process {pid}"
        self._seen = seen
        self._fd = os.pidfd_open(pid)

    @property
    def parent(self) -> int:
        return self._seen.parent

    @property
    def alive(self) -> bool:
        seen = look_at(self._seen.pid)
        return seen is not None and seen.started == self._seen.started

    async def gone(self) -> None:
        """Wait until it has ended."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._fd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._fd)
            os.close(self._fd)
        assert not self.alive


async def gone(pid: int) -> None:
    """Wait until there is no such process, if there still is one."""
    if look_at(pid) is not None:
        try:
            witness = Witness(pid)
        except (AssertionError, ProcessLookupError):
            return
        await witness.gone()


def guard_of(agent: int) -> int:
    """The guard of an agent's keeper, among the programs that the agent has started."""
    (guard,) = (pid for pid in children_of(agent) if arguments_of(pid)[0].startswith(TITLE))
    return guard


def state_of(record: JobRecord) -> str:
    state = record.facts.state
    return "open" if state is None else str(STATE_BY_CODE[state])


def play(
    folder: Path,
    scene: Callable[[Rig], Coroutine[Any, Any, None]],
    config: Config = CONFIG,
    most_s: float = MAX_TEST_S,
) -> None:
    """Run a test's coroutine with a started rig, and not for ever."""

    async def main() -> None:
        rig = Rig(folder, config)
        await rig.engine.start()
        await rig.bridge.start()
        try:
            await asyncio.wait_for(scene(rig), most_s)
        finally:
            await rig.bridge.close()
            await rig.engine.close()
            await rig.store.close()

    run(main())
