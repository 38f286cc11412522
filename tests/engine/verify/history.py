"""A healthy history made by the real engine on the memory store, for bugs to be planted in."""

from functools import cache
from typing import NamedTuple

from tests.engine.support.agent import Agent
from tests.support.running import run
from windlass.domain.config import Config
from windlass.domain.job.forms import Concurrency
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.events import Event
from windlass.engine.engine import Engine
from windlass.engine.submit.submission import WorkflowSpec
from windlass.engine.verify.check import verify
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sqlite.memory import MemoryStore

START_MS = 1_700_000_000_000


class StillClock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    async def sleep_ms(self, duration_ms: int) -> None:
        self.ms += duration_ms


class NoChance:
    """Chance that never changes anything."""

    def fraction(self) -> float:
        return 0.0


class Jobs(NamedTuple):
    """The jobs of the history, by what they are there for."""

    plain: int  # completed
    first: int  # of a workflow: failed, and was forgiven
    second: int  # waits for `first`; waits again since that was retried
    newer: int  # took the place of `first`, is queued
    limited: int  # runs, under a limit of 1
    parked: int  # waits for that limit
    failed: int  # failed once, backs off
    keyed: int  # queued, with a key
    canceled: int  # told to stop, not stopped yet
    gpu: int  # needs what the worker has


class History(NamedTuple):
    """The log, the state it led to, and which job is which."""

    events: tuple[Event, ...]
    snapshot: Snapshot
    jobs: Jobs


@cache
def healthy() -> History:
    """The history; it is the same for all tests."""
    return run(_make())


async def _make() -> History:
    clock = StillClock()
    store = MemoryStore(clock)
    engine = Engine(store, Config(), NoChance())
    await engine.start()
    agent = Agent(engine, "worker-1")
    await agent.enrol(slots=6, metadata={"gpu": True})
    jobs = await _live(engine, agent, clock)
    await engine.close()
    assert await verify(store) == []
    events = await store.read(lambda tx: tx.log.read(0, 1_000))
    return History(tuple(events), await store.snapshot(), jobs)


async def _live(engine: Engine, agent: Agent, clock: StillClock) -> Jobs:
    plain = await _submit(engine, JobSpec(task="a", priority=3))
    await agent.finish(await agent.take_one())
    flow = await engine.submit(
        [
            JobSpec(task="a", name="first", allow_failure=True),
            JobSpec(task="a", name="second", after=("first",)),
        ],
        WorkflowSpec(name="flow"),
    )
    first, second = flow.ids
    await agent.fail(await agent.take_one(), FailureClass.EXECUTION)
    one = Concurrency("licence", 1)
    limited = await _submit(engine, JobSpec(task="b", concurrency=one, priority=100))
    parked = await _submit(engine, JobSpec(task="b", concurrency=one))
    await agent.take_one()
    failed = await _submit(engine, JobSpec(task="b", priority=100))
    await agent.fail(await agent.take_one(), FailureClass.NETWORK)
    canceled = await _submit(engine, JobSpec(task="b", priority=100))
    await agent.take_one()
    await engine.jobs.cancel([canceled])
    gpu = await _submit(engine, JobSpec(task="b", requires=("gpu == true",), priority=100))
    await agent.take_one()
    keyed = await _submit(engine, JobSpec(task="a", key="k", queue="batch"))
    await engine.queues.pause("batch")
    await engine.jobs.adjust_priority(keyed, 5)
    clock.ms += 1_000
    newer = (await engine.jobs.retry(first)).id
    return Jobs(plain, first, second, newer, limited, parked, failed, keyed, canceled, gpu)


async def _submit(engine: Engine, spec: JobSpec) -> int:
    return (await engine.submit([spec])).ids[0]
