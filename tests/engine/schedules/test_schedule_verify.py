"""S17 is checked: a slot that ran twice is found, in the log and in the rows."""

from tests.engine.support.rig import Rig
from tests.engine.support.timetable import Timetable
from windlass.domain.rows.events import EventKind
from windlass.engine.verify.check import judge


async def test_a_slot_that_ran_twice_is_found(memory_rig: Rig) -> None:
    table = Timetable(memory_rig)
    await table.put("0 * * * *", overlap="allow")
    for hour in ("2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z"):
        await table.go_to(hour)
        await table.tick()
    events, snapshot = await memory_rig.events(), await memory_rig.snapshot()
    assert judge(events, snapshot) == []
    starts = [e for e in events if e.kind == EventKind.SCHEDULE and "started" in (e.reason or "")]
    again = [*events, starts[0]._replace(seq=events[-1].seq + 1)]
    assert {v.invariant for v in judge(again, snapshot)} == {"S17"}
    first, second = snapshot.schedule_runs
    twice = snapshot._replace(schedule_runs=(first, second._replace(slot=first.slot)))
    assert "S17" in {v.invariant for v in judge(events, twice)}
    other = snapshot._replace(schedule_runs=(first._replace(workflow=99), second))
    assert "S17" in {v.invariant for v in judge(events, other)}
    (row,) = snapshot.schedules
    back = snapshot._replace(schedules=(row._replace(last_slot=first.slot or 0),))
    assert "S17" in {v.invariant for v in judge(events, back)}
