"""Deleting ended jobs: what is refused, what is left, and that the log still fits the state."""

from tests.engine.support.rig import Rig


async def test_an_ended_job_is_deleted_and_an_open_one_is_not(rig: Rig) -> None:
    done, waits = await rig.submit(), await rig.submit()
    agent = await rig.agent(slots=1)
    await agent.finish(await agent.take_one())
    first, second, missing = await rig.engine.jobs.delete([done, waits, 999], "ops")
    assert first == (done, True, None)
    assert (second.applied, second.refusal) == (False, "it has not ended: cancel it first")
    assert missing == (999, False, None)
    assert [row.facts.id for row in (await rig.snapshot()).jobs] == [waits]
    (event,) = [e for e in await rig.events() if e.reason == "Deleted 1 job"]
    assert event.actor == "ops"


async def test_what_others_still_need_is_kept(rig: Rig) -> None:
    first = await rig.submit()
    await rig.submit(after_any=(first,), unblock="manual")
    agent = await rig.agent()
    await agent.finish(await agent.take_one())
    (answer,) = await rig.engine.jobs.delete([first])
    assert answer.refusal == "an open job depends on it, or a name points to it"


async def test_jobs_of_an_open_workflow_are_kept(rig: Rig) -> None:
    submitted = await rig.submit_all({"args": 1}, {"args": 2}, workflow="w")
    agent = await rig.agent(slots=1)
    await agent.finish(await agent.take_one())
    one = submitted.ids[0]
    (answer,) = await rig.engine.jobs.delete([one])
    assert answer.refusal == "its workflow has not ended"
    await agent.finish(await agent.take_one())
    assert all(a.applied for a in await rig.engine.jobs.delete(submitted.ids))
    assert not (await rig.snapshot()).jobs
