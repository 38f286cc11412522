"""Deleting ended jobs: what is refused, what is left, and that the log still fits the state."""

import pytest

from tests.engine.support.rig import Rig
from windlass.engine.commands import jobs as commands
from windlass.messages.jobs import DeletedJob


async def test_an_ended_job_is_deleted_and_an_open_one_is_not(rig: Rig) -> None:
    done, waits = await rig.submit(), await rig.submit()
    agent = await rig.agent(slots=1)
    await agent.finish(await agent.take_one())
    first, second, missing = await rig.engine.jobs.delete([done, waits, 999], "ops")
    assert first == DeletedJob(done, True)
    assert (second.applied, second.refusal) == (False, "it has not ended: cancel it first")
    assert missing == DeletedJob(999, False)
    assert [row.facts.id for row in (await rig.snapshot()).jobs] == [waits]
    (event,) = [e for e in await rig.events() if e.reason == "Deleted 1 job"]
    assert event.actor == "ops"


async def test_many_jobs_are_deleted_in_pages(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "PAGE", 2)
    jobs = [await rig.submit() for _ in range(5)]
    await rig.engine.jobs.cancel(jobs[:4])
    wanted = [jobs[3], *jobs, 999]
    answers = await rig.engine.jobs.delete(wanted)
    assert [answer.id for answer in answers] == wanted
    assert [answer.applied for answer in answers] == [True] * 5 + [False] * 2
    assert [row.facts.id for row in (await rig.snapshot()).jobs] == [jobs[4]]


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
