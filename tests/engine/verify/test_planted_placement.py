"""S13 beyond keys and slots: for each rule a history in which it is broken is found out."""

from functools import cache
from typing import Any, NamedTuple

import pytest

from tests.engine.support.agent import Agent
from tests.engine.verify.history import NoChance, StillClock
from tests.support.running import run
from tests.support.specs import spec_of
from windlass.domain.config import Config
from windlass.domain.lifecycle.states import State
from windlass.domain.matching.shapes import Rate
from windlass.domain.rows.events import Event, EventKind
from windlass.engine.engine import Engine
from windlass.engine.verify.check import judge, verify
from windlass.messages.workers import QueueLimits
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sqlite.memory import MemoryStore

ASSIGNED = State.ASSIGNED.code


class Story(NamedTuple):
    """Pairs of alike jobs, by what they need: one of each runs, its twin may not."""

    events: tuple[Event, ...]
    snapshot: Snapshot
    pairs: dict[str, tuple[int, int]]


KINDS: dict[str, dict[str, Any]] = {
    "resources": {"resources": {"cpus": 3}},
    "apart": {"apart": "db"},
    "rate": {"rate": Rate("api", 1, 60_000)},
    "queue": {"queue": "narrow"},
    "worker": {"queue": "thin"},
}


@cache
def story() -> Story:
    return run(_make())


async def _make() -> Story:
    store = MemoryStore(StillClock())
    engine = Engine(store, Config(), NoChance())
    await engine.start()
    agent = Agent(engine, "worker-1")
    await agent.enrol(slots=20, metadata={"system:cpus": 5})
    await engine.queues.set_limits("narrow", QueueLimits(max_running=1))
    await engine.queues.set_limits("thin", QueueLimits(max_per_worker=1))
    pairs = {}
    for name, fields in KINDS.items():
        submitted = await engine.submit([spec_of(task=name, **fields) for _ in range(2)])
        pairs[name] = submitted.ids[0], submitted.ids[1]
    given = {job.job for job in await agent.take(20)}
    assert given == {first for first, _ in pairs.values()}
    await engine.close()
    assert await verify(store) == []
    events = await store.read(lambda tx: tx.log.read(0, 1_000))
    return Story(tuple(events), await store.snapshot(), pairs)


@pytest.mark.parametrize("name", KINDS)
def test_a_twin_that_is_given_out_as_well_is_found(name: str) -> None:
    told = story()
    first, second = told.pairs[name]
    given = next(e for e in told.events if e.job == first and e.to == ASSIGNED)
    twin = given._replace(seq=told.events[-1].seq + 1, job=second)
    found = judge([*told.events, twin], told.snapshot)
    assert [v.job for v in found if v.invariant == "S13"] == [second]


def test_limits_that_the_log_does_not_tell_are_found() -> None:
    told = story()
    silent = [e for e in told.events if e.kind != EventKind.QUEUE]
    found = judge(silent, told.snapshot)
    assert {v.invariant for v in found} == {"S20"}


def test_a_limit_that_counts_wrong_is_found() -> None:
    told = story()
    limits = tuple(row._replace(leased=row.leased + 1) for row in told.snapshot.limits)
    found = judge(told.events, told.snapshot._replace(limits=limits))
    assert {v.invariant for v in found} == {"S19"}
