"""Answers the syncs of workers: at once, or after waiting for a job or a message."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from windlass.domain.config import Config
from windlass.engine.claim.wakeups import Waiter, WaitingSyncs
from windlass.engine.fleet.epochs import LAST_EPOCH
from windlass.engine.sync.fast_path import FastPath, FastResult, answers_of
from windlass.engine.sync.stacks import StackRequests
from windlass.engine.sync.sync import SyncCall, only_claim, sync
from windlass.engine.transaction.arguments import check_id, check_sync
from windlass.engine.transaction.bounds import Bounds
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.group_commit import Committer, Lane
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import SyncReply, SyncRequest

Attempt = tuple[int, int]  # job, number


class Delivered(NamedTuple):
    """What a worker has already been told: attempts to stop, and whether to drain."""

    stops: frozenset[Attempt] = frozenset()
    drain: bool = False


NOTHING = Delivered()


class SyncCommand:
    """Runs syncs in shared transactions; those without an answer yet wait."""

    def __init__(
        self,
        *,
        config: Config,
        catalog: Catalog,
        bounds: Bounds,
        waiting_syncs: WaitingSyncs,
        last_heard: dict[int, int],
        committer: Committer,
        stacks: StackRequests,
    ) -> None:
        self._config = config
        self._catalog = catalog
        self._bounds = bounds
        self._waiting_syncs = waiting_syncs
        self._last_heard = last_heard
        self._committer = committer
        self._stacks = stacks
        self._delivered: dict[int, Delivered] = {}  # by worker
        self._closed = False
        self._lane: Lane[SyncCall, SyncReply] = committer.lane(
            Lane(self._run, key=lambda call: call.worker)
        )

    def use_fast_path(self, path: FastPath, committed: Callable[[FastResult[Any]], None]) -> None:
        """Tries single syncs on the fast path first."""
        self._lane.fast = partial(answers_of, path.sync, committed)
        self._lane.apart = path.apart

    def close(self) -> None:
        """Answers the waiting syncs now, and later ones at once."""
        self._closed = True
        self._waiting_syncs.wake_all()

    def forget(self, worker: int) -> None:
        """Delivers every message again to a worker that has re-enrolled."""
        self._delivered.pop(worker, None)

    async def sync(
        self, worker: int, request: SyncRequest, woken: Callable[[], None] | None
    ) -> SyncReply:
        """Answers a worker's sync; see `Engine.sync`."""
        check_id("worker", worker)
        check_sync(request, self._config.heartbeat_interval_ms, LAST_EPOCH)
        deadline = asyncio.get_running_loop().time() + request.wait_ms / 1000
        # Registered before the claim is tried, so that no job arrives unseen in between.
        waiter = self._open_waiter(worker, request)
        call = SyncCall(worker, request)
        try:
            while True:
                reply = await self._committer.call(self._lane, call)
                if self._is_answer(worker, call, reply) or (waiter is not None and waiter.ended):
                    return self._with_stacks(reply, worker, request)
                call = only_claim(call)
                if waiter is None:
                    waiter = self._open_waiter(worker, request)
                elif not await waiter.sleep(deadline) or waiter.ended:
                    return self._with_stacks(reply, worker, request)
                elif woken is not None and waiter.shape is not None:
                    woken()
        finally:
            if waiter is not None:
                self._waiting_syncs.close(waiter)

    async def _run(self, work: Work, calls: Sequence[SyncCall]) -> Sequence[Any]:
        answers = await sync(work, self._bounds, calls)
        work.effects.leaving.update(call.worker for call in calls)
        for call, answer in zip(calls, answers, strict=True):
            # Neither a zombie's message nor our own second look is a sign of life.
            if not call.again and isinstance(answer, SyncReply) and not answer.stale:
                self._last_heard[call.worker] = work.now
        return answers

    def _is_answer(self, worker: int, call: SyncCall, reply: SyncReply) -> bool:
        """Returns whether the worker needs this reply now; otherwise the sync may wait."""
        request = call.request
        news = self._has_news(worker, reply)
        if request.wait_ms <= 0 or not reply.applied or self._closed:
            return True
        if self._stacks and self._stacks.is_due(worker, request.incarnation):
            return True
        # A worker that reported something waits for the confirmation.
        return bool(news or request.started or request.finished or request.released)

    def _with_stacks(self, reply: SyncReply, worker: int, request: SyncRequest) -> SyncReply:
        return self._stacks.add_to(reply, worker, request.incarnation) if self._stacks else reply

    def _has_news(self, worker: int, reply: SyncReply) -> bool:
        """Returns whether the reply contains news; a stop or a drain is news only once."""
        before = self._delivered.get(worker, NOTHING)
        if not reply.cancel and not reply.drain:
            now = NOTHING
        else:
            now = Delivered(frozenset((s.job, s.attempt) for s in reply.cancel), reply.drain)
        self._delivered[worker] = now
        return bool(
            reply.jobs or reply.lost or now.stops - before.stops or (now.drain and not before.drain)
        )

    def _open_waiter(self, worker: int, request: SyncRequest) -> Waiter | None:
        profile = self._catalog.profile_of(worker)
        if profile is None or request.wait_ms <= 0:
            self._waiting_syncs.end(worker)
            return None
        waiter = Waiter(worker, profile, request.want)
        self._waiting_syncs.open(waiter)
        return waiter
