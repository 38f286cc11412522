"""What commands cost on PostgreSQL, in round trips, whatever the machine."""

import asyncio

import pytest

from tests.counts.counting import Sent, counted_postgres, specs
from tests.support.running import run
from windlass.clock import RealSecrets
from windlass.domain.access.rights import Identity, Role
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.views import JobFilter
from windlass.engine.access import Access
from windlass.engine.submit.submission import WorkflowSpec
from windlass.operations.queries import Queries

# The normal path, for what is not common.
SYNC_TRIPS = 16  # finish n and claim n, whatever n is
SUBMIT_TRIPS = 7
IDLE_TRIPS = 5  # a heartbeat
LIST_TRIPS = 15  # a full page with jobs that wait
ENDED_TRIPS = 9


def cost_of_sync(
    dsn: str, patch: pytest.MonkeyPatch, queued: int, jobs: int, hot: bool = True
) -> Sent:
    async def go() -> Sent:
        async with counted_postgres(dsn, patch, hot) as counted:
            await counted.fill(queued)
            await counted.sync(jobs)
            return await counted.sync(jobs)

    return run(go())


@pytest.mark.parametrize("jobs", [1, 100, 500])
def test_a_sync_is_one_round_trip(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    sent = cost_of_sync(postgres_dsn, monkeypatch, 1_100, jobs)
    assert sent.statements == ("sync_plain",)


def test_a_sync_does_not_feel_the_length_of_the_queue(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = cost_of_sync(postgres_dsn, monkeypatch, 10_000, 100)
    assert sent.statements == ("sync_plain",)


@pytest.mark.parametrize("jobs", [1, 500])
@pytest.mark.parametrize("queued", [1_100, 10_000])
def test_a_sync_that_is_not_common_needs_few_round_trips(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, queued: int, jobs: int
) -> None:
    sent = cost_of_sync(postgres_dsn, monkeypatch, queued, jobs, hot=False)
    assert sent.count("peek") == 1
    assert sent.count("heads") == 0
    assert len(sent.statements) <= SYNC_TRIPS, sent.statements


@pytest.mark.parametrize("jobs", [1, 100, 1_000])
@pytest.mark.parametrize("hot", [True, False])
def test_a_submit_needs_few_round_trips(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, jobs: int, hot: bool
) -> None:
    async def go() -> Sent:
        async with counted_postgres(postgres_dsn, monkeypatch, hot) as counted:
            await counted.fill(100)
            return await counted.submit(jobs)

    sent = run(go())
    if hot:
        assert sent.statements == ("submit_plain",)
    assert len(sent.statements) <= SUBMIT_TRIPS, sent.statements


@pytest.mark.parametrize("hot", [True, False])
def test_a_heartbeat_needs_few_round_trips(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, hot: bool
) -> None:
    async def go() -> Sent:
        async with counted_postgres(postgres_dsn, monkeypatch, hot) as counted:
            for _ in range(2):  # then connection and worker are known
                await counted.sync(0)
            return await counted.sync(0)

    sent = run(go())
    if hot:
        assert sent.statements == ("sync_plain",)
    assert len(sent.statements) <= IDLE_TRIPS, sent.statements


def test_a_claim_in_vain_is_one_round_trip(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> Sent:
        async with counted_postgres(postgres_dsn, monkeypatch) as counted:
            await counted.fill(2)
            await counted.sync(1, finds=0)
            return await counted.sync(1, finds=0)

    assert run(go()).statements == ("sync_plain",)


def test_the_time_is_one_round_trip(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> Sent:
        async with counted_postgres(postgres_dsn, monkeypatch) as counted:
            with counted.counting() as sent:
                await counted.engine.now()
            return sent[0]

    assert run(go()).statements == ("now",)


def test_64_callers_share_a_few_round_trips(
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
    assert 1 <= sent.count("submit_plain") <= 4


def test_a_known_token_costs_no_round_trip(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> tuple[Sent, Identity | None, Identity | None]:
        async with counted_postgres(postgres_dsn, monkeypatch) as counted:
            access = Access(counted.engine, RealSecrets())
            lasting = await access.create_token("lasting", Role.VIEWER)
            past = await access.create_token("past", Role.VIEWER, expires_at=1)
            await access.identify(lasting.secret)
            with counted.counting() as sent:
                identity = await access.identify(lasting.secret)
            return sent[0], identity, await access.identify(past.secret)

    sent, lasting, past = run(go())
    assert sent.statements == ()
    assert lasting is not None
    assert past is None


def test_retrying_a_workflow_does_not_need_round_trips_for_each_job(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chain(jobs: int) -> list[JobSpec]:
        after = [(), *((f"n{n}",) for n in range(jobs - 1))]
        return [JobSpec(task="t", name=f"n{n}", after=refs) for n, refs in enumerate(after)]

    async def go() -> list[Sent]:
        async with counted_postgres(postgres_dsn, monkeypatch) as counted:
            needed = []
            for jobs in (20, 200):
                made = await counted.engine.submit(chain(jobs), WorkflowSpec(name="w"))
                assert made.workflow is not None
                await counted.engine.workflows.cancel(made.workflow)
                with counted.counting() as sent:
                    await counted.engine.workflows.retry(made.workflow)
                needed.append(sent[0])
            return needed

    short, long = run(go())
    assert len(long.statements) <= len(short.statements) + 10, long.statements


@pytest.mark.parametrize("jobs", [10, 500])
def test_a_page_of_a_list_needs_few_round_trips(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    """Those that ended need fewer: nobody holds them and nothing is forecast.

    A list that is shorter than a page is scanned once more, to its end.
    """
    more = jobs < 100

    async def go() -> tuple[Sent, Sent]:
        async with counted_postgres(postgres_dsn, monkeypatch) as counted:
            await counted.fill(jobs)
            await counted.sync(jobs - 2)
            await counted.sync(0)
            await counted.submit(5)
            queries = Queries(counted.engine)
            shown = []
            for states in ((), (State.COMPLETED.code,)):
                for _ in range(2):  # The first one reads what is kept.
                    with counted.counting() as sent:
                        await queries.jobs(JobFilter(states=states), None, 100)
                shown.append(sent[0])
            return shown[0], shown[1]

    every, ended = run(go())
    assert len(every.statements) <= LIST_TRIPS + more, every.statements
    assert len(ended.statements) <= ENDED_TRIPS + more, ended.statements


@pytest.mark.parametrize(("workers", "alone"), [(2, True), (4, True), (12, False)])
def test_a_few_syncs_that_meet_are_a_round_trip_each_and_many_share_theirs(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, workers: int, alone: bool
) -> None:
    async def go() -> Sent:
        async with counted_postgres(postgres_dsn, monkeypatch) as counted:
            others = [await counted.another(f"w{n}") for n in range(workers)]
            await counted.fill(5 * workers)
            for other in 3 * others:  # then the engine knows what they hold
                await other.sync(1)
            with counted.counting() as sent:
                await asyncio.gather(*(other.sync(1) for other in others))
            return sent[0]

    sent = run(go())
    if alone:
        assert sent.statements == ("sync_plain",) * workers
    assert len(sent.statements) <= SYNC_TRIPS, sent.statements
