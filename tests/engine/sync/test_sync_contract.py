"""The one message of a worker: lost replies, doubled and late syncs, what was received."""

import pytest

from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.job.forms import Concurrency
from windlass.domain.values.errors import Conflict, NotFound
from windlass.messages.sync import Finished, Released, Started


async def test_a_lost_reply_is_sent_again_and_counts_against_want(rig: Rig) -> None:
    for n in range(3):
        await rig.submit(args=n)
    agent = await rig.agent()
    lost = (await rig.engine.sync(agent.id, agent.request(want=2))).jobs
    reply = await agent.sync(want=3)
    assert reply.jobs[:2] == lost
    assert len(reply.jobs) == 3
    assert len((await rig.snapshot()).leases) == 3


async def test_what_was_received_is_not_sent_again(rig: Rig) -> None:
    await rig.submit()
    agent = await rig.agent()
    await agent.take_one()
    assert (await agent.sync(want=1)).jobs == ()


async def test_a_doubled_sync_claims_once(rig: Rig) -> None:
    await rig.submit()
    await rig.submit(args=2)
    agent = await rig.agent()
    request = agent.request(want=1)
    first = await agent.send(request)
    second = await agent.send(request)
    assert (len(first.jobs), second.jobs, second.applied) == (1, (), False)
    assert second.stale


