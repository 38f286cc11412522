"""Runs the sync loop: one current message, sent again until it is answered.

A newer sync ends the wait of an older one, whose reply is then ignored: its contents are sent
again, because `received` did not rise. Only replies to the newest extend the deadline, counted from
the moment that sync was sent. `Backoff` spreads the pauses between tries.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from windlass.domain.values.errors import Conflict, NotFound, Overloaded, Unreachable, WindlassError
from windlass.messages.sync import Finished, Released, SyncReply, SyncRequest
from windlass.ports.clock import Chance
from windlass.worker.core.ports import UNANSWERED, Deadline, Ports, Rules, Starter
from windlass.worker.core.slots import Slots


class Backoff:
    """Doubles the pause from `first_ms` up to `longest_ms`."""

    def __init__(self, chance: Chance, first_ms: int, longest_ms: int) -> None:
        self.failures = 0
        self._chance = chance
        self._first_ms = first_ms
        self._longest_ms = longest_ms

    def reset(self) -> None:
        """Begins with the shortest pause again."""
        self.failures = 0

    def next_ms(self) -> int:
        """Returns the pause before the next try."""
        pause = min(self._first_ms * 2 ** min(self.failures, 10), self._longest_ms)
        self.failures += 1
        return self.spread(pause)

    def spread(self, pause_ms: float) -> int:
        """Returns a random half to whole of a pause, so that agents do not return all at once."""
        return int(pause_ms * (0.5 + self._chance.fraction() / 2))


FIRST_PAUSE_MS = 100
MAX_PAUSE_MS = 5_000
HURRIED_PAUSE_MS = 200
# While the loop is ending, the server answers often, so that we soon notice when it is gone.
HURRIED_WAIT_MS = 1_000
HURRIED_PATIENCE_S = 2.0
CUT_OFF_S = 2.5  # an ending loop without an answer for this long will not get one

log = structlog.get_logger()


class IncarnationEnded(Exception):
    """The server has ended this incarnation: stop its jobs and enrol again."""


class SyncLoop:
    """Syncs for one incarnation until it is told to end.

    `slots` is how many jobs run at once; `extended` is called when the deadline has moved.
    """

    def __init__(
        self, ports: Ports, starter: Starter, slots: int, worker: int, incarnation: int,
        rules: Rules, deadline: Deadline, epoch: int, extended: Callable[[], None],
    ) -> None:  # fmt: skip
        self.slots = Slots(slots, starter, self.wake)
        self.told_to_drain = False  # the server asks this worker to drain
        self.pending = False  # the worker waits for approval
        self.cut_off = asyncio.Event()  # set if no server answers while the loop is ending
        self.epoch = epoch
        self.metadata: dict[str, Any] | None = None  # to be sent with the next sync
        self._gateway = ports.gateway
        self._chance = ports.chance
        self._uptime = ports.uptime
        self._worker = worker
        self._incarnation = incarnation
        self._rules = rules
        self._deadline = deadline
        self._extended = extended
        self._seq = 0
        self._audited_at = ports.uptime()
        self._backoff = Backoff(ports.chance, FIRST_PAUSE_MS, MAX_PAUSE_MS)
        # An in-process gateway can be told to answer: then syncs follow one another, and none is
        # dropped for a newer one.
        self._interrupt: Callable[[int], None] | None = getattr(ports.gateway, "interrupt", None)
        self._news: asyncio.Event = asyncio.Event()
        self._rested: asyncio.Event = asyncio.Event()
        self._older: dict[asyncio.Task[SyncReply], None] = {}
        self._ending = False
        self._answered_at = ports.uptime()
        self._fence: asyncio.TimerHandle | None = None
        patience = min(10_000, max(1_000, rules.heartbeat_ms // 3))
        self._patience_s = patience / 1000

    def wake(self) -> None:
        """Sends the next sync now: there is something to report."""
        if not self._news.is_set():
            self._news.set()
            if self._interrupt is not None:
                self._interrupt(self._worker)

    def end(self) -> None:
        """Ends the loop once nothing is left to report."""
        self._ending = True
        self._answered_at = self._uptime()
        self.wake()
        self._rested.set()

    async def run(self) -> None:
        """Syncs until the end; raises `IncarnationEnded`."""
        try:
            while not (self._ending and not self.slots.busy):
                await self._turn()
        finally:
            self._forget_older()
            if self._fence is not None:
                self._fence.cancel()

    async def _turn(self) -> None:
        self._news.clear()
        started = self.slots.ask_to_start()
        reports = self.slots.reports()
        request = self._request(started, reports)
        sent_at = self._uptime()
        try:
            reply = await self._call(request)
        except (WindlassError, OSError, TimeoutError) as error:
            await self._pause(error)
            return
        if reply is None:
            return
        self._backoff.reset()
        self._answered_at = self._uptime()
        self._deadline.unanswered = UNANSWERED
        if reply.stale:
            return
        if reply.epoch < self.epoch:
            await self._refuse_epoch(reply.epoch)
            return
        self._obey(reply, sent_at)
        self.slots.settle(started, reports)
        if request.metadata is not None and request.metadata is self.metadata:
            self.metadata = None
        for assignment in reply.jobs:
            self.slots.take(assignment)
        for stop in reply.cancel:
            self.slots.stop(stop)
        for wanted in reply.stacks:
            self.slots.show_stack(wanted)

    def _request(self, started: Mapping[Any, Any], reports: Mapping[Any, Any]) -> SyncRequest:
        self._seq += 1
        slots = self.slots
        now = self._uptime()
        audit = now - self._audited_at >= self._rules.heartbeat_ms / 1000
        if audit:
            self._audited_at = now
        # The server learns what changed only with the next sync, so we do not wait with it.
        has_news = bool(started or reports or self.metadata or self._seq == 1)
        wait = int(self._rules.heartbeat_ms * (0.6 + 0.2 * self._chance.fraction()))
        if self._ending:
            wait = min(wait, HURRIED_WAIT_MS)
        return SyncRequest(
            incarnation=self._incarnation,
            seq=self._seq,
            received=slots.received,
            started=slots.started(started),
            finished=tuple(r for r in reports.values() if isinstance(r, Finished)),
            released=tuple(r for r in reports.values() if isinstance(r, Released)),
            # A server that drains this worker assigns nothing, and may change its mind.
            want=0 if self._ending else slots.free,
            wait_ms=0 if has_news or (self._ending and not slots.busy) else wait,
            prefetch=slots.careful,
            held=slots.held() if audit else None,
            metadata=self.metadata,
            epoch=self.epoch,
            stopping=self._ending,
        )

    async def _call(self, request: SyncRequest) -> SyncReply | None:
        """Returns the reply, or None if there was something newer to send before it came."""
        patience = self._patience_s
        if self._ending:
            patience = min(patience, HURRIED_PATIENCE_S)
        limit = request.wait_ms / 1000 + patience
        if self._interrupt is not None:
            async with asyncio.timeout(limit):
                return await self._gateway.sync(self._worker, request)
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._gateway.sync(self._worker, request))
        task.add_done_callback(_read_exception)
        if not request.wait_ms:
            return await asyncio.wait_for(task, limit)
        news = loop.create_task(self._news.wait())
        try:
            await asyncio.wait((task, news), timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
        if task.done():
            self._forget_older()
            return task.result()
        if not self._news.is_set():
            task.cancel()
            raise TimeoutError("no answer")
        # The server answers the older sync when the newer arrives; nobody reads it.
        self._older[task] = None
        task.add_done_callback(lambda older: self._older.pop(older, None))
        return None

    def _forget_older(self) -> None:
        for task in list(self._older):
            task.cancel()

    def _obey(self, reply: SyncReply, sent_at: float) -> None:
        if self._deadline.extend(sent_at):
            self._extended()
        if self._fence is None:
            self._look_at_deadline()
        for refusal in reply.lost:
            self.slots.lose(refusal)
        if reply.drain != self.told_to_drain and not self._ending:
            log.info("drain", asked=reply.drain)
            self.told_to_drain = reply.drain
        if self.pending and not reply.pending:
            log.info("approved", message="an operator has approved this worker")
        self.pending = reply.pending
        if reply.drain:
            self.slots.give_back_waiting()
        self.epoch = max(self.epoch, reply.epoch)

    def _look_at_deadline(self) -> None:
        """Ends what runs inside the agent; the keeper ends processes on its own."""
        left = self._deadline.left_s
        if left <= 0:
            self._fence = None
            self.slots.stop_all("released", self._deadline.unanswered)
        else:
            loop = asyncio.get_running_loop()
            self._fence = loop.call_later(left, self._look_at_deadline)

    async def _pause(self, error: Exception) -> None:
        """Waits before the next try, a little longer each time."""
        # A removed worker has lost its token as well.
        gone = getattr(error, "code", "") in ("incarnation_ended", "unauthorized")
        if isinstance(error, NotFound) or gone:
            raise IncarnationEnded(str(error)) from error
        answered = isinstance(error, WindlassError) and not isinstance(error, Unreachable)
        # The server is not silent, so this says why it did not answer the sync.
        why = f"the server could not answer: {error}" if answered else UNANSWERED
        self._deadline.unanswered = why
        if not self._backoff.failures:
            trouble = "server_refused" if answered else "server_unreachable"
            log.warning(trouble, error=str(error) or type(error).__name__)
        unheard = self._uptime() - self._answered_at
        if self._ending and not answered and unheard >= CUT_OFF_S:
            self.cut_off.set()
        wait = self._backoff.next_ms()
        if isinstance(error, Overloaded | Conflict) and error.retry_after_ms:
            wait = max(wait, error.retry_after_ms)
        await self._rest(wait)

    async def _rest(self, duration_ms: int) -> None:
        """Waits; only briefly once the loop is ending."""
        if self._ending:
            duration_ms = min(duration_ms, HURRIED_PAUSE_MS)
        self._rested.clear()
        timer = asyncio.get_running_loop().call_later(duration_ms / 1000, self._rested.set)
        await self._rested.wait()
        timer.cancel()

    async def _refuse_epoch(self, epoch: int) -> None:
        log.error(
            "old_epoch",
            message=f"the server is at epoch {epoch}, this worker has seen {self.epoch}: the "
            "server was restored from an old backup; raise its epoch",
        )
        await self._rest(MAX_PAUSE_MS)


def _read_exception(task: "asyncio.Task[SyncReply]") -> None:
    """Reads an error that may come when nobody waits for the answer any more."""
    if not task.cancelled():
        task.exception()
