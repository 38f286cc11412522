"""The agent: takes its directory, starts its keeper, enrols, and syncs until it is stopped."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import structlog

from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    Overloaded,
    StoreUnavailable,
    Unreachable,
)
from windlass.ports.clock import Chance, Clock
from windlass.ports.executor import Executor, Limits
from windlass.ports.gateway import Gateway
from windlass.wire.workers import EnrolReply, EnrolRequest
from windlass.worker.attempt import Surroundings
from windlass.worker.cgroups import find_cgroup
from windlass.worker.deadline import Deadline, Rules
from windlass.worker.environment import job_environment
from windlass.worker.job_socket import JobSocket
from windlass.worker.keeper_client import MARKER, KeeperClient, KeptProcess
from windlass.worker.leftovers import kill_leftovers
from windlass.worker.metadata import gather, quick_facts
from windlass.worker.options import WorkerOptions
from windlass.worker.processes import boottime
from windlass.worker.scratch import Scratch
from windlass.worker.slots import Slots
from windlass.worker.state import Memory, StateDirectory
from windlass.worker.syncing import IncarnationEnded, SyncLoop

KILL_PATIENCE_MS = 10_000
LAST_WORDS_S = 10  # beyond the grace, for the reports of a worker that ends
GOODBYE_S = 2
SETTLED_S = 60  # an incarnation that lived so long was not ended by a rival of its name
RIVALRY = 3  # evictions in a row, until then a server's restore may explain them
FIRST_PAUSE_MS = 100
LONGEST_PAUSE_MS = 5_000

log = structlog.get_logger()


@runtime_checkable
class KeepsProcesses(Protocol):
    """An executor with processes of its own that serve many jobs."""

    def attach(self, spawn: Callable[..., Awaitable[KeptProcess]], slots: int) -> None: ...


@runtime_checkable
class WakesEarly(Protocol):
    """An executor that does better if it hears that a job may come at once."""

    def expect(self) -> None: ...


class Agent:
    """One worker's process."""

    def __init__(
        self,
        gateway: Gateway,
        options: WorkerOptions,
        executors: Mapping[str, Executor],
        clock: Clock,
        chance: Chance,
    ) -> None:
        self.worker = 0
        self.incarnation = 0
        self._gateway = gateway
        self._options = options
        self._executors = executors
        self._clock = clock
        self._chance = chance
        self._state = StateDirectory(options.state)
        base = job_environment(os.environ, {MARKER: self._state.marker}, options.passes)
        cgroup = _find_cgroup(options.cgroup)
        self._keeper = KeeperClient(self._state.record, base, self._keeper_died, cgroup)
        self._scratch = Scratch(self._state.scratch, self._keeper)
        self._socket = JobSocket(self._state.path)
        self._loop: SyncLoop | None = None
        self._deadline: Deadline | None = None
        self._recovering: asyncio.Task[None] | None = None
        self._syncing: asyncio.Task[None] | None = None
        self._metadata: dict[str, Any] = {}
        self._attached = False
        self._evictions = 0  # one soon after the other
        self._proven = False  # nothing of an older incarnation is left
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()
        self.enrolled = asyncio.Event()

    @property
    def keeper_pid(self) -> int:
        """The process that watches over the jobs."""
        return self._keeper.pid

    # Being stopped

    def drain(self) -> None:
        """Take no more jobs, let those that run end, and stop."""
        self._stop.set()

    def stop(self) -> None:
        """Stop everything that runs, hand it back, and stop."""
        self._stop.set()
        self._stop_now.set()

    def obey_signals(self) -> None:
        """SIGTERM drains; SIGINT drains, and a second one stops at once."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.drain)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)

    def _interrupt(self) -> None:
        if self._stop.is_set():
            self.stop()
        else:
            log.info("draining", message="waiting for running jobs; once more stops them")
            self.drain()

    # Life

    async def run(self) -> None:
        """Work until drained or stopped."""
        gathering: asyncio.Task[None] | None = None
        stopping = asyncio.get_running_loop().create_task(self._stop.wait())
        try:
            self._proven = await self._kill_leftovers()
            self._keeper.start()
            self._scratch.prepare()
            self._socket.open()
            self._metadata = self._describe(quick_facts())
            gathering = asyncio.get_running_loop().create_task(self._gather())
            while not self._stop.is_set():
                await self._live(stopping)
        finally:
            stopping.cancel()
            if gathering is not None:
                gathering.cancel()
                await asyncio.wait((gathering,))
            await self._close_executors()
            self._keeper.close()
            await self._socket.close()
            self._state.close()

    async def _close_executors(self) -> None:
        """While the keeper can still answer them; whatever they leave, it ends."""
        loop = asyncio.get_running_loop()
        closing = [loop.create_task(e.close()) for e in self._executors.values()]
        if closing:
            _, late = await asyncio.wait(closing, timeout=LAST_WORDS_S)
            for task in late:
                task.cancel()

    async def _live(self, stopping: "asyncio.Task[bool]") -> None:
        """One incarnation."""
        enrolling = asyncio.get_running_loop().create_task(self._enrol())
        await asyncio.wait((enrolling, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not enrolling.done():
            enrolling.cancel()
            return
        began = boottime()
        loop = self._begin(*enrolling.result())
        self._syncing = asyncio.get_running_loop().create_task(loop.run())
        self.enrolled.set()
        await asyncio.wait((self._syncing, stopping), return_when=asyncio.FIRST_COMPLETED)
        try:
            if self._syncing.done():
                await self._syncing
            else:
                await self._wind_down(loop, self._syncing)
        except IncarnationEnded as ended:
            log.warning("incarnation_ended", reason=str(ended))
            self._end_incarnation()
            await self._yield_to_rivals(boottime() - began, stopping)
        finally:
            self.enrolled.clear()
            self._syncing.cancel()

    async def _yield_to_rivals(self, lived_s: float, stopping: "asyncio.Task[bool]") -> None:
        """Enrol again only after a while, if somebody else has ended us again and again.

        Two workers of one name would otherwise end each other many times a second.
        """
        self._evictions = 0 if lived_s >= SETTLED_S else self._evictions + 1
        if self._evictions < RIVALRY:
            return
        pause = min(2 ** min(self._evictions, 10), SETTLED_S)
        log.warning(
            "name_contested",
            message=f"another worker seems to be named {self._options.name}: start each with a "
            "--name of its own",
            pause_seconds=pause,
        )
        wait = pause * (0.5 + self._chance.fraction() / 2)
        await asyncio.wait((stopping,), timeout=wait)

    async def _wind_down(self, loop: SyncLoop, syncing: "asyncio.Task[None]") -> None:
        """Let jobs end, then stop those that did not, and say so."""
        loop.slots.give_back_waiting()
        loop.end()
        now = asyncio.get_running_loop().create_task(self._stop_now.wait())
        limit = self._options.drain_limit_ms / 1000
        await asyncio.wait((syncing, now), timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        now.cancel()
        if not syncing.done():
            loop.slots.stop_all("released", "the worker was stopped")
            patience = self._keeper.grace_ms / 1000 + LAST_WORDS_S
            await asyncio.wait((syncing,), timeout=patience)
        if syncing.done():
            await syncing
        await loop.slots.flushed(LAST_WORDS_S)
        await self._say_goodbye()

    async def _say_goodbye(self) -> None:
        """Spare others the wait until they notice; if nobody hears it, they will."""
        leaving = asyncio.get_running_loop().create_task(
            self._gateway.leave(self.worker, self.incarnation)
        )
        await asyncio.wait((leaving,), timeout=GOODBYE_S)
        if not leaving.done():
            leaving.cancel()
        elif error := leaving.exception():
            log.info("goodbye_unheard", error=str(error))

    # Incarnations

    async def _enrol(self) -> tuple[EnrolReply, float]:
        pause = FIRST_PAUSE_MS
        while True:
            memory = self._state.memory
            request = EnrolRequest(
                name=self._options.name, slots=self._options.slots, metadata=self._metadata,
                takeover=self._proven, replaces=memory.incarnation, code=self._options.code,
            )  # fmt: skip
            sent_at = boottime()
            try:
                return await self._gateway.enrol(request), sent_at
            except (Unreachable, StoreUnavailable, Overloaded, TimeoutError, OSError) as error:
                log.warning("enrolment_unanswered", error=str(error))
                wait = pause
            except Conflict as error:
                if error.retry_after_ms is None:
                    raise
                log.warning("enrolment_refused", error=error.message)
                wait = min(error.retry_after_ms, LONGEST_PAUSE_MS)
            pause = min(2 * pause, LONGEST_PAUSE_MS)
            await self._clock.sleep_ms(int(wait * (0.5 + self._chance.fraction() / 2)))

    def _begin(self, reply: EnrolReply, sent_at: float) -> SyncLoop:
        self.worker, self.incarnation = reply.worker, reply.incarnation
        known = self._state.memory
        epoch = max(known.epoch, reply.epoch)
        token = (reply.token or known.token) if self._options.keeps_token else None
        self._state.remember(Memory(reply.incarnation, epoch, token))
        rules = Rules(reply.heartbeat_interval_ms, reply.lease_ms, reply.term_grace_ms)
        deadline = Deadline(rules)
        self._keeper.grace_ms = reply.term_grace_ms

        loop = SyncLoop(
            self._gateway, self._clock, self._chance, reply.worker, reply.incarnation, rules,
            deadline, epoch, self._extended,
        )  # fmt: skip
        around = Surroundings(
            self._gateway, self._keeper, self._scratch, self._clock, reply.worker,
            reply.incarnation, reply.log_limit, reply.term_grace_ms, deadline.has_passed,
            self._options.secrets, self._socket,
        )  # fmt: skip
        loop.slots = Slots(self._options.slots, self._executors, around, loop.wake)
        deadline.extend(sent_at)
        self._deadline = deadline
        self._extended()
        self._attach()
        self._loop = loop
        log.info("enrolled", worker=reply.worker, incarnation=reply.incarnation)
        return loop

    def _attach(self) -> None:
        """Once there is a deadline, executors may start processes of their own."""
        if self._attached:
            return
        self._attached = True
        for executor in self._executors.values():
            if isinstance(executor, KeepsProcesses):
                executor.attach(self._spawn, self._options.slots)
            if isinstance(executor, WakesEarly) and hasattr(self._gateway, "woken"):
                self._gateway.woken = executor.expect

    async def _spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        limits: Limits | None = None,
    ) -> KeptProcess:
        """A process for no job in particular; it sees `env` beside what all jobs see."""
        process = self._keeper.spawn(argv, dict(env), cwd=str(cwd), limits=limits)
        await process.changed()
        return process

    def _extended(self) -> None:
        if self._deadline is not None:
            self._keeper.set_deadline(self._deadline.soft, self._deadline.hard)

    def _end_incarnation(self) -> None:
        """Kill what runs; the keeper that kills it all is replaced by a fresh one."""
        assert self._loop is not None
        self._loop.slots.stop_all("lost", None)
        self._loop = self._deadline = None
        self._keeper.close()
        self._keeper.start()
        self._proven = True

    # Parts

    async def _kill_leftovers(self) -> bool:
        return await kill_leftovers(
            self._state.record, self._state.marker, self._clock, KILL_PATIENCE_MS
        )

    def _keeper_died(self) -> None:
        self._recovering = asyncio.get_running_loop().create_task(self._recover())

    async def _recover(self) -> None:
        """Without a keeper nothing may run: kill its jobs, hand them back, start another."""
        log.error("keeper_died")
        if not await self._kill_leftovers():
            log.error("processes_survive", message="jobs of the dead keeper cannot be killed")
            self.stop()
            return
        self._keeper.fail_all()
        self._keeper.start()
        self._extended()

    async def _gather(self) -> None:
        """Look at the machine and its tools, and tell the server."""
        self._metadata = self._describe(await gather())
        if self._loop is not None:
            self._loop.metadata = self._metadata
            self._loop.wake()

    def _describe(self, found: dict[str, Any]) -> dict[str, Any]:
        tasks = sorted(self._executors)
        told = {**self._options.secrets.metadata, **self._options.metadata}
        return {**self._metadata, "tasks_allowlist": tasks, **found, **told}


def _find_cgroup(setting: str) -> str | None:
    try:
        return find_cgroup(setting)
    except ValueError as error:
        expected = "auto, off, or a folder of cgroup v2 that this user may write to"
        raise InvalidInput("cgroup", expected, setting) from error
