"""The database, the transactions that are stepped, and a hand that works beside them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import asyncpg

from tests.interleaver.gate import Gate, open_gated
from tests.interleaver.scheduler import Scheduler, StuckError
from tests.interleaver.schedules import Schedule
from tests.support import saved_tables
from windlass.domain.config import Config
from windlass.domain.values.errors import WindlassError
from windlass.engine.sync.fast_path import FastPath, FastResult
from windlass.engine.transaction.bounds import Bounds
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.effects import Effects
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.postgres.connections import open_connection
from windlass.store.postgres.fast_path import PostgresFastPath
from windlass.store.postgres.news import Herald
from windlass.store.postgres.store import PostgresStore
from windlass.store.postgres.transactions import Transactions
from windlass.store.sql.places import Head
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import WriteTx

T = TypeVar("T")
Step = Callable[[Work, Bounds], Awaitable[T]]

Answers = FastResult[Any] | None

ACTORS = 3
MAX_S = 60


class NoChance:
    """Chance that never changes anything."""

    def fraction(self) -> float:
        return 0.0


class Hand:
    """Runs engine commands, each in one transaction, as a server of its own would."""

    def __init__(self, transact: Callable[[Callable[[WriteTx], Awaitable[Any]]], Awaitable[Any]]):
        self._transact = transact
        self.forget()

    def forget(self, known: Catalog | None = None) -> None:
        """Begin anew, as a server that has just been started, or that has some shapes in mind."""
        self.catalog = Catalog(CONFIG)
        if known is not None:
            self.catalog.shapes.update(known.shapes)
            self.catalog.ids.update(known.ids)
            self.catalog.queues.update(known.queues)
            self.catalog.any_limited = known.any_limited
        self.bounds = Bounds(shared=True)
        self.effects = Effects()

    async def run(self, step: Step[T]) -> T:
        """Run one command and keep what its commit meant to the engine around it."""

        async def work_it(tx: WriteTx) -> T:
            work = Work(tx, CONFIG, self.catalog, NoChance())
            answer = await step(work, self.bounds)
            await work.settle()
            self.effects = work.effects
            return answer

        answer: T = await self._transact(work_it)
        self.bounds.reset()
        return answer


CONFIG = Config()


class HotStep(NamedTuple):
    """A command in one round trip, and the normal path it may fall back to.

    `old`: the actor remembers where jobs are, and cannot be sure of it any more.
    """

    hot: Callable[[FastPath], Awaitable[Answers]]
    ordinary: Step[Any]
    read: Callable[[Any], object] = lambda answer: answer
    old: bool = False

    async def play(self, hand: Hand, paths: FastPath) -> object:
        """Its answer, whichever way it took."""
        done = await self.hot(paths)
        if done is None:
            return await hand.run(self.ordinary)
        hand.effects = done.effects
        return self.read(done.answers)


class Played(NamedTuple):
    """What one command came to: its answer or error, when it ended, and its effects."""

    answer: object
    place: int  # in the order of ends; -1: it failed in an unexpected way
    effects: Effects


class Performance(NamedTuple):
    """All commands of one run under one schedule."""

    schedule: str
    played: tuple[Played, ...]
    deadlocks: int
    steps: tuple[int, ...]
    trace: tuple[str, ...]


class Stage:
    """One database with the actors on it. Open it on the loop that uses it."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._moved = asyncio.Event()
        self._gates: list[Gate] = []
        self._connections: list[Any] = []
        self._transactions: list[Transactions] = []
        self._known: Catalog | None = None
        self._heads: list[Head] = []
        self._saved: Snapshot
        self.store: PostgresStore
        self.helper: asyncpg.Connection[Any]

    async def open(self) -> None:
        """Connect everyone to a database that is empty so far."""
        self.store = await PostgresStore.connect(self._dsn, server="hand")
        await self.store.upgrade()
        await self.store.set_clock(0)
        self.helper = await open_connection(self._dsn)
        await saved_tables.install(self.helper)
        self.hand = Hand(self.store.transact)
        for _ in range(ACTORS):
            gate = Gate(self._moved)
            connection, pool = await open_gated(self._dsn, gate)
            self._gates.append(gate)
            self._connections.append(connection)
            self._transactions.append(Transactions(self._dsn, pool))

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()
        await self.helper.close()
        await self.store.close()

    async def empty(self, now: int) -> None:
        """Nothing is there, and it is `now`."""
        await self.helper.execute(saved_tables.EMPTY)
        await self.set_clock(now)
        self._known = None
        self._forget()

    async def save(self) -> None:
        """What is there now is where every run begins."""
        await self.helper.execute(saved_tables.SAVE)
        self._known = Catalog(CONFIG)
        await self.store.read(self._known.refresh)
        self._heads = await self.store.read(lambda tx: tx.places.heads())
        self._saved = await self.store.snapshot()

    async def restore(self) -> None:
        await self.helper.execute(saved_tables.RESTORE)
        self._forget()

    async def set_clock(self, now: int) -> None:
        await self.helper.execute("UPDATE injected_clock SET at = $1", now)

    def _forget(self) -> None:
        self.hand.forget(self._known)
        self.store.forget_time()
        for transactions in self._transactions:
            transactions.forget_time()

    def _paths(self, number: int, hand: Hand, old: bool) -> FastPath:
        """An actor that knows the workers, and where jobs stood when the run began."""
        for worker in self._saved.workers:
            hand.catalog.remember(worker)
        now = max(worker.last_seen for worker in self._saved.workers)
        hand.bounds.replace(self._heads, 0 if old else now)
        herald = Herald(f"actor-{number}", _tell_nobody)
        hot = PostgresFastPath(self._dsn, self._transactions[number], herald, lambda: False)
        return FastPath(hot, CONFIG, hand.catalog, hand.bounds)

    async def perform(
        self, steps: Sequence[Step[Any] | HotStep], schedule: Schedule
    ) -> Performance:
        """Run each step in a transaction of its own, interleaved as the schedule says."""
        await self.restore()
        gates = self._gates[: len(steps)]
        ended: list[Played] = []
        for gate in gates:
            gate.done, gate.before, gate.deadlocks = False, "", 0
        tasks = [
            asyncio.create_task(self._play(number, step, ended))
            for number, step in enumerate(steps)
        ]
        processes = [c.get_server_pid() for c in self._connections[: len(steps)]]
        scheduler = Scheduler(gates, processes, self.helper, self._moved)
        try:
            async with asyncio.timeout(MAX_S):
                await scheduler.run(schedule)
        except (StuckError, TimeoutError):
            for connection in self._connections:
                connection.terminate()
            raise AssertionError(f"stuck: {schedule}: {' '.join(scheduler.trace)}") from None
        played = tuple(await asyncio.gather(*tasks))
        deadlocks = sum(gate.deadlocks for gate in gates)
        return Performance(
            str(schedule), played, deadlocks, tuple(scheduler.steps), tuple(scheduler.trace)
        )

    async def _play(self, number: int, step: Step[Any] | HotStep, ended: list[Played]) -> Played:
        hand = Hand(self._transactions[number].write)
        hand.forget(self._known)
        answer: object
        place = len(ended)
        try:
            if isinstance(step, HotStep):
                answer = await step.play(hand, self._paths(number, hand, step.old))
            else:
                answer = await hand.run(step)
            place = len(ended)
        except WindlassError as error:
            answer, place = error, len(ended)
        except Exception as error:
            answer, place = error, -1
        finally:
            self._gates[number].finish()
        played = Played(answer, place, hand.effects)
        ended.append(played)
        return played


async def _tell_nobody(_payloads: list[str]) -> None:
    """There are no other servers."""
