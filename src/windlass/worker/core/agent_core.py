"""Runs one incarnation after another: enrols, syncs, winds down, and enrols again if evicted."""

import asyncio
from typing import Any

import structlog

from windlass.domain.values.errors import (
    Conflict,
    Overloaded,
    StoreUnavailable,
    Unreachable,
    WindlassError,
)
from windlass.messages.sync import EnrolReply
from windlass.worker.core.ports import Deadline, Machine, Ports, Rules
from windlass.worker.core.sync_loop import Backoff, IncarnationEnded, SyncLoop

LAST_WORDS_S = 10  # beyond the grace, for the final reports of a worker
LOGS_S = 4  # for the logs of its last jobs
GOODBYE_S = 2
# A worker without a server ends within seconds: service managers and containers kill it after 10.
SHORT_GRACE_S = 3
KILLED_S = 1
STOPPED = "the worker was stopped"
PENDING = "pending_approval"
SERVER_FAULT = 500  # the lowest HTTP status of a temporary error
SETTLED_S = 60  # an incarnation that lived this long was not evicted by a rival of its name
RIVALRY = 3  # up to this many consecutive evictions may be explained by a server's restore
FIRST_PAUSE_MS = 100
MAX_PAUSE_MS = 5_000

log = structlog.get_logger()


