"""What waits for what: after, after_any, allow_failure, operators, aborts."""

from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import HOUR, MINUTE, Rig
from windlass.domain.values.errors import Conflict
from windlass.domain.values.ids import JobId
from windlass.messages.sync import Finished


async def finish_next(agent: Agent, outcome: str = "completed") -> int:
    job = await agent.take_one()
    await agent.finish(job, outcome)  # type: ignore[arg-type]
    return job.job


async def test_a_job_waits_for_all_it_depends_on(rig: Rig) -> None:
    left, right = [await rig.submit(args=n) for n in range(2)]
    job = await rig.submit(after=(left, right))
    agent = await rig.agent()
    await finish_next(agent)
    assert await rig.state(job) == "blocked"
    await finish_next(agent)
    assert await rig.moves(job) == [(None, "blocked"), ("blocked", "queued")]


async def test_a_dependency_named_twice_counts_once(rig: Rig) -> None:
    first = await rig.submit()
    job = await rig.submit(after=(first, first), after_any=(first,))
    await finish_next(await rig.agent())
    assert await rig.state(job) == "queued"


async def test_a_failed_dependency_aborts_and_says_which(rig: Rig) -> None:
    first, unnamed = await rig.submit(name="build"), await rig.submit()
    jobs = [await rig.submit(after=(one,)) for one in (first, unnamed)]
    agent = await rig.agent()
    for _ in jobs:
        await finish_next(agent, "failed")
    await rig.engine.settled()
    assert [await rig.state(job) for job in jobs] == ["aborted"] * 2
    assert [(await rig.record(job)).reason for job in jobs] == [
        f"Dependency {first} (build) failed", f"Dependency {unnamed} failed",
    ]  # fmt: skip


async def test_an_abort_goes_all_the_way_down(rig: Rig) -> None:
    jobs = [await rig.submit()]
    for _ in range(5):
        jobs.append(await rig.submit(after=(jobs[-1],)))
    await finish_next(await rig.agent(), "failed")
    await rig.engine.settled()
    assert await rig.states(*jobs) == ["failed", *["aborted"] * 5]


async def test_a_diamond_joins_once(rig: Rig) -> None:
    top = await rig.submit()
    left, right = [await rig.submit(after=(top,), args=n) for n in range(2)]
    bottom = await rig.submit(after=(left, right))
    agent = await rig.agent()
    for _ in range(3):
        await finish_next(agent)
    assert (await rig.moves(bottom)).count(("blocked", "queued")) == 1
    assert await finish_next(agent) == bottom


@pytest.mark.parametrize("outcome", ["completed", "failed", "canceled"])
async def test_after_any_is_content_with_any_end(rig: Rig, outcome: str) -> None:
    first = await rig.submit()
    job = await rig.submit(after_any=(first,))
    await finish_next(await rig.agent(), outcome)
    assert await rig.state(job) == "queued"


async def test_an_aborted_job_ends_after_any_as_well(rig: Rig) -> None:
    first = await rig.submit()
    second = await rig.submit(after=(first,))
    cleanup = await rig.submit(after_any=(second,))
    await rig.engine.jobs.cancel([first])
    assert await rig.state(cleanup) == "queued"


async def test_a_failure_that_is_allowed_satisfies_its_dependents(rig: Rig) -> None:
    first = await rig.submit(allow_failure=True)
    job = await rig.submit(after=(first,))
    await finish_next(await rig.agent(), "failed")
    assert await rig.states(first, job) == ["failed", "queued"]


async def test_a_dependency_that_has_completed_is_met(rig: Rig) -> None:
    first = await rig.submit()
    await finish_next(await rig.agent())
    assert await rig.state(await rig.submit(after=(first,))) == "queued"


async def test_a_dependency_that_has_failed_aborts_at_once(rig: Rig) -> None:
    first = await rig.submit()
    await finish_next(await rig.agent(), "failed")
    job = await rig.submit(after=(first,))
    after = await rig.submit(after=(job,))
    await rig.engine.settled()
    assert await rig.moves(job) == [(None, "blocked"), ("blocked", "aborted")]
    assert await rig.state(after) == "aborted"


