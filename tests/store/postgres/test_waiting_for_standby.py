"""Commits that wait for a synchronous standby: they may show and still be lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from tests.support.postgres import PostgresServer, start_postgres
from tests.support.running import run
from tests.support.waiting import until
from windlass.clock import RealChance
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import StoreUnavailable
from windlass.engine.engine import Engine
from windlass.engine.submit.submission import Submitted, WorkflowSpec
from windlass.store.postgres import failures
from windlass.store.postgres.store import PostgresStore

LIMIT_S = 60
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
Submit = Callable[[Engine], Awaitable[Submitted]]


async def submit_plain(engine: Engine) -> Submitted:
    return await engine.submit([JobSpec(task="t")], key="k")


async def submit_workflow(engine: Engine) -> Submitted:
    return await engine.submit([JobSpec(task="t")], WorkflowSpec(name="w"), key="k")


async def submit_workflow_with_key(engine: Engine) -> Submitted:
    return await engine.submit([JobSpec(task="t")], WorkflowSpec(name="w", key="k"))


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    server = start_postgres(durable=False)
    yield server
    server.stop()


@pytest.fixture
def dsn(primary: PostgresServer) -> Iterator[str]:
    dsn = primary.create_database()
    yield dsn
    primary.execute("ALTER SYSTEM RESET synchronous_standby_names")
    primary.execute("SELECT pg_reload_conf()")
    primary.drop_database(dsn)


@asynccontextmanager
async def engine_on(dsn: str, name: str) -> AsyncIterator[Engine]:
    store = await PostgresStore.connect(dsn, name)
    try:
        await store.upgrade()
        engine = Engine(store, Config(), RealChance())
        await engine.start()
        await engine.submit([JobSpec(task="t")])  # the next one is hot
        try:
            yield engine
        finally:
            await engine.close()
    finally:
        await store.close()


class Standby:
    """The one that the primary waits for, which is never there."""

    def __init__(
        self, primary: PostgresServer, watch: "asyncpg.Connection[asyncpg.Record]"
    ) -> None:
        self._primary = primary
        self._watch = watch

    async def waiting(self) -> list[int]:
        """The processes whose commits wait."""
        return [row[0] for row in await self._watch.fetch(WAITING)]

    async def until_waiting(self, other_than: int = 0) -> int:
        """The first process whose commit waits."""
        found: list[int] = []

        async def waits() -> bool:
            found[:] = [pid for pid in await self.waiting() if pid != other_than]
            return bool(found)

        await until("a commit waits", waits, LIMIT_S)
        return found[0]

    async def lose(self, dsn: str) -> None:
        """From now on, commits wait."""
        self._primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        self._primary.execute("SELECT pg_reload_conf()")
        own = await asyncpg.connect(dsn)
        probe = asyncio.create_task(self._commit(own))
        pid = await self.until_waiting()
        probe.cancel()
        await asyncio.wait([probe])
        own.terminate()
        await self._watch.execute("SELECT pg_terminate_backend($1, 10000)", pid)

    async def _commit(self, own: "asyncpg.Connection[asyncpg.Record]") -> None:
        while True:
            await own.execute("SELECT windlass.note_commit(0, 0, true)")

    def come_back(self) -> None:
        """From now on, and for those that wait, there is nothing to wait for."""
        self._primary.execute("ALTER SYSTEM RESET synchronous_standby_names")
        self._primary.execute("SELECT pg_reload_conf()")


@asynccontextmanager
async def standby_of(primary: PostgresServer, dsn: str) -> AsyncIterator[Standby]:
    watch = await asyncpg.connect(dsn)
    standby = Standby(primary, watch)
    try:
        yield standby
    finally:
        standby.come_back()
        await watch.close()


@pytest.mark.parametrize("submit", [submit_plain, submit_workflow])
@pytest.mark.parametrize("how", ["pg_terminate_backend", "pg_cancel_backend"])
def test_what_shows_and_waits_for_a_standby_is_not_said_to_be_committed(
    primary: PostgresServer, dsn: str, submit: Submit, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "GIVE_UP_SECONDS", 0.5)

    async def check() -> None:
        async with engine_on(dsn, "a") as engine, standby_of(primary, dsn) as standby:
            await standby.lose(dsn)
            submitting = asyncio.ensure_future(submit(engine))
            waiting = await standby.until_waiting()
            primary.execute(f"SELECT {how}({waiting})")
            with pytest.raises(StoreUnavailable, match="send it again with the same key") as lost:
                await submitting
            assert lost.value.outcome_unknown
            jobs = (await engine.store.snapshot()).jobs
            assert len(jobs) == 2, "it shows"

    run(check())


@pytest.mark.parametrize("submit", [submit_plain, submit_workflow, submit_workflow_with_key])
def test_a_repeated_submission_is_answered_once_the_first_is_durable(
    primary: PostgresServer, dsn: str, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "GIVE_UP_SECONDS", LIMIT_S)

    async def check() -> None:
        async with (
            engine_on(dsn, "a") as one,
            engine_on(dsn, "b") as two,
            standby_of(primary, dsn) as standby,
        ):
            await standby.lose(dsn)
            first = asyncio.ensure_future(submit(one))
            waiting = await standby.until_waiting()
            primary.execute(f"SELECT pg_terminate_backend({waiting}, 10000)")
            asking = await standby.until_waiting(waiting)
            again = asyncio.ensure_future(submit(two))
            await standby.until_waiting(asking)
            assert not again.done()
            standby.come_back()
            done = await asyncio.gather(first, again)
            assert done[0].ids == done[1].ids

    run(check())