async def test_an_old_sync_that_arrives_late_changes_nothing(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    late = agent.request(finished=(Finished(given.job, given.attempt, "failed"),))
    await agent.finish(given)
    reply = await agent.send(late)
    assert not reply.applied
    assert await rig.state(job) == "completed"


async def test_a_result_that_was_recorded_is_not_lost_when_it_is_repeated(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.finish(given)
    before = await rig.events()
    reply = await agent.finish(given)
    assert (reply.lost, reply.applied, reply.stale) == ((), False, False)
    assert await rig.events() == before
    assert await rig.state(job) == "completed"
    assert (await agent.sync()).applied


async def test_a_refused_report_changes_nothing(rig: Rig) -> None:
    await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.release(given)
    reply = await agent.start(given)
    assert (len(reply.lost), reply.applied, reply.stale) == (1, False, False)


async def test_a_repeated_report_beside_a_new_one_is_applied(rig: Rig) -> None:
    for n in range(2):
        await rig.submit(args=n)
    agent = await rig.agent()
    first, second = await agent.take(2)
    await agent.finish(first)
    ends = tuple(Finished(one.job, one.attempt) for one in (first, second))
    assert (await agent.sync(finished=ends)).applied


async def test_finished_wins_over_released(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.sync(
        finished=(Finished(given.job, given.attempt),),
        released=(Released(given.job, given.attempt),),
    )
    assert await rig.state(job) == "completed"


async def test_finished_wins_over_started(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one(prefetch=True)
    await agent.sync(
        finished=(Finished(given.job, given.attempt),),
        started=(Started(given.job, given.attempt),),
    )
    assert (await rig.moves(job))[-2:] == [("assigned", "running"), ("running", "completed")]


async def test_one_sync_reports_and_claims(rig: Rig) -> None:
    first = await rig.submit()
    second = await rig.submit()
    agent = await rig.agent(slots=1)
    given = await agent.take_one()
    reply = await agent.sync(finished=(Finished(given.job, given.attempt),), want=1)
    assert [job.job for job in reply.jobs] == [second]
    assert await rig.states(first, second) == ["completed", "running"]


async def test_a_claim_starts_the_job_and_skips_no_state(rig: Rig) -> None:
    job = await rig.submit()
    given = await (await rig.agent()).take_one()
    assert given.state == "running"
    assert await rig.moves(job) == [
        (None, "queued"), ("queued", "assigned"), ("assigned", "running"),
    ]  # fmt: skip


async def test_a_prefetched_job_is_assigned_until_it_is_started(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one(prefetch=True)
    assert (given.state, await rig.state(job)) == ("assigned", "assigned")
    assert (await agent.start(given)).lost == ()
    assert await rig.state(job) == "running"


async def test_a_start_reported_twice_is_one_start(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one(prefetch=True)
    await agent.start(given)
    assert (await agent.start(given)).lost == ()
    assert (await rig.moves(job)).count(("assigned", "running")) == 1


async def test_a_start_of_what_was_taken_away_is_lost(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one(prefetch=True)
    await rig.engine.jobs.cancel([job])
    assert [lost.job for lost in (await agent.start(given)).lost] == [job]


async def test_a_result_for_an_assigned_attempt_records_running_first(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one(prefetch=True)
    await agent.finish(given)
    assert await rig.moves(job) == [
        (None, "queued"), ("queued", "assigned"), ("assigned", "running"), ("running", "completed"),
    ]  # fmt: skip


async def test_leases_rise_and_attempts_rise(rig: Rig) -> None:
    await rig.submit()
    agent = await rig.agent()
    first = await agent.take_one(prefetch=True)
    await agent.release(first)
    second = await agent.take_one()
    assert (first.attempt, second.attempt) == (1, 2)
    assert second.lease > first.lease


async def test_a_held_job_that_is_not_leased_is_lost(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.finish(given)
    reply = await agent.audit([given])
    assert [(lost.job, lost.attempt) for lost in reply.lost] == [(job, 1)]


async def test_a_leased_job_that_is_not_held_lost_its_process(rig: Rig) -> None:
    kept, gone = [await rig.submit(args=n) for n in range(2)]
    agent = await rig.agent()
    first, _ = await agent.take(2)
    await agent.audit([first])
    assert await rig.states(kept, gone) == ["running", "retrying"]
    assert (await rig.record(gone)).facts.lost == 1


async def test_an_agent_that_holds_nothing_says_so(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.take_one()
    await agent.audit([])
    assert await rig.state(job) == "retrying"


async def test_an_audit_passes_over_leases_whose_reply_is_under_way(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await rig.engine.sync(agent.id, agent.request(want=1))
    reply = await agent.audit([])
    assert [again.job for again in reply.jobs] == [job]
    assert await rig.state(job) == "running"


async def test_a_result_that_cannot_be_stored_ends_as_configuration(rig: Rig) -> None:
    jobs = [await rig.submit(args=n) for n in range(4)]
    agent = await rig.agent()
    bad = ["a\x00b", "x" * 1024 * 1024, "\ud800", object()]
    for given, result in zip(await agent.take(4), bad, strict=True):
        await agent.finish(given, result=result)
    assert await rig.states(*jobs) == ["failed"] * 4
    records = [await rig.record(job) for job in jobs]
    assert {record.failure for record in records} == {7}
    assert all("the result" in (record.message or "") for record in records)


async def test_text_that_cannot_be_stored_is_made_storable(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    given = await agent.take_one()
    await agent.finish(given, "failed", message="a\x00b\ud800" + "x" * 10_000, exit_code=2**70)
    record = await rig.record(job)
    assert (record.message or "").startswith("a\N{REPLACEMENT CHARACTER}b?xxx")
    assert len(record.message or "") == 4_000


async def test_a_reason_that_cannot_be_stored_is_made_storable(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.release(await agent.take_one(prefetch=True), "no\x00disk\ud800")
    assert await rig.state(job) == "queued"


async def test_the_result_and_exit_code_are_kept(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), exit_code=0, result={"frames": 3})
    record = await rig.record(job)
    assert (record.result, record.exit_code) == (b'{"frames":3}', 0)
    assert record.finished_at == rig.now


@pytest.mark.parametrize("result", [None, {"frames": 3}])
async def test_an_exit_code_that_stores_cannot_keep_is_cut(rig: Rig, result: object) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), exit_code=2**70, result=result)
    assert await rig.state(job) == "completed"
    assert (await rig.record(job)).exit_code == 2**31 - 1


async def test_the_result_of_a_job_under_a_limit_is_kept(rig: Rig) -> None:
    job = await rig.submit(concurrency=Concurrency("one", 1))
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), exit_code=0, result={"frames": 3})
    record = await rig.record(job)
    assert (record.result, record.exit_code) == (b'{"frames":3}', 0)


async def test_an_unknown_worker_is_not_found(rig: Rig) -> None:
    agent = await rig.agent()
    agent.id = 999
    with pytest.raises(NotFound, match="worker 999"):
        await agent.sync()


async def test_an_old_incarnation_is_told_to_stop(rig: Rig) -> None:
    old = await rig.agent()
    await rig.agent()
    with pytest.raises(Conflict, match="stop its jobs and enrol again") as refused:
        await old.sync(want=1)
    assert refused.value.code == "incarnation_ended"


async def test_every_reply_carries_the_epoch(rig: Rig) -> None:
    assert (await (await rig.agent()).sync()).epoch == 0


async def test_a_heartbeat_is_written_at_most_every_third_of_the_interval(rig: Rig) -> None:
    agent = await rig.agent()
    await rig.advance(9 * SECOND)
    await agent.sync()
    assert (await rig.worker(agent.id)).last_seen == rig.now - 9 * SECOND
    await rig.advance(SECOND)
    await agent.sync()
    assert (await rig.worker(agent.id)).last_seen == rig.now


async def test_a_bad_report_of_one_worker_does_not_harm_anothers(rig: Rig) -> None:
    job = await rig.submit()
    one, two = await rig.agent("one"), await rig.agent("two")
    given = await one.take_one()
    reply = await two.sync(finished=(Finished(given.job, given.attempt), Finished(77, 1)))
    assert [(lost.job, lost.reason) for lost in reply.lost] == [
        (job, "another attempt or worker holds this job, or it has ended"),
        (77, "no such job"),
    ]
    await rig.advance(MINUTE)
    await one.finish(given)
    assert await rig.state(job) == "completed"