async def test_a_failure_that_is_allowed_does_not_hide_one_that_is_not(rig: Rig) -> None:
    agent = await rig.agent()
    allowed = await rig.submit(allow_failure=True)
    await finish_next(agent, "failed")
    bad = await rig.submit()
    await finish_next(agent, "failed")
    waiting = await rig.submit(after=(allowed,), unblock="manual")
    job = await rig.submit(after=(allowed, bad))
    await rig.engine.settled()
    assert await rig.states(job, waiting) == ["aborted", "blocked"]


@pytest.mark.parametrize("fields", [{"allow_failure": True}, {}])
async def test_a_failed_dependency_that_does_not_matter_is_met(
    rig: Rig, fields: dict[str, Any]
) -> None:
    first = await rig.submit(**fields)
    await finish_next(await rig.agent(), "failed")
    reference: dict[str, Any] = {"after": (first,)} if fields else {"after_any": (first,)}
    assert await rig.state(await rig.submit(**reference)) == "queued"


async def test_an_operator_lets_a_job_go(rig: Rig) -> None:
    job = await rig.submit(unblock="manual")
    assert await rig.state(job) == "blocked"
    assert await rig.engine.jobs.unblock(job, actor="ann")
    assert await rig.state(job) == "queued"


async def test_letting_go_twice_is_once(rig: Rig) -> None:
    job = await rig.submit(unblock="manual")
    await rig.engine.jobs.unblock(job)
    assert not await rig.engine.jobs.unblock(job)
    assert len(await rig.moves(job)) == 2


async def test_an_operators_word_is_one_condition_among_others(rig: Rig) -> None:
    first = await rig.submit()
    job = await rig.submit(unblock="manual", after=(first,))
    await rig.engine.jobs.unblock(job)
    assert await rig.state(job) == "blocked"
    await finish_next(await rig.agent())
    assert await rig.state(job) == "queued"


async def test_dependencies_do_not_stand_for_the_operators_word(rig: Rig) -> None:
    first = await rig.submit()
    job = await rig.submit(unblock="manual", after=(first,))
    await finish_next(await rig.agent())
    assert await rig.state(job) == "blocked"
    await rig.engine.jobs.unblock(job)
    assert await rig.state(job) == "queued"


async def test_an_operator_rejects_a_job_and_what_depends_on_it(rig: Rig) -> None:
    job = await rig.submit(unblock="manual")
    after = await rig.submit(after=(job,))
    assert await rig.engine.jobs.unblock(job, accept=False, reason="no", actor="ann")
    assert await rig.states(job, after) == ["aborted", "aborted"]
    assert (await rig.record(job)).reason == "no"


async def test_rejecting_twice_is_once(rig: Rig) -> None:
    job = await rig.submit(unblock="manual")
    await rig.engine.jobs.unblock(job, accept=False)
    log = await rig.events()
    assert not await rig.engine.jobs.unblock(job, accept=False)
    assert await rig.events() == log


async def test_a_job_that_waits_for_nobody_cannot_be_rejected(rig: Rig) -> None:
    job = await rig.submit()
    with pytest.raises(Conflict, match="is not waiting for an operator") as refused:
        await rig.engine.jobs.unblock(job, accept=False)
    assert refused.value.code == "not_waiting"


async def test_a_job_that_waits_only_for_others_cannot_be_rejected(rig: Rig) -> None:
    job = await rig.submit(after=(await rig.submit(),))
    with pytest.raises(Conflict):
        await rig.engine.jobs.unblock(job, accept=False)


async def test_a_planned_job_with_dependencies_waits_for_both(rig: Rig) -> None:
    first = await rig.submit()
    job = await rig.submit(after=(first,), not_before=rig.now + HOUR)
    agent = await rig.agent()
    await finish_next(agent)
    assert await rig.state(job) == "queued"
    assert await agent.take() == ()
    await rig.advance(HOUR)
    assert [j.job for j in await agent.take()] == [job]


