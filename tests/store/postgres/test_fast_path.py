"""Hot commands: lost answers, keys taken at the same moment, and who is told when."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.proxy import Fault, Proxy, proxy_to
from tests.support.running import run
from windlass.clock import RealChance
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import StoreUnavailable
from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.verify import verify
from windlass.messages.sync import Finished, Released, SyncReply, SyncRequest
from windlass.ports.loop_time import pass_time
from windlass.store.postgres import failures
from windlass.store.postgres.connections import open_connection
from windlass.store.postgres.news import CHANNEL
from windlass.store.postgres.store import PostgresStore
from windlass.store.store import News

STRIKE = "strike here"  # the proxy's fault applies to what carries this
LONG_ENOUGH_S = 30
WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()
"""
Check = Callable[["Behind"], Awaitable[None]]


class Behind:
    """An engine behind a proxy, warm so that its commands are hot, and a worker of it."""

    def __init__(self, engine: Engine, witness: PostgresStore, proxy: Proxy) -> None:
        self.engine = engine
        self.witness = witness
        self.proxy = proxy
        self._seq = 0
        self._received = 0

    async def warm_up(self) -> None:
        self._worker = await self.engine.workers.enrol(Enrolment(name="w", slots=10))
        await self.submit("first")
        (job,) = (await self.sync(want=1)).jobs
        await self.sync(finished=(Finished(job.job, job.attempt),))

    async def submit(self, what: str, key: str | None = None) -> int:
        done = await self.engine.submit([JobSpec(task="t", args=what)], key=key)
        return done.ids[0]

    async def sync(self, **fields: object) -> SyncReply:
        self._seq += 1
        known = {"incarnation": self._worker.incarnation, "seq": self._seq}
        request = SyncRequest(**known, received=self._received, **fields)  # type: ignore[arg-type]
        reply = await self.engine.sync(self._worker.worker, request)
        self._received = max([self._received, *(job.lease for job in reply.jobs)])
        return reply

    async def jobs(self) -> list[int]:
        return [row.facts.id for row in (await self.witness.snapshot()).jobs]


@asynccontextmanager
async def started(store: PostgresStore) -> AsyncIterator[Engine]:
    engine = Engine(store, Config(), RealChance())
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


def through_proxy(open_store: OpenStore, dsn: str, check: Check) -> None:
    async def work() -> None:
        async with (
            open_store("witness") as witness,
            proxy_to(dsn, STRIKE.encode()) as (proxy, detour),
            open_store("s1", dsn=detour) as store,
            started(store) as engine,
        ):
            behind = Behind(engine, witness, proxy)
            await behind.warm_up()
            await check(behind)
            assert await verify(witness, Config()) == []

    run(work())


def test_a_submit_whose_answer_is_lost_is_found_to_have_happened(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    async def check(behind: Behind) -> None:
        before = await behind.jobs()
        behind.proxy.fault = Fault.LOSE_REPLY
        job = await behind.submit(STRIKE)
        assert await behind.jobs() == [*before, job]
        assert [given.job for given in (await behind.sync(want=2)).jobs] == [job]

    through_proxy(open_store, postgres_dsn, check)


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_REQUEST_SILENTLY])
def test_a_submit_that_never_arrived_is_made_once(
    open_store: OpenStore, postgres_dsn: str, fault: Fault
) -> None:
    async def check(behind: Behind) -> None:
        before = await behind.jobs()
        behind.proxy.fault = fault
        job = await behind.submit(STRIKE)
        assert await behind.jobs() == [*before, job]

    through_proxy(open_store, postgres_dsn, check)


def test_a_submit_nobody_can_tell_about_is_said_to_be_unknown(
    open_store: OpenStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "GIVE_UP_SECONDS", 0.2)

    async def check(behind: Behind) -> None:
        behind.proxy.fault = Fault.LOSE_REPLY
        behind.proxy.stays_down = True
        with pytest.raises(StoreUnavailable) as lost:
            await behind.submit(STRIKE)
        assert lost.value.outcome_unknown
        behind.proxy.refuses = False

    through_proxy(open_store, postgres_dsn, check)


@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
def test_a_sync_whose_answer_is_lost_is_healed(
    open_store: OpenStore, postgres_dsn: str, fault: Fault
) -> None:
    async def check(behind: Behind) -> None:
        for what in ("one", "two"):
            await behind.submit(what)
        (one,) = (await behind.sync(want=1)).jobs
        done = (Finished(one.job, one.attempt, result=STRIKE),)
        behind.proxy.fault = fault
        reply = await behind.sync(finished=done, want=1)
        if fault is Fault.LOSE_REQUEST:
            assert reply.applied  # else it had happened, or its repetition came first
        assert [given.attempt for given in reply.jobs] == [1]
        assert not reply.lost
        assert not (await behind.sync(finished=done)).lost

    through_proxy(open_store, postgres_dsn, check)


