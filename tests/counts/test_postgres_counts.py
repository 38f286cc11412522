"""What commands cost on PostgreSQL, in round trips, whatever the machine."""

import asyncio

import pytest

from tests.counts.counting import Sent, counted_postgres, specs
from tests.support.running import run

SYNC_TRIPS = 16  # finish n and claim n, whatever n is
SUBMIT_TRIPS = 7
IDLE_TRIPS = 5  # a heartbeat


def cost_of_sync(dsn: str, patch: pytest.MonkeyPatch, queued: int, jobs: int) -> Sent:
    async def go() -> Sent:
        async with counted_postgres(dsn, patch) as counted:
            await counted.fill(queued)
            await counted.sync(jobs)
            return await counted.sync(jobs)

    return run(go())


@pytest.mark.parametrize("jobs", [1, 100, 500])
def test_a_sync_needs_few_round_trips(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    sent = cost_of_sync(postgres_dsn, monkeypatch, 1_100, jobs)
    assert len(sent.statements) <= SYNC_TRIPS, sent.statements


@pytest.mark.parametrize("queued", [1_000, 10_000])
def test_a_sync_does_not_feel_the_length_of_the_queue(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, queued: int
) -> None:
    sent = cost_of_sync(postgres_dsn, monkeypatch, queued, 100)
    assert sent.count("peek") == 1
    assert sent.count("heads") == 0
    assert len(sent.statements) <= SYNC_TRIPS, sent.statements


@pytest.mark.parametrize("jobs", [1, 100, 1_000])
def test_a_submit_needs_few_round_trips(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    async def go() -> Sent:
        async with counted_postgres(postgres_dsn, monkeypatch) as counted:
            await counted.fill(100)
            return await counted.submit(jobs)

    sent = run(go())
    assert len(sent.statements) <= SUBMIT_TRIPS, sent.statements


def test_a_heartbeat_needs_few_round_trips(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> Sent:
        async with counted_postgres(postgres_dsn, monkeypatch) as counted:
            await counted.sync(0)
            return await counted.sync(0)

    sent = run(go())
    assert len(sent.statements) <= IDLE_TRIPS, sent.statements


def test_64_callers_share_two_transactions(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call starts at once, what comes while it runs shares the next."""

    async def go() -> Sent:
        async with counted_postgres(postgres_dsn, monkeypatch) as counted:
            await counted.fill(10)
            with counted.counting() as sent:
                await asyncio.gather(*(counted.engine.submit(specs(1)) for _ in range(64)))
            return sent[0]

    sent = run(go())
    assert 1 <= sent.count("commit") <= 4
