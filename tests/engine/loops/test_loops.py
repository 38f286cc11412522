"""Each maintenance loop does its round and reports what it did."""

import asyncio

import pytest
from structlog.testing import capture_logs

from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.config import Config
from windlass.domain.job.forms import Concurrency
from windlass.domain.values.errors import StoreUnavailable
from windlass.engine.loops import scheduling
from windlass.engine.loops.ticker import Ticker


async def test_a_round_with_nothing_to_do_says_so(rig: Rig) -> None:
    await rig.end_grace()
    log = await rig.events()
    assert await rig.scheduling() == scheduling.SchedulingReport(0, 0, 0)
    assert await rig.health() == scheduling.HealthReport(0, 0, 0, 0, in_grace=False)
    assert await rig.cleanup() == scheduling.CleanupReport(0, 0)
    assert await rig.events() == log


async def test_the_first_round_of_health_begins_with_a_grace(rig: Rig) -> None:
    assert (await rig.health()).in_grace


async def test_scheduling_and_cleanup_promote_what_is_due(rig: Rig) -> None:
    for wait in (MINUTE, HOUR):
        await rig.submit(not_before=rig.now + wait)
    await rig.advance(MINUTE)
    assert (await rig.scheduling()).promoted == 1
    await rig.advance(HOUR)
    assert (await rig.cleanup()).promoted == 1


async def test_a_retry_is_queued_by_the_cleanup_when_no_worker_asks(rig: Rig) -> None:
    agent = await rig.agent()
    job = await rig.submit()
    await agent.finish(await agent.take_one(), "failed", failure="network")
    await rig.advance(5 * SECOND - 1)
    assert (await rig.cleanup()).promoted == 0
    await rig.advance(1)
    assert (await rig.cleanup()).promoted == 1
    assert await rig.state(job) == "queued"


async def test_scheduling_uses_room_that_a_limit_has(rig: Rig) -> None:
    for n in range(3):
        await rig.submit(concurrency=Concurrency(key="k", max=1), args=n)
    await rig.submit(concurrency=Concurrency(key="k", max=4), args="raised")
    assert (await rig.scheduling()).limits == 1
    assert len((await rig.snapshot()).parked) == 0


async def test_more_than_a_chunk_is_done_in_one_round(rig: Rig) -> None:
    await rig.restart(Config(chunk_rows=2))
    for n in range(5):
        await rig.submit(not_before=rig.now + MINUTE, args=n)
    await rig.advance(MINUTE)
    assert (await rig.cleanup()).promoted == 5


async def test_many_lost_workers_are_found_in_one_round(rig: Rig) -> None:
    await rig.restart(Config(chunk_rows=2))
    await rig.end_grace()
    for n in range(5):
        await rig.submit(args=n)
        await (await rig.agent(f"w{n}")).take_one()
    await rig.pass_time(90 * SECOND)
    await rig.advance(1)
    report = await rig.health()
    assert (report.lost, report.orphans) == (5, 5)


@pytest.mark.parametrize("name", ["scheduling", "health", "cleanup"])
async def test_the_metrics_tell_when_a_loop_last_ran(rig: Rig, name: str) -> None:
    assert (await rig.engine.metrics()).last_run_ms == {}
    await getattr(rig, name)()
    assert (await rig.engine.metrics()).last_run_ms == {name: rig.now}


class Rounds:
    """A loop that is unavailable for two rounds and then stops its own ticker."""

    name = "rounds"
    interval_ms = 1

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.ran: list[int] = []
        self.ticker: Ticker[None] | None = None
        self.over = asyncio.Event()

    async def run_once(self, now: int) -> None:
        self.ran.append(now)
        if len(self.ran) <= 2:
            raise self.error
        assert self.ticker is not None
        if len(self.ran) == 4:
            self.ticker.stop_soon()
            self.over.set()


class StillClock:
    def __init__(self) -> None:
        self.now = 0

    def now_ms(self) -> int:
        return self.now

    async def sleep_ms(self, duration_ms: int) -> None:
        self.now += duration_ms


@pytest.mark.parametrize(
    "error", [StoreUnavailable("away", outcome_unknown=False), RecursionError("a bug of ours")]
)
async def test_a_ticker_goes_on_after_any_error_and_logs_it_once(
    memory_rig: Rig, error: Exception
) -> None:
    rounds = Rounds(error)
    rounds.ticker = Ticker(rounds, StillClock())
    with capture_logs() as logged:
        rounds.ticker.start()
        await rounds.over.wait()
        await rounds.ticker.stop(limit_ms=1_000)
    assert rounds.ran == [0, 1, 2, 3]
    assert [entry["event"] for entry in logged] == ["loop failed", "loop recovered"]
