"""Jobs whose last condition is met become ready, in terms of the other roles."""

from collections.abc import Mapping

from windlass.domain.rows.records import Freed
from windlass.ports.store.core.places import PlacesWrite


async def free(places: PlacesWrite, met: Mapping[int, int], now: int, young_from: int) -> Freed:
    """Implements `FlowWrite.free` for stores that need no statements of their own."""
    freed = Freed([], [])
    for wait in await places.meet(met):
        young = wait.age_from >= young_from
        due = wait.not_before is None or wait.not_before <= now
        if young and due and not wait.manual and wait.ticket.limit is None:
            freed.ready.append(wait.ticket)
        else:
            freed.others.append(wait)
    await places.add_ready(freed.ready)
    return freed