def test_a_key_that_is_taken_at_this_moment_is_one_submission(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    """The second waits for the first, whose key shows only when it commits."""

    async def check() -> None:
        async with (
            open_store("a") as one,
            open_store("b") as two,
            started(one) as left,
            started(two) as right,
        ):
            await left.submit([JobSpec(task="t")])
            await right.refresh()
            gate = await open_connection(postgres_dsn)
            async with gate.transaction():
                await gate.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
                calls = [
                    asyncio.create_task(engine.submit([JobSpec(task="t")], key="k"))
                    for engine in (left, right)
                ]
                await both_wait(gate)
            done = await asyncio.gather(*calls)
            await gate.close()
            assert done[0].ids == done[1].ids
            assert sorted([done[0].applied, done[1].applied]) == [(False,), (True,)]
            assert await verify(one, Config()) == []

    run(check())


def test_a_sync_needs_the_normal_path_on_a_connection_that_wrote_no_event(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    """Handed-back jobs do; every statement gets a connection of its own here."""

    async def work() -> None:
        async with (
            proxy_to(postgres_dsn) as (proxy, detour),
            open_store("s1", dsn=detour, pool_idle=0) as store,
            started(store) as engine,
        ):
            behind = Behind(engine, store, proxy)
            await behind.warm_up()
            job = await behind.submit("handed back")
            (given,) = (await behind.sync(want=1, prefetch=True)).jobs
            await behind.sync(released=(Released(job, given.attempt),))
            (again,) = (await behind.sync(want=1)).jobs
            assert (again.job, again.attempt) == (job, given.attempt + 1)

    run(work())


async def both_wait(gate: "asyncpg.Connection[Any]") -> None:
    """Until both submits are inside the database, one for the table, one for the key."""
    async with asyncio.timeout(LONG_ENOUGH_S):
        while await gate.fetchval(WAITING) < 2:
            await pass_time(0.01)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG_ENOUGH_S):
        while not condition():
            await pass_time(0.001)


def test_after_a_quiet_time_others_hear_of_a_submit_with_its_commit(
    open_store: OpenStore,
) -> None:
    async def check() -> None:
        async with open_store("a") as one, open_store("b") as two, started(one) as engine:
            heard: dict[int, tuple[int, int, int, int]] = {}

            def hear(news: News) -> None:
                heard.update({arrival[2]: arrival for arrival in news.arrivals})

            two.subscribe(hear)
            for _ in range(2):  # then shape and connection are known
                (job,) = (await engine.submit([JobSpec(task="t")])).ids
                await until(lambda job=job: job in heard)  # type: ignore[misc]
            herald = one._herald
            await until(lambda: herald._sending is None and herald._timer is None)
            await until(lambda: asyncio.get_running_loop().time() > herald._next_at)
            before = one.statements
            (job,) = (await engine.submit([JobSpec(task="t")])).ids
            await until(lambda: job in heard)
            assert one.statements == before + 1  # no NOTIFY of its own
            ready = (await one.snapshot()).ready[-1]
            assert heard[job] == (ready.shape, ready.rank, job, 1)

    run(check())


@asynccontextmanager
async def eavesdropping(dsn: str) -> AsyncIterator[list[str]]:
    """What is sent on the channel, to somebody whom no engine knows."""
    heard: list[str] = []
    connection = await open_connection(dsn)
    await connection.add_listener(CHANNEL, lambda *sent: heard.append(sent[-1]))
    try:
        yield heard
        await connection.execute(f"NOTIFY {CHANNEL}, 'the end'")
        await until(lambda: "the end" in heard)
        heard.remove("the end")
    finally:
        await connection.close()


def test_a_lone_engine_tells_nobody_of_its_submits(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    async def check() -> None:
        async with open_store("a") as one, started(one) as engine:
            async with eavesdropping(postgres_dsn) as heard:
                await engine.submit([JobSpec(task="t")])  # then shape and connection are known
                await one._herald.close()
                before = one.statements
                for _ in range(20):
                    await engine.submit([JobSpec(task="t")])
                await one._herald.close()
                assert one.statements == before + 20
            assert heard == []

    run(check())


def test_an_engine_tells_its_submits_from_when_another_listens_until_it_ends(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    async def check() -> None:
        async with open_store("a") as one, started(one) as engine:
            for _ in range(3):
                await engine.submit([JobSpec(task="t")])
            async with open_store("b") as two:
                arrived: list[int] = []
                two.subscribe(lambda news: arrived.extend(it[2] for it in news.arrivals))
                (job,) = (await engine.submit([JobSpec(task="t")])).ids
                await until(lambda: job in arrived)
            async with eavesdropping(postgres_dsn) as heard:
                await engine.submit([JobSpec(task="t")])
                await one._herald.close()
            assert heard == []

    run(check())


def test_a_lone_engine_whose_listener_broke_tells_nobody_once_it_listens_again(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    async def check() -> None:
        async with open_store("a") as one:
            heard: asyncio.Queue[News] = asyncio.Queue()
            one.subscribe(heard.put_nowait)
            connection = await open_connection(postgres_dsn)
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
            await connection.close()
            assert await heard.get() == News(catalog=True)  # it listens again
            async with eavesdropping(postgres_dsn) as sent:
                one.announce(News(pokes=(1,)))
                await one._herald.close()
            assert sent == []

    run(check())