class AgentCore:
    """The logic of an agent, whatever runs its processes and carries its messages.

    `slots` is how many jobs run at once; a `careful` agent checks every job before it is started,
    others only after they had to give one back. Without `drain_limit_ms` the server's limit
    applies.
    """

    def __init__(
        self,
        ports: Ports,
        machine: Machine,
        slots: int,
        drain_limit_ms: int | None = None,
        careful: bool = False,
    ) -> None:
        self.worker = 0
        self.incarnation = 0
        self.evictions = 0  # consecutive evictions
        self.enrolled = asyncio.Event()
        self._ports = ports
        self._machine = machine
        self._slots = slots
        self._own_drain_limit_ms = drain_limit_ms
        self._drain_limit_ms = 0
        self._careful = careful
        self._loop: SyncLoop | None = None
        self._deadline: Deadline | None = None
        self._grace_ms = 0
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()

    @property
    def stopping(self) -> bool:
        """Returns whether it was asked to drain or to stop."""
        return self._stop.is_set()

    def drain(self) -> None:
        """Takes no more jobs, lets running ones finish, and stops."""
        self._stop.set()

    def stop(self) -> None:
        """Stops all running jobs, hands them back, and stops."""
        self._stop.set()
        self._stop_now.set()

    def tell_metadata(self, metadata: dict[str, Any]) -> None:
        """Tells the server what the machine offers now, if an incarnation is active."""
        if self._loop is not None:
            self._loop.metadata = metadata
            self._loop.wake()

    def put_off_deadline(self) -> None:
        """Tells the machine until when jobs may run."""
        if self._deadline is not None:
            self._machine.set_deadline(self._deadline.soft, self._deadline.hard)

    async def run(self) -> None:
        """Works until drained or stopped."""
        stopping = asyncio.get_running_loop().create_task(self._stop.wait())
        try:
            while not self._stop.is_set():
                await self._live(stopping)
        finally:
            stopping.cancel()

    async def _live(self, stopping: "asyncio.Task[bool]") -> None:
        """Runs one incarnation."""
        enrolling = asyncio.get_running_loop().create_task(self._enrol())
        try:
            await asyncio.wait((enrolling, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            enrolling.cancel()
        if not enrolling.done():
            return
        began = self._ports.uptime()
        loop = self._begin(*enrolling.result())
        syncing = asyncio.get_running_loop().create_task(loop.run())
        self.enrolled.set()
        try:
            await asyncio.wait((syncing, stopping), return_when=asyncio.FIRST_COMPLETED)
            if syncing.done():
                await syncing
            else:
                await self._wind_down(loop, syncing)
        except IncarnationEnded as ended:
            log.warning("incarnation_ended", reason=str(ended))
            # An incarnation that could not sync for a whole lease, as after a pause, has no rival.
            lost = self._deadline is not None and self._deadline.has_passed()
            self._end_incarnation(loop)
            if not lost:
                await self._yield_to_rivals(self._ports.uptime() - began, stopping)
        finally:
            self.enrolled.clear()
            syncing.cancel()

    # Enrolment

    async def _enrol(self) -> tuple[EnrolReply, float]:
        ports = self._ports
        backoff = Backoff(ports.chance, FIRST_PAUSE_MS, MAX_PAUSE_MS)
        while True:
            request = self._machine.introduce()
            sent_at = ports.uptime()
            try:
                return await ports.gateway.enrol(request), sent_at
            except Conflict as error:
                if error.retry_after_ms is None:
                    raise
                log.warning("enrolment_refused", error=error.message)
                wait = backoff.spread(min(error.retry_after_ms, MAX_PAUSE_MS))
            except (WindlassError, TimeoutError, OSError) as error:
                if isinstance(error, WindlassError) and not _is_temporary(error):
                    raise
                log.warning("enrolment_unanswered", error=str(error))
                wait = backoff.next_ms()
            await ports.clock.sleep_ms(wait)

    def _begin(self, reply: EnrolReply, sent_at: float) -> SyncLoop:
        self.worker, self.incarnation = reply.worker, reply.incarnation
        self._grace_ms = reply.term_grace_ms
        own = self._own_drain_limit_ms
        self._drain_limit_ms = reply.drain_limit_ms if own is None else own
        rules = Rules(reply.heartbeat_interval_ms, reply.lease_ms, reply.term_grace_ms)
        deadline = self._deadline = Deadline(rules, self._ports.uptime)
        deadline.extend(sent_at)
        self.put_off_deadline()
        starter = self._machine.begin(reply, deadline)
        loop = SyncLoop(
            self._ports, starter, self._slots, reply.worker, reply.incarnation, rules, deadline,
            self._machine.epoch, self.put_off_deadline,
        )  # fmt: skip
        loop.slots.careful = self._careful
        self._loop = loop
        log.info("enrolled", worker=reply.worker, incarnation=reply.incarnation)
        loop.pending = reply.status == PENDING
        if loop.pending:
            log.warning(
                "pending_approval",
                message="this worker gets no jobs before an operator approves it: "
                f"windlass workers approve {reply.worker}",
            )
        return loop

    # Endings

    def _end_incarnation(self, loop: SyncLoop) -> None:
        """Kills what runs, and reports nothing: the server has already reassigned it."""
        loop.slots.stop_all("lost", None)
        self._loop = self._deadline = None
        self._machine.end_incarnation()

    async def _yield_to_rivals(self, lived_s: float, stopping: "asyncio.Task[bool]") -> None:
        """Waits before it enrols again, if another worker has evicted it again and again.

        Otherwise two workers of one name would evict each other many times a second.
        """
        self.evictions = 0 if lived_s >= SETTLED_S else self.evictions + 1
        if self.evictions < RIVALRY:
            return
        pause = min(2 ** min(self.evictions, 10), SETTLED_S)
        log.warning(
            "name_contested",
            message="another worker seems to use the same name: start each with its own --name",
            pause_seconds=pause,
        )
        wait = pause * (0.5 + self._ports.chance.fraction() / 2)
        await asyncio.wait((stopping,), timeout=wait)

    async def _wind_down(self, loop: SyncLoop, syncing: "asyncio.Task[None]") -> None:
        """Lets jobs end, stops those that do not, and reports them."""
        self._machine.note_stop(())  # in case this process is killed before the end
        loop.slots.give_back_waiting()
        loop.end()
        limit = self._drain_limit_ms / 1000
        await _first_of(syncing, limit, self._stop_now, loop.cut_off)
        if not syncing.done() and not loop.cut_off.is_set():
            loop.slots.stop_all("released", STOPPED)
            await _first_of(syncing, self._grace_ms / 1000 + LAST_WORDS_S, loop.cut_off)
        if not syncing.done():
            await self._stop_unheard(loop)
            return
        await syncing
        await loop.slots.flushed(LOGS_S)
        await self._say_goodbye()

    async def _stop_unheard(self, loop: SyncLoop) -> None:
        """Stops all jobs without a server: the next process of this worker reports them."""
        log.warning("stopping_unheard", message="no server answers: jobs are handed back later")
        loop.slots.stop_all("released", STOPPED)
        if not await loop.slots.all_ended(SHORT_GRACE_S):
            loop.slots.stop_all("lost", None)
            await loop.slots.all_ended(KILLED_S)
        self._machine.note_stop(loop.slots.finished())

    async def _say_goodbye(self) -> None:
        """Tells the server at once that this worker is gone; otherwise its lease has to run out."""
        leaving = asyncio.get_running_loop().create_task(
            self._ports.gateway.leave(self.worker, self.incarnation)
        )
        await asyncio.wait((leaving,), timeout=GOODBYE_S)
        if not leaving.done():
            leaving.cancel()
        elif error := leaving.exception():
            log.info("goodbye_unheard", error=str(error))


def _is_temporary(error: WindlassError) -> bool:
    """Returns whether the server, its store or a proxy is at fault, not the request."""
    if isinstance(error, Unreachable | StoreUnavailable | Overloaded):
        return True
    return int(getattr(error, "status", 0)) >= SERVER_FAULT


async def _first_of(task: "asyncio.Task[None]", timeout_s: float, *events: asyncio.Event) -> None:
    """Waits until the task is done or one of the events is set, for a limited time."""
    loop = asyncio.get_running_loop()
    waiting = [loop.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait((task, *waiting), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
