"""The counters of jobs: what they count, by which labels, and by which of several servers."""

import pytest

from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.engine.engine import Engine
from windlass.server.feed import CountedEvents, Feed
from windlass.server.metrics import Meters
from windlass.server.metrics.catalogue import MAX_QUEUES, MAX_TASKS
from windlass.store.store import Store

PYTHON = {"task": "python", "args": {"function": "shop.mail:send"}}


class Server:
    """A server that reads the log and counts."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._engine = engine
        self._meters = Meters()
        self.feed = Feed(store, self._meters, CountedEvents(engine))

    async def page(self) -> dict[str, float]:
        """What it has counted so far, by series."""
        await self.feed.run_once(0)
        text = self._meters.render(await self._engine.metrics(), None).decode()
        lines = (line for line in text.splitlines() if not line.startswith("#"))
        pairs = (line.rsplit(" ", 1) for line in lines)
        return {series: float(value) for series, value in pairs}


async def counting(rig: Rig, engine: Engine | None = None) -> Server:
    server = Server(rig.store, engine or rig.engine)
    await server.feed.begin()
    return server


async def test_ends_are_counted_by_queue_task_state_and_failure(rig: Rig) -> None:
    server = await counting(rig)
    agent = await rig.agent()
    await rig.submit("python", args=PYTHON["args"], queue="mail", retries=0)
    await agent.finish(await agent.take_one())
    await rig.submit("shell", args={"argv": ["/usr/bin/make", "-C", "dir"]}, retries=0)
    await agent.finish(await agent.take_one(), "failed", failure="execution")
    canceled = await rig.submit()
    await rig.engine.jobs.cancel([canceled], "not needed", "anna")
    page = await server.page()
    assert page['windlass_jobs_submitted_total{queue="mail"}'] == 1
    assert page['windlass_jobs_completed_total{queue="mail",task="shop.mail:send"}'] == 1
    failed = 'windlass_jobs_failed_total{failure="execution",queue="default",task="make"}'
    assert page[failed] == 1
    assert page['windlass_jobs_ended_total{queue="default",state="canceled"}'] == 1
    assert page['windlass_attempts_started_total{queue="default",task="make"}'] == 1
    assert page['windlass_job_run_seconds_count{queue="mail"}'] == 1
    assert page['windlass_job_wait_seconds_count{queue="default"}'] == 1


async def test_retries_timeouts_and_lost_attempts_are_counted(rig: Rig) -> None:
    await rig.end_grace()
    server = await counting(rig)
    agent = await rig.agent()
    await rig.submit(retries=3)
    await agent.finish(await agent.take_one(), "failed", failure="network")
    await rig.advance(MINUTE)
    await agent.finish(await agent.take_one(), "timed_out")
    await rig.advance(MINUTE)
    await agent.take_one()
    await rig.pass_time(100 * SECOND)
    page = await server.page()
    retried = 'windlass_job_retries_total{{failure="{}",queue="default",task="shell"}}'
    names = ("network", "timeout", "worker_lost")
    assert [page[retried.format(name)] for name in names] == [1, 1, 1]
    assert page['windlass_job_timeouts_total{queue="default",task="shell"}'] == 1
    assert page['windlass_attempts_lost_total{queue="default",task="shell"}'] == 1
    assert page["windlass_workers_lost_total"] == 1


async def test_what_a_command_line_says_never_becomes_a_label(memory_rig: Rig) -> None:
    rig = memory_rig
    server = await counting(rig)
    for line in ("TOKEN=s3cret curl x", "'s3cret word'", "s3cret/../;x"):
        await rig.submit(args={"argv": ["sh", "-c", line]})
    await rig.submit(args={"argv": ["curl", "--header=s3cret", "s3cret"]})
    agent = await rig.agent()
    for assignment in await agent.take(4):
        await agent.finish(assignment)
    page = await server.page()
    assert not [series for series in page if "s3cret" in series]
    assert page['windlass_jobs_completed_total{queue="default",task="curl"}'] == 1
    assert page['windlass_jobs_completed_total{queue="default",task="shell"}'] == 3


async def test_a_flood_of_queues_and_tasks_makes_a_bounded_number_of_series(
    memory_rig: Rig,
) -> None:
    rig = memory_rig
    server = await counting(rig)
    count = MAX_TASKS + 50
    await rig.submit_all(*({"queue": f"q{n}", "kind": f"k{n}"} for n in range(count)))
    await rig.submit_all(*({"queue": "q0", "kind": f"more{n}"} for n in range(count)))
    agent = await rig.agent(slots=2 * count)
    for assignment in await agent.take(2 * count):
        await agent.finish(assignment)
    page = await server.page()
    for name, most in (
        ("windlass_jobs_submitted_total", MAX_QUEUES + 1),
        ("windlass_jobs_completed_total", MAX_TASKS + MAX_QUEUES + 1),
        ("windlass_job_wait_seconds_count", MAX_QUEUES + 1),
    ):
        values = [value for series, value in page.items() if series.startswith(name + "{")]
        assert sum(values) == 2 * count, name
        assert len(values) <= most, name
    assert page['windlass_jobs_completed_total{queue="q0",task="other"}'] > 0


async def test_a_server_that_starts_again_counts_from_zero_and_nothing_twice(rig: Rig) -> None:
    await rig.submit()
    before = await counting(rig)
    await rig.submit()
    assert (await before.page())['windlass_jobs_submitted_total{queue="default"}'] == 1
    after = await counting(rig)
    await rig.submit()
    assert (await after.page())['windlass_jobs_submitted_total{queue="default"}'] == 1


@pytest.mark.parametrize("rig", ["postgres"], indirect=True)
async def test_the_counters_of_two_servers_add_up(rig: Rig) -> None:
    await rig.submit()
    servers = [await counting(rig), await counting(rig, await rig.another_engine())]
    name = 'windlass_jobs_submitted_total{queue="default"}'
    for turn in (0, 1, 1, 0):
        await rig.submit()
        await servers[turn].page()
    await rig.submit()
    pages = [await server.page() for server in servers]
    assert [page.get(name, 0) for page in pages] == [3, 2]


@pytest.mark.parametrize("rig", ["postgres"], indirect=True)
async def test_what_happened_while_no_server_counted_is_counted_by_the_next(rig: Rig) -> None:
    first = await counting(rig)
    await first.page()
    await rig.submit()
    second = await counting(rig)
    assert (await second.page())['windlass_jobs_submitted_total{queue="default"}'] == 1
