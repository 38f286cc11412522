"""A stale attempt or incarnation changes nothing, whatever it says."""

from collections.abc import Awaitable, Callable

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import Rig
from windlass.domain.values.errors import Conflict
from windlass.messages.sync import Assignment, Finished, Released, Started, SyncReply

Report = Callable[[Agent, Assignment], Awaitable[SyncReply]]

REPORTS: dict[str, Report] = {
    "finished": lambda agent, job: agent.finish(job),
    "failed": lambda agent, job: agent.finish(job, "failed"),
    "canceled": lambda agent, job: agent.finish(job, "canceled"),
    "timed out": lambda agent, job: agent.finish(job, "timed_out"),
    "started": lambda agent, job: agent.start(job),
    "released": lambda agent, job: agent.release(job),
    "refused": lambda agent, job: agent.release(job, "no disk"),
}


async def unchanged(rig: Rig, act: Awaitable[SyncReply]) -> SyncReply:
    """Await `act`, which must leave everything but the heartbeat as it was."""
    before, log = await rig.snapshot(), await rig.events()
    reply = await act
    after = await rig.snapshot()
    assert after._replace(workers=()) == before._replace(workers=())
    assert await rig.events() == log
    return reply


@pytest.mark.parametrize("report", REPORTS)
async def test_a_report_of_an_attempt_that_another_worker_ran_is_lost(
    rig: Rig, report: str
) -> None:
    job = await rig.submit()
    zombie, other = await rig.agent("zombie"), await rig.agent("other")
    stale = await zombie.take_one(prefetch=True)
    await zombie.release(stale)
    await other.take_one()
    stale_now = Assignment(job, 2, 0, "running", None, None, stale.spec)
    reply = await unchanged(rig, REPORTS[report](zombie, stale_now))
    assert [(lost.job, lost.attempt) for lost in reply.lost] == [(job, 2)]
    assert await rig.state(job) == "running"


@pytest.mark.parametrize("report", REPORTS)
async def test_a_report_of_an_unknown_attempt_is_lost(rig: Rig, report: str) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    wrong = Assignment(job, given.attempt + 1, 0, "running", None, None, given.spec)
    reply = await unchanged(rig, REPORTS[report](agent, wrong))
    assert [lost.attempt for lost in reply.lost] == [2]


@pytest.mark.parametrize("report", ["finished", "failed", "canceled", "released"])
async def test_an_attempt_closed_by_its_own_incarnation_is_a_repetition(
    rig: Rig, report: str
) -> None:
    await rig.submit(retry_on=("execution",))
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.finish(given, "failed", failure="execution")
    reply = await unchanged(rig, REPORTS[report](agent, given))
    assert reply.lost == ()


async def test_an_attempt_of_an_older_incarnation_is_lost(rig: Rig) -> None:
    job = await rig.submit()
    old = await rig.agent()
    given = await old.take_one()
    new = await rig.agent(takeover=True)
    reply = await unchanged(rig, new.finish(given))
    assert [lost.job for lost in reply.lost] == [job]


async def test_an_older_incarnation_cannot_report_at_all(rig: Rig) -> None:
    await rig.submit()
    old = await rig.agent()
    given = await old.take_one()
    await rig.agent(takeover=True)
    before, log = await rig.snapshot(), await rig.events()
    for fields in (
        {"finished": (Finished(given.job, given.attempt),)},
        {"released": (Released(given.job, given.attempt),)},
        {"started": (Started(given.job, given.attempt),)},
        {"want": 1},
    ):
        with pytest.raises(Conflict, match="incarnation 1"):
            await old.sync(**fields)
    assert (await rig.snapshot(), await rig.events()) == (before, log)


async def test_activity_of_a_stale_attempt_is_refused(rig: Rig) -> None:
    await rig.submit(queue="live")
    agent = await rig.agent()
    given = await agent.take_one()
    assert await agent.show_activity(given)
    stale = Assignment(given.job, 9, 0, "running", None, None, given.spec)
    before = await rig.snapshot()
    assert not await agent.show_activity(stale)
    assert await rig.snapshot() == before


async def test_activity_of_an_older_incarnation_is_refused(rig: Rig) -> None:
    await rig.submit(queue="live")
    old = await rig.agent()
    given = await old.take_one()
    await rig.agent(takeover=True)
    assert not await old.show_activity(given)


async def test_activity_of_an_ended_job_is_refused(rig: Rig) -> None:
    await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.finish(given)
    assert not await agent.show_activity(given)


async def test_nothing_leaves_a_terminal_state(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.finish(given)
    other = await rig.agent("other")
    for report in REPORTS.values():
        await report(other, given)
    assert await rig.state(job) == "completed"
