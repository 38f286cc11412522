"""Seed 002's nine scheduler suites, under its names, on every store.

No job is lost, none is doubled, none is stuck for ever, all failures recover.
"""

import asyncio

from tests.engine.support.agent import Agent
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.matching.workers import WorkerStatus


async def heartbeats(rig: Rig, agents: list[Agent], ms: int) -> None:
    """Time passes on a running server while these workers live."""
    for _ in range(ms // (10 * SECOND)):
        await rig.advance(10 * SECOND)
        for agent in agents:
            await agent.sync()
        await rig.health()


class TestWorkerDeathMidJob:
    async def test_its_job_is_tried_again_on_another_worker(self, rig: Rig) -> None:
        await rig.end_grace()
        doomed, healthy = await rig.agent("doomed"), await rig.agent("healthy")
        job = await rig.submit()
        first = await doomed.take_one()
        await heartbeats(rig, [healthy], 2 * MINUTE)
        assert await rig.state(job) == "retrying"
        second = await healthy.take_one()
        assert (second.job, second.attempt) == (job, first.attempt + 1)
        await healthy.finish(second)
        assert await rig.moves(job) == [
            (None, "queued"), ("queued", "assigned"), ("assigned", "running"),
            ("running", "retrying"), ("retrying", "queued"),
            ("queued", "assigned"), ("assigned", "running"), ("running", "completed"),
        ]  # fmt: skip

    async def test_the_reason_names_the_worker(self, rig: Rig) -> None:
        await rig.end_grace()
        job = await rig.submit()
        await (await rig.agent("doomed")).take_one()
        await heartbeats(rig, [], 2 * MINUTE)
        (event,) = [e for e in await rig.events(job) if e.to == 7]
        assert event.reason == "Worker doomed died mid-execution"


class TestIdempotentAssignment:
    async def test_a_repeated_request_assigns_nothing_more(self, rig: Rig) -> None:
        await rig.submit_all({"args": 1}, {"args": 2})
        agent = await rig.agent()
        request = agent.request(want=1)
        first = await agent.send(request)
        log = await rig.events()
        again = await agent.send(request)
        assert (len(first.jobs), again.applied) == (1, False)
        assert await rig.events() == log

    async def test_a_lost_reply_is_the_same_assignment_again(self, rig: Rig) -> None:
        await rig.submit()
        agent = await rig.agent()
        lost = await rig.engine.sync(agent.id, agent.request(want=1))
        assert (await agent.sync(want=1)).jobs == lost.jobs


class TestIdempotentCompletion:
    async def test_a_completion_counts_once(self, rig: Rig) -> None:
        job = await rig.submit()
        agent = await rig.agent()
        given = await agent.take_one()
        await agent.finish(given, result=1)
        log = await rig.events()
        assert (await agent.finish(given, result=2)).lost == ()
        assert await rig.events() == log
        assert (await rig.record(job)).result == b"1"

    async def test_a_failure_after_a_completion_changes_nothing(self, rig: Rig) -> None:
        job = await rig.submit()
        agent = await rig.agent()
        given = await agent.take_one()
        await agent.finish(given)
        await agent.fail(given, FailureClass.NETWORK)
        assert await rig.state(job) == "completed"


class TestRetryExhaustion:
    async def test_after_three_retries_it_has_failed(self, rig: Rig) -> None:
        job = await rig.submit()
        agent = await rig.agent()
        for _ in range(4):
            await agent.fail(await agent.take_one(), FailureClass.NETWORK, "no such host")
            await rig.advance(5 * MINUTE)
        assert await rig.state(job) == "failed"
        assert await agent.take() == ()
        reasons = [attempt.message for attempt in (await rig.snapshot()).attempts]
        assert reasons == ["no such host"] * 3


class TestPriorityOrdering:
    async def test_live_before_default_before_batch_and_high_before_low(self, rig: Rig) -> None:
        jobs = {}
        for queue in ("batch", "default", "live"):
            for priority in ("low", "medium", "high"):
                jobs[queue, priority] = await rig.submit(queue=queue, priority=priority)
        expected = [
            jobs[queue, priority]
            for queue in ("live", "default", "batch")
            for priority in ("high", "medium", "low")
        ]
        assert await rig.order(await rig.agent(), 9) == expected


class TestHeartbeatTimeout:
    async def test_a_silent_worker_is_offline_and_a_beating_one_is_not(self, rig: Rig) -> None:
        await rig.end_grace()
        silent, beating = await rig.agent("silent"), await rig.agent("beating")
        await heartbeats(rig, [beating], 90 * SECOND)
        assert (await rig.worker(silent.id)).status == WorkerStatus.UNHEALTHY
        await heartbeats(rig, [beating], 10 * SECOND)
        assert (await rig.worker(silent.id)).status == WorkerStatus.OFFLINE
        assert (await rig.worker(beating.id)).status == WorkerStatus.ONLINE


class TestNoStarvation:
    async def test_an_old_low_job_overtakes_a_stream_of_high_ones(self, rig: Rig) -> None:
        low = await rig.submit(priority="low", queue="batch")
        agent = await rig.agent()
        taken: list[int] = []
        for _ in range(14):
            for n in range(2):  # more arrive than are taken
                await rig.submit(priority="high", queue="batch", args=n)
            taken += [job.job for job in await agent.take()]
            await rig.advance(2 * MINUTE)
        assert low in taken
        assert taken[0] != low


class TestDuplicateAssignmentPrevention:
    async def test_many_workers_at_once_never_get_the_same_job(self, rig: Rig) -> None:
        ids = (await rig.submit_all(*[{"args": n} for n in range(40)])).ids
        agents = [await rig.agent(f"w{n}") for n in range(20)]
        taken = await asyncio.gather(*[agent.take(3) for agent in agents])
        given = sorted(job.job for jobs in taken for job in jobs)
        assert given == list(ids)

    async def test_two_engines_never_give_out_the_same_job(self, rig: Rig) -> None:
        engines = [rig.engine]
        if rig.kind != "sqlite":  # one server works on a file
            engines.append(await rig.another_engine())
        ids = (await rig.submit_all(*[{"args": n} for n in range(40)])).ids
        agents = [await rig.agent(f"w{n}") for n in range(20)]
        for n, agent in enumerate(agents):
            agent.engine = engines[n % len(engines)]
        taken = [await asyncio.gather(*[agent.take(2) for agent in agents]) for _ in range(3)]
        given = [job.job for round_ in taken for jobs in round_ for job in jobs]
        assert len(given) == len(set(given))
        await rig.advance(2 * SECOND)
        rest = [job.job for agent in agents for job in await agent.take(5)]
        assert sorted(given + rest) == list(ids)


class TestSchedulerRestartRecovery:
    async def test_nothing_is_lost_or_doubled_by_a_restart(self, rig: Rig) -> None:
        agent = await rig.agent()
        running, queued, blocked, planned, retrying = [
            await rig.submit(priority=5),
            await rig.submit(),
            await rig.submit(unblock="manual"),
            await rig.submit(not_before=rig.now + HOUR),
            await rig.submit(priority=9),
        ]
        await agent.fail(await agent.take_one(), FailureClass.NETWORK)
        given = await agent.take_one()
        before = await rig.snapshot()
        agent.engine = await rig.restart()
        assert await rig.snapshot() == before
        await agent.finish(given)
        assert await rig.states(running, queued, blocked, planned, retrying) == [
            "completed", "queued", "blocked", "queued", "retrying",
        ]  # fmt: skip
        await rig.advance(HOUR)
        await rig.engine.jobs.unblock(blocked)
        assert sorted(job.job for job in await agent.take(9)) == sorted(
            [queued, blocked, planned, retrying]
        )

    async def test_a_worker_that_outlived_the_outage_keeps_its_job(self, rig: Rig) -> None:
        await rig.end_grace()
        job = await rig.submit()
        agent = await rig.agent()
        given = await agent.take_one()
        await rig.advance(10 * MINUTE)
        agent.engine = await rig.restart()
        await rig.health()
        assert (await agent.finish(given)).lost == ()
        assert await rig.state(job) == "completed"