async def test_a_fan_out_of_more_than_a_thousand_is_released(rig: Rig) -> None:
    first = await rig.submit()
    jobs = (await rig.submit_all(*[{"after": (first,), "args": n} for n in range(2_100)])).ids
    agent = await rig.agent(slots=5_000)
    await finish_next(agent)
    await rig.engine.settled()
    assert sorted(job.job for job in await agent.take(5_000)) == sorted(jobs)


async def test_a_fan_out_of_more_than_a_thousand_is_aborted(rig: Rig) -> None:
    first = await rig.submit()
    fields = [{"after": (first,), "args": n} for n in range(1_000)]
    jobs = (await rig.submit_all(*fields, {"after_any": (first,)}, *fields)).ids
    await rig.engine.jobs.cancel([first])
    snapshot = await rig.snapshot()
    states = {row.facts.id: row.facts.state for row in snapshot.jobs}
    assert [states[JobId(job)] for job in jobs] == [11] * 1_000 + [None] + [11] * 1_000
    assert snapshot.cascades == ()


async def test_an_interrupted_cascade_is_finished_by_the_next_engine(rig: Rig) -> None:
    first = await rig.submit()
    jobs = (await rig.submit_all(*[{"after": (first,), "args": n} for n in range(1_500)])).ids
    # The engine dies right after its first transaction: nobody works the intent off.
    rig.engine.cascades.stop()
    await rig.engine.jobs.cancel([first])
    assert await rig.state(jobs[-1]) == "blocked"
    await rig.restart()
    await rig.engine.settled()
    assert await rig.states(jobs[0], jobs[-1]) == ["aborted", "aborted"]


async def test_a_hundred_dependencies_are_one_join(rig: Rig) -> None:
    first = (await rig.submit_all(*[{"args": n} for n in range(100)])).ids
    job = await rig.submit(after=first)
    agent = await rig.agent(slots=100)
    for given in await agent.take(100):
        assert await rig.state(job) == "blocked"
        await agent.finish(given)
    assert await rig.state(job) == "queued"


async def test_time_spent_blocked_counts_for_an_hour_at_most(rig: Rig) -> None:
    first = await rig.submit()
    blocked = await rig.submit(after=(first,))
    agent = await rig.agent()
    given = await agent.take_one()
    await rig.advance(2 * HOUR)
    older = await rig.submit()
    await rig.advance(HOUR + MINUTE)
    await agent.finish(given)
    await rig.engine.settled()
    assert await rig.state(blocked) == "queued"
    assert await rig.order(agent, 2) == [older, blocked]


async def test_up_to_an_hour_of_being_blocked_counts_in_full(rig: Rig) -> None:
    first = await rig.submit()
    blocked = await rig.submit(after=(first,))
    agent = await rig.agent()
    given = await agent.take_one()
    await rig.advance(MINUTE)
    younger = await rig.submit()
    await rig.advance(59 * MINUTE)
    await agent.finish(given)
    assert await rig.order(agent, 2) == [blocked, younger]


async def test_a_dependent_can_be_claimed_with_the_very_report_that_frees_it(rig: Rig) -> None:
    first = await rig.submit()
    second = await rig.submit(after=(first,))
    agent = await rig.agent()
    given = await agent.take_one()
    reply = await agent.sync(finished=(Finished(given.job, given.attempt),), want=1)
    assert [job.job for job in reply.jobs] == [second]


async def test_a_delayed_job_starts_when_its_time_has_come(rig: Rig) -> None:
    job = await rig.submit(delay="1m", key="once")
    agent = await rig.agent()
    await rig.advance(MINUTE - 1)
    assert await rig.submit(delay="1m", key="once") == job
    assert await agent.take() == ()
    await rig.advance(1)
    assert (await agent.take_one()).job == job
