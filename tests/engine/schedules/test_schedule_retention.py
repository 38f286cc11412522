"""Old runs and reactions go with the jobs of their time; what is open stays."""

from tests.engine.support.rig import Rig
from tests.engine.support.timetable import JOB, Timetable
from windlass.blobs.memory import MemoryBlobs
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.workflow_state import Details
from windlass.engine.loops.retention import RetentionLoop
from windlass.engine.submit.submission import WorkflowSpec

DAY = 86_400_000


async def test_old_runs_and_reactions_are_removed(rig: Rig) -> None:
    table = Timetable(rig)
    agent = await rig.agent()
    await table.put("0 * * * *", overlap="queue")
    follow = Details(on_end=[{"submit": [JOB]}])
    await rig.engine.submit([JobSpec(task="shell")], WorkflowSpec(name="w", details=follow))
    await agent.finish(await agent.take_one())
    await table.react()
    for hour in ("2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z", "2023-11-15T01:00:00Z"):
        await table.go_to(hour)
        await table.tick()
        for job in await agent.take(1):
            await agent.finish(job)
    retention = RetentionLoop(rig.engine, MemoryBlobs())
    before = await table.states()
    assert before == ["ended", "started", "waiting"]
    assert (await retention.run_once(rig.now)).runs == 0
    await rig.advance(31 * DAY)
    report = await retention.run_once(rig.now)
    assert (report.runs, report.reactions) == (1, 1)
    assert await table.states() == ["started", "waiting"]
