"""Time travel: the past by the log is what was answered then."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.support.calls import call_of
from tests.engine.support.filing import Desk
from tests.engine.support.moves import Move, moves
from tests.engine.support.player import Player
from tests.engine.support.rig import HOUR, MINUTE, Rig
from tests.engine.support.rigs import Rigs
from tests.support.forms import by_form
from windlass.domain.access.rights import Identity, Role
from windlass.domain.config import Config
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.views import JobFilter, JobSort
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.quantities import format_moment
from windlass.engine.loops.retention import RetentionLoop
from windlass.engine.loops.statistics import SeriesLoop
from windlass.messages.jobs import Job
from windlass.operations import past
from windlass.operations.overview import overview
from windlass.operations.past import PastJobs
from windlass.operations.queries import Queries
from windlass.operations.workers import list_workers

ADMIN = Identity(1, "admin", Role.ADMIN)
STRANGER = Identity(2, "stranger", Role.VIEWER, namespaces=("elsewhere",))

# What the log tells of a job; the rest (progress, log, forecasts, timeouts) is not kept.
FIELDS = (
    "id", "namespace", "queue", "task", "state", "attempt", "retry_count", "lost_count", "worker",
    "assigned_at", "started_at", "finished_at", "reason", "exit_code", "failure", "result",
    "quarantined", "supersedes", "superseded_by", "created_at", "submitted_by",
)  # fmt: skip


def told(job: Job) -> dict[str, Any]:
    shown = msgspec.to_builtins(job)
    own = {name: shown[name] for name in FIELDS}
    return own | {"adjustment": shown["priority"]["adjustment"]}


async def live(rig: Rig) -> dict[str, Any]:
    """Returns what is answered now."""
    queries = Queries(rig.engine)
    jobs = await queries.jobs(JobFilter(), None, 1_000)
    running = await queries.jobs(JobFilter(states=(State.RUNNING.code,)), None, 1_000)
    figures = await overview(call_of(rig, ADMIN))
    return {
        "jobs": [told(job) for job in jobs.jobs],
        "running": [job.id for job in running.jobs],
        "workers": [_worker(w) for w in (await list_workers(call_of(rig, ADMIN))).workers],
        "depth": figures.total.now,
    }


async def as_of(rig: Rig, at: int) -> dict[str, Any]:
    """Returns what is answered about a moment."""
    when = format_moment(at)
    reader = PastJobs(rig.engine)

    async def all_jobs(wanted: JobFilter) -> list[Job]:
        found: list[Job] = []
        page = await reader.jobs(wanted, None, 1_000, JobSort.NEWEST, when)
        found += page.jobs
        assert page.next is None
        return found

    jobs = await all_jobs(JobFilter())
    for job in jobs:
        assert told(await reader.job(job.id, ADMIN, when)) == told(job)
    running = await all_jobs(JobFilter(states=(State.RUNNING.code,)))
    figures = await overview(call_of(rig, ADMIN), as_of=when)
    fleet = await list_workers(call_of(rig, ADMIN), when)
    return {
        "jobs": [told(job) for job in jobs],
        "running": [job.id for job in running],
        "workers": [_worker(w) for w in fleet.workers],
        "depth": figures.total.now,
    }


def _worker(worker: Any) -> dict[str, Any]:
    shown = msgspec.to_builtins(worker)
    fields = ("id", "name", "status", "incarnation", "slots", "held", "static", "dynamic")
    return {name: shown[name] for name in fields}


@settings(max_examples=by_form(12, 300), suppress_health_check=list(HealthCheck), deadline=None)
@given(script=st.lists(moves, min_size=15, max_size=40), pace=st.integers(2, 7))
def test_any_moment_is_answered_as_it_was_then(rigs: Rigs, script: list[Move], pace: int) -> None:
    with rigs.open("memory") as rig:
        player = Player(rig)
        seen: list[tuple[int, dict[str, Any]]] = []
        for number, move in enumerate(script):
            rig.run(player.play(move))
            if number % pace == 0:
                seen.append((rig.now, rig.run(live(rig))))
                rig.run(rig.advance(1))  # what comes now is later
                rig.run(SeriesLoop(rig.engine).run_once(rig.now))
        for at, then in seen:
            assert rig.run(as_of(rig, at)) == then


async def test_the_past_on_every_store(rig: Rig) -> None:
    agent = await rig.agent("one")
    first = await rig.submit(retries=1)
    seen = [(rig.now, await live(rig))]
    await rig.advance(MINUTE)
    taken = await agent.take_one()
    await rig.engine.jobs.adjust_priority(first, -5)
    seen.append((rig.now, await live(rig)))
    await rig.advance(MINUTE)
    await agent.fail(taken, None, "broken")
    seen.append((rig.now, await live(rig)))
    await rig.advance(HOUR)
    await SeriesLoop(rig.engine).run_once(rig.now)
    await rig.cleanup()
    await agent.finish(await agent.take_one(), "failed", message="broken")
    await rig.advance(1)
    await rig.engine.jobs.retry(first)
    seen.append((rig.now, await live(rig)))
    await rig.advance(1)
    await rig.engine.workers.remove(agent.id)
    await rig.engine.jobs.cancel([first + 1], "x", "me")
    await rig.advance(5 * MINUTE)
    await SeriesLoop(rig.engine).run_once(rig.now)
    for at, then in seen:
        assert await as_of(rig, at) == then


async def test_a_job_that_is_not_there_yet_or_not_the_callers_is_not_found(rig: Rig) -> None:
    await rig.advance(MINUTE)
    job = await rig.submit()
    reader = PastJobs(rig.engine)
    with pytest.raises(NotFound):
        await reader.job(job, ADMIN, format_moment(rig.now - 1))
    with pytest.raises(NotFound):
        await reader.job(job, STRANGER, format_moment(rig.now))
    assert (await reader.job(job, ADMIN, format_moment(rig.now))).state == "queued"


async def test_what_costs_too_much_or_is_gone_is_refused(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.restart(Config(event_retention_ms=HOUR))
    begun = rig.now
    for _ in range(5):
        await rig.submit()
        await rig.advance(1)
    monkeypatch.setattr(past, "MAX_EVENTS", 3)
    with pytest.raises(InvalidInput, match="at most 3 events"):
        await overview(call_of(rig, ADMIN), as_of=format_moment(rig.now))
    with pytest.raises(InvalidInput, match="newest"):
        await PastJobs(rig.engine).jobs(JobFilter(), None, 9, JobSort.OLDEST, "1m")
    await rig.advance(3 * HOUR)
    await RetentionLoop(rig.engine, Desk(rig).blobs).run_once(rig.now)
    with pytest.raises(InvalidInput, match="where the log begins"):
        await PastJobs(rig.engine).jobs(JobFilter(), None, 9, JobSort.NEWEST, format_moment(begun))
