"""The checker sees pools that are not what the log tells."""

import json

from tests.engine.support.cloud import Sky
from tests.engine.support.rig import Rig
from windlass.domain.rows.events import Event, EventKind
from windlass.engine.verify.check import judge


async def test_planted_contradictions_of_pools_are_found(memory_rig: Rig) -> None:
    sky = Sky(memory_rig)
    await sky.online(2, max_workers=2)
    events, snapshot = await memory_rig.events(), await memory_rig.snapshot()
    assert judge(events, snapshot) == []
    first, second = snapshot.pool_workers

    missing = snapshot._replace(pool_workers=(first,))
    assert [v.invariant for v in judge(events, missing)] == ["S20"]
    gone = snapshot._replace(pool_workers=(first, second._replace(state=6)))
    assert [v.invariant for v in judge(events, gone)] == ["S20"]
    shared = snapshot._replace(pool_workers=(first, second._replace(worker=first.worker)))
    assert [v.invariant for v in judge(events, shared)] == ["S20"]
    homeless = snapshot._replace(pools=())
    assert {v.invariant for v in judge(events, homeless)} == {"S20"}

    fewer = [_allowing(event, 1) for event in events]
    assert [v.invariant for v in judge(fewer, snapshot)] == ["S13"]


def _allowing(event: Event, most: int) -> Event:
    """The event as if the pool might have had so many workers."""
    if event.kind != EventKind.POOL or "most" not in json.loads(event.data or "{}"):
        return event
    return event._replace(data=json.dumps({**json.loads(event.data or "{}"), "most": most}))
