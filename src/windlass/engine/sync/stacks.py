"""Stacks of running functions: which are requested, until the worker has answered.

A request is known to every engine on the store, since the worker may sync with any of them. It goes
out with the next reply to that worker, and again if no answer came for a while.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec.structs import replace

from windlass.engine.claim.wakeups import WaitingSyncs
from windlass.messages.files import StackReport
from windlass.messages.sync import StackWanted, SyncReply
from windlass.ports.clock import Chance

WAIT_S: Final = 6.0  # time that a worker has to answer
AGAIN_S: Final = 0.5  # a reply may not have reached the worker
MAX_REQUESTS: Final = 1_000  # maximum requests at once


class StackRequest(NamedTuple):
    """One attempt whose stack is requested, as engines announce it to each other."""

    worker: int
    incarnation: int
    job: int
    attempt: int
    number: int


@dataclass(slots=True, eq=False)
class _Open:
    """A request without an answer yet; `said_at` is when a reply last contained it."""

    request: StackRequest
    said_at: float = 0.0
    answer: "asyncio.Future[StackReport] | None" = None


class StackRequests:
    """The requests of this engine's own callers and those of other engines."""

    def __init__(self, waiting_syncs: WaitingSyncs, chance: Chance) -> None:
        self._waiting_syncs = waiting_syncs
        self._chance = chance
        self._open: dict[int, _Open] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def ask(
        self, worker: int, incarnation: int, job: int, attempt: int
    ) -> tuple[StackRequest, "asyncio.Future[StackReport]"]:
        """Asks a worker for a stack, once for all concurrent callers here."""
        asked = (worker, incarnation, job, attempt)
        for known in self._open.values():
            if known.request[:4] == asked and known.answer is not None:
                return known.request, known.answer
        number = int(self._chance.fraction() * 2**53)
        made = self._add(StackRequest(*asked, number))
        made.answer = asyncio.get_running_loop().create_future()
        return made.request, made.answer

    def hear(self, requests: Iterable[tuple[int, int, int, int, int]]) -> None:
        """Adopts the requests of another engine."""
        for request in requests:
            self._add(StackRequest(*request))

    def _add(self, request: StackRequest) -> _Open:
        made = self._open[request.number] = _Open(request)
        while len(self._open) > MAX_REQUESTS:
            del self._open[next(iter(self._open))]
        asyncio.get_running_loop().call_later(WAIT_S, self._open.pop, request.number, None)
        self._waiting_syncs.wake([request.worker])
        return made

    def answered(self, holder: tuple[int, int, int, int], report: StackReport) -> bool:
        """Passes on a worker's answer; False if nobody here waits for it, though someone else may.

        Answers that nobody requested from this worker are dropped.
        """
        known = self._open.get(report.request)
        if known is None or known.request[:4] != holder:
            return True
        del self._open[report.request]
        if known.answer is None:
            return False
        if not known.answer.done():
            known.answer.set_result(report)
        return True

    def is_due(self, worker: int, incarnation: int) -> bool:
        """Returns whether a waiting sync of this worker has to be answered for a request."""
        now = asyncio.get_running_loop().time()
        return any(
            known.request[:2] == (worker, incarnation) and now - known.said_at >= AGAIN_S
            for known in self._open.values()
        )

    def add_to(self, reply: SyncReply, worker: int, incarnation: int) -> SyncReply:
        """Returns the reply with the requests for this worker."""
        now = asyncio.get_running_loop().time()
        mine = [o for o in self._open.values() if o.request[:2] == (worker, incarnation)]
        for one in mine:
            one.said_at = now
        wanted = (StackWanted(o.request.job, o.request.attempt, o.request.number) for o in mine)
        return replace(reply, stacks=tuple(wanted))
