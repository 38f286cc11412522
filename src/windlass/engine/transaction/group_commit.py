"""Group commit: calls that arrive while a transaction runs share the next one.

One caller gets low latency, a thousand get high throughput. Each kind of call has a lane; a batch
holds each key (such as a worker) at most once, and the rest wait for the next. If the store runs
transactions one after another, all lanes share one transaction; otherwise each lane commits by
itself, a few at a time. There, a few calls that each have a fast path come one by one.

Queues are bounded: a full one answers `Overloaded` at once, and nothing waits in one queue while it
holds another.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from windlass.domain.config import Config
from windlass.domain.values.errors import Overloaded, StoreUnavailable, WindlassError
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.loop_time import SMALL, give_way, give_way_if_long, pass_time
from windlass.store.sql.transaction import WriteTx
from windlass.store.store import Store

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")
Run = Callable[[Work, Sequence[Q]], Awaitable[Sequence[A | WindlassError]]]
Fast = Callable[[Sequence[Q]], Awaitable[Sequence[A] | None]]
Step = Callable[[Work], Awaitable[T]]

RETRY_AFTER_MS = 1_000
LANE_TRANSACTIONS = 4  # concurrent batches of one lane, if the store supports that
FEW = 4  # so many calls come one by one, if each is fast alone
BUSY = "store_busy"  # the code of a refusal because another process is writing
BUSY_PAUSE_S = 0.001
BUSY_LIMIT_S = 20.0  # after this, the callers get the error


class RunStep(Protocol):
    """Runs one step in a transaction of the group commit."""

    async def __call__(self, step: Step[T], rows: int = 0) -> T: ...


class CommitListener(Protocol):
    """Learns how transactions end."""

    def committed(self, work: Work) -> None:
        """Applies the effects of a committed transaction."""

    def failed(self) -> None:
        """Drops what was remembered of a transaction that was rolled back."""


class Waiting(NamedTuple):
    """A call that waits for its transaction."""

    lane: "Lane[Any, Any]"
    request: Any
    answer: "asyncio.Future[Any]"
    rows: int  # estimated number of rows it changes, if large


class Lane(Generic[Q, A]):
    """One kind of call: how to run a batch of them, and which keys must not repeat in it."""

    def __init__(
        self,
        run: Callable[[Work, Sequence[Q]], Awaitable[Sequence[A | WindlassError]]],
        *,
        key: Callable[[Q], Hashable] | None = None,
        size: Callable[[Q], int] | None = None,
        most: int | None = None,
    ) -> None:
        self.run = run
        self.key = key
        self.size = size
        self.most = most  # maximum calls in one batch
        self.fast: Fast[Q, A] | None = None  # answers common batches in one round trip
        self.apart: Callable[[], bool] = lambda: False  # whether a few calls share no batch
        self.pending: deque[Waiting] = deque()
        self.running = 0

    def take(self, most: int, most_bytes: int) -> list[Waiting]:
        """Returns the next batch; calls that clash or do not fit wait for the one after."""
        if len(self.pending) == 1:
            return [self.pending.popleft()]
        few = 1 < len(self.pending) <= FEW
        most = 1 if few and self.apart() else min(most, self.most or most)
        if self.key is None and self.size is None and len(self.pending) <= most:
            batch = list(self.pending)
            self.pending.clear()
            return batch
        batch, later = [], []
        seen: set[Hashable] = set()
        room = most_bytes
        while self.pending and len(batch) < most and room > 0:
            waiting = self.pending.popleft()
            key = self.key(waiting.request) if self.key else None
            if key is not None and key in seen:
                later.append(waiting)
                continue
            seen.add(key)
            room -= self.size(waiting.request) if self.size else 0
            batch.append(waiting)
        self.pending.extendleft(reversed(later))
        return batch


class Committer:
    """Collects calls, runs them in transactions, and returns the answers."""

    def __init__(
        self,
        store: Store,
        config: Config,
        begin: Callable[[WriteTx], Work],
    ) -> None:
        self._store = store
        self._config = config
        self._begin = begin
        self._listener: CommitListener | None = None
        self._lanes: list[Lane[Any, Any]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False

    @property
    def busy(self) -> bool:
        """Returns True if a transaction is running."""
        return self._draining or bool(self._tasks)

    def listen(self, listener: CommitListener) -> None:
        """Sets the listener that learns how transactions end."""
        self._listener = listener

    def lane(self, lane: Lane[Q, A]) -> Lane[Q, A]:
        """Adds a lane; lanes run in the order they were added."""
        self._lanes.append(lane)
        return lane

    async def call(self, lane: Lane[Q, A], request: Q, rows: int = 0) -> A:
        """Runs one call in a transaction and returns its answer."""
        if len(lane.pending) >= self._config.queue_limit:
            raise Overloaded(RETRY_AFTER_MS)
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        lane.pending.append(Waiting(lane, request, answer, rows))
        if not self._store.inline:
            if lane.running < LANE_TRANSACTIONS:
                lane.running += 1
                self._spawn(self._drain_lane(lane))
        elif not self._draining:
            self._draining = True
            try:
                await self._lead()
            except BaseException:
                answer.cancel()  # nobody waits for it
                raise
        return await answer

    async def close(self) -> None:
        """Waits for the transactions that have begun."""
        while self.busy:
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await give_way()

    async def _lead(self) -> None:
        """Commits the first batch in the task of its first caller: most have no other.

        It may be cancelled, or a thread be at work for long: so a task of our own does the rest.
        """
        batch: list[Waiting] = []
        try:
            await give_way()  # to others, who share the transaction
            batch = self._gather()
            if sum(waiting.rows for waiting in batch) <= SMALL:
                await self._commit(batch)
        finally:
            batch = [waiting for waiting in batch if not waiting.answer.done()]
            if batch or any(lane.pending for lane in self._lanes):
                self._spawn(self._drain_all(batch))
            else:
                self._draining = False

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain_all(self, batch: list[Waiting]) -> None:
        try:
            while batch := batch or self._gather():
                await self._commit(batch)
                batch = []
                await give_way_if_long()
        finally:
            self._draining = False

    async def _drain_lane(self, lane: Lane[Any, Any]) -> None:
        try:
            while batch := lane.take(self._config.batch_requests, self._config.batch_bytes):
                await self._commit(batch)
        finally:
            lane.running -= 1

    def _gather(self) -> list[Waiting]:
        batch: list[Waiting] = []
        for lane in self._lanes:
            if lane.pending:
                batch += lane.take(self._config.batch_requests, self._config.batch_bytes)
        return batch

    async def _commit(self, batch: list[Waiting]) -> None:
        try:
            answers = await self._run(batch)
        except StoreUnavailable as error:
            self._roll_back()
            _give_error(batch, error)
        except Exception as error:
            self._roll_back()
            if len(batch) == 1:
                _give_error(batch, error)
            else:
                # One of them had a conflict, so each gets its own transaction and answer.
                for waiting in batch:
                    await self._commit([waiting])
                    await give_way_if_long()
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if waiting.answer.done():
                    continue
                if isinstance(answer, WindlassError):
                    waiting.answer.set_exception(answer)
                else:
                    waiting.answer.set_result(answer)

    async def _run(self, batch: list[Waiting]) -> Sequence[Any]:
        """Runs a batch on the fast path if possible, else in a transaction."""
        fast = batch[0].lane.fast
        if fast is not None:  # only if each lane commits by itself
            answers = await fast([waiting.request for waiting in batch])
            if answers is not None:
                return answers
        return await self._transact(batch)

    async def _transact(self, batch: list[Waiting]) -> list[Any]:
        last: list[Work] = []

        async def run(tx: WriteTx) -> list[Any]:
            work = self._begin(tx)
            last[:] = [work]
            answers: list[Any] = []
            for lane, requests in _by_lane(batch):
                answers += await lane.run(work, requests)
                await work.slots.settle()
            await work.settle()
            return answers

        answers = await self._transact_when_free(run, sum(waiting.rows for waiting in batch))
        if self._listener is not None:
            self._listener.committed(last[0])
        return answers

    def _roll_back(self) -> None:
        if self._listener is not None:
            self._listener.failed()

    async def _transact_when_free(
        self, run: Callable[[WriteTx], Awaitable[list[Any]]], rows: int
    ) -> list[Any]:
        """Runs a transaction, waiting while another process writes."""
        loop = asyncio.get_running_loop()
        patience = loop.time() + BUSY_LIMIT_S
        while True:
            try:
                return await self._store.transact(run, rows)
            except StoreUnavailable as error:
                if error.code != BUSY or loop.time() >= patience:
                    raise
            await pass_time(BUSY_PAUSE_S)


def _by_lane(batch: list[Waiting]) -> list[tuple[Lane[Any, Any], list[Any]]]:
    groups: list[tuple[Lane[Any, Any], list[Any]]] = []
    for waiting in batch:
        if not groups or groups[-1][0] is not waiting.lane:
            groups.append((waiting.lane, []))
        groups[-1][1].append(waiting.request)
    return groups


def _give_error(batch: list[Waiting], error: Exception) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
