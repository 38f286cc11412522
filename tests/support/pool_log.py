"""What the log tells of a pool: what it asked for, and whether anyone was sent away at work."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from windlass.assembly.stores import open_store
from windlass.domain.lifecycle.states import ACTIVE
from windlass.domain.rows.events import Event, EventKind

HOLDING = frozenset(state.code for state in ACTIVE)


class PoolLog(NamedTuple):
    """`asked`: how many workers at a time. `ended`: (token, why, jobs it held) of each."""

    asked: list[int]
    ended: list[tuple[str, str, int]]
    gone: list[str]


async def read_log(address: str) -> list[Event]:
    """All events of a store that no server works on."""
    store = await open_store(address)
    try:
        return await store.read(lambda tx: tx.log.read(0, 1_000_000))
    finally:
        await store.close()


def pool_log(events: Sequence[Event]) -> PoolLog:
    """Follow leases and workers of pools through the log."""
    found = PoolLog([], [], [])
    workers: dict[str, int] = {}
    holders: dict[int, int] = {}  # job → worker
    for event in events:
        data = json.loads(event.data) if event.data else {}
        if event.kind == EventKind.JOB:
            if event.to in HOLDING:
                holders[event.job] = event.worker
            else:
                holders.pop(event.job, None)
        elif event.kind == EventKind.WORKER and "name" in data:
            workers.setdefault(data["name"], event.worker)
        elif event.kind == EventKind.POOL and "tokens" in data:
            found.asked.append(len(data["tokens"]))
        elif event.kind == EventKind.POOL and data.get("state") == "terminating":
            worker = workers[data["token"]]
            held = sum(holder == worker for holder in holders.values())
            why = (event.reason or "").partition(": ")[2]
            found.ended.append((data["token"], why, held))
        elif event.kind == EventKind.POOL and data.get("state") == "gone":
            found.gone.append(data["token"])
    return found
