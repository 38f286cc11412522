"""Depths of queues that answers share for a moment, where events become visible out of order."""

from tests.store.postgres.conftest import OpenStore
from tests.support.running import run
from windlass.clock import RealChance
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State
from windlass.engine.engine import Engine
from windlass.engine.history.series import read_counted
from windlass.operations.queues import SHARED_MS, LiveDepths
from windlass.store.sql.transaction import ReadTx

START = 1_000_000_000_000
QUEUED, ASSIGNED = State.QUEUED.code, State.ASSIGNED.code
LATE = """
INSERT INTO events (seq, at, job, attempt, kind, "from", "to") VALUES ($1, 0, $2, 1, 1, $3, $4)
"""


def test_an_event_that_becomes_visible_late_is_missing_for_a_moment_only(
    open_store: OpenStore,
) -> None:
    async def scenario() -> None:
        async with open_store() as store:
            await store.set_clock(START)
            engine = Engine(store, Config(), RealChance())
            await engine.start()
            live = LiveDepths(engine.catalog)

            async def show(tx: ReadTx) -> dict[int, int]:
                depths = await live.read(tx, *await read_counted(tx))
                found = depths.get(("default", "default"), {})
                return {state: count for state, count in found.items() if count}

            (first, _), *_ = await engine.submit([JobSpec(task="t")] * 2)
            assert await store.read(show) == {QUEUED: 2}
            async with store.connection() as connection:
                held = await connection.fetchval("SELECT nextval('event_numbers')")
            await engine.submit([JobSpec(task="t")])
            assert await store.read(show) == {QUEUED: 3}, "what is new is told at once"
            async with store.connection() as connection:
                await connection.execute(LATE, held, first, QUEUED, ASSIGNED)
            await store.set_clock(START + SHARED_MS)
            assert await store.read(show) == {QUEUED: 2, ASSIGNED: 1}
            await store.set_clock(None)

    run(scenario())
