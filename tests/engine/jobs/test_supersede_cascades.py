"""Handing dependents on to the job that took another's place, step by step."""

import pytest

from tests.engine.support.rig import Rig
from windlass.domain.values.errors import Conflict
from windlass.domain.values.ids import JobId


async def test_more_than_a_thousand_dependents_are_revived(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    jobs = (await rig.submit_all(*[{"after": (first,), "args": n} for n in range(1_001)])).ids
    await rig.engine.jobs.cancel([first])
    await rig.engine.jobs.retry(first)
    snapshot = await rig.snapshot()
    facts = {row.facts.id: row.facts for row in snapshot.jobs}
    assert len({facts[JobId(job)].superseded_by for job in jobs} - {None}) == 1_001
    assert len(snapshot.waits) == 1_001
    await agent.finish(await agent.take_one())
    await rig.engine.settled()
    assert len((await rig.snapshot()).ready) == 1_001


async def test_a_dependent_is_not_released_by_a_successor_it_does_not_wait_for_yet(
    rig: Rig,
) -> None:
    """The new job ends before its dependents were told that they wait for it."""
    agent = await rig.agent(slots=1_200)
    first = await rig.submit()
    other = await rig.submit(unblock="manual")
    fields = [{"after_any": (first,), "after": (other,), "args": n} for n in range(1_100)]
    jobs = (await rig.submit_all(*fields)).ids
    await rig.engine.jobs.cancel([first])
    rig.engine.cascades.stop()
    await rig.engine.jobs.retry(first)
    for given in await agent.take(1):
        await agent.finish(given)
    await rig.restart()
    await rig.engine.settled()
    assert set(await rig.states(jobs[0], jobs[-1])) == {"blocked"}


async def test_a_job_that_is_still_being_handed_its_dependents_is_busy(rig: Rig) -> None:
    first = await rig.submit()
    await rig.submit(after=(first,))
    await rig.engine.jobs.cancel([first])
    rig.engine.cascades.stop()
    new = (await rig.engine.jobs.retry(first)).id
    await rig.engine.jobs.cancel([new])
    with pytest.raises(Conflict, match="are still being updated") as refused:
        await rig.engine.jobs.retry(new)
    assert (refused.value.code, refused.value.retry_after_ms) == ("busy", 1_000)
