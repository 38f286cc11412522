"""A real Prometheus scrapes a real server: healthy, nothing fires; then each fault is staged."""

import asyncio
import errno
import os
import shutil
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import fuzz_bucket
from tests.deploy.files import ALERTS, alerts, queries
from tests.support.debian import find_program, missing_reason
from tests.support.prometheus import Prometheus, running_prometheus, shortened
from tests.support.running import run
from tests.support.running_server import FakeWorker, RunningServer, job, running_server
from tests.support.waiting import until
from windlass.domain.access.rights import Role
from windlass.domain.config import Config
from windlass.domain.pools.pools import CostRow
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import StoreUnavailable
from windlass.domain.values.quantities import month_of
from windlass.engine.loops.planning import CronLoop
from windlass.engine.loops.statistics import StatisticsLoop
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import Finished
from windlass.ports.loop_time import pass_time
from windlass_fuzz.state.documents import BadRuns, Health
from windlass_fuzz.state.open import open_pipeline
from windlass_fuzz.statistics.history import History, RunPoint, history_file

# What the rules say in minutes happens here in seconds, and some counts are smaller. A server is
# down only if it does not answer for a while: on a busy machine one scrape may take too long.
SHORTER = {
    "[10m]": "[4s]", "[15m]": "[4s]", "[30m]": "[4s]", "[1h]": "[10s]",
    "for: 15m": "for: 0s", "for: 5m": "for: 0s", "for: 2m": "for: 5s", "for: 1m": "for: 0s",
    "_seconds) > 900": "_seconds) > 3", "_seconds) > 3600": "_seconds) > 4",
    "120 + 5 *": "2 + 5 *", "> 10000": "> 400", "[4s]) > 100": "[4s]) > 10",
}  # fmt: skip

CONFIG = Config(
    heartbeat_interval_ms=1_500,  # late ones are `unhealthy`, even on probation
    heartbeat_timeout_ms=8_200,
    term_grace_ms=100,
    health_interval_ms=200,
    cleanup_interval_ms=200,
    cron_interval_ms=200,
    statistics_interval_ms=200,
    drain_limit_ms=200,
)
POOL = {"provider": "command", "max_seconds_per_month": 1, "options": {
    "launch": ["true"], "list": ["true"], "terminate": ["true"]}}  # fmt: skip
MAX_LENGTH = 300  # seconds to wait for an alert

WHILE_WORKERS_FAIL = {
    "WindlassHighRetryRate", "WindlassHighFailureRate", "WindlassQueueGrowing",
    "WindlassQueueStuck", "WindlassOldestJobTooOld", "WindlassStateAnomaly", "WindlassLogLost",
    "WindlassPoolOverBudget", "WindlassPoolCannotStart", "WindlassStoreNotReady",
    "WindlassServerErrors", "WindlassLoopStopped", "WindlassLoopFailing",
    "WindlassWorkerOnProbation",
}  # fmt: skip
OF_FUZZING = {
    "WindlassFuzzingUnhealthy", "WindlassFuzzingStopped", "WindlassFuzzingUnreadable",
}  # fmt: skip
WITHOUT_WORKERS = {"WindlassHighOrphanRate", "WindlassWorkersLost", "WindlassNoLiveWorkers"}


def _full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


async def _fails(*given: object) -> Any:
    raise StoreUnavailable("the disk is gone", outcome_unknown=False)


async def _breaks(*given: object) -> Any:
    raise RuntimeError("a bug")


class Hang:
    """What a loop hangs in, until it is over."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def __call__(self, *given: object) -> Any:
        await self.over.wait()


async def keep_working(server: RunningServer, worker: FakeWorker, idle: FakeWorker) -> None:
    """Completes jobs, one after another, as a healthy fleet does."""
    while True:
        await idle.sync()
        number = await server.submit(job(queue="fine"))
        await worker.sync(want=1)
        await worker.sync(finished=(Finished(number, 1, "completed", 0),))
        await pass_time(0.05)


async def suspect(server: RunningServer, sick: FakeWorker) -> None:
    """Lets one worker fail jobs of a kind that others complete; one of theirs may be left."""
    for _ in range(15):
        await server.submit(job(queue="fine", retries=0))
        given = (await sick.sync(want=1)).jobs  # none once it is on probation
        await sick.sync(
            finished=tuple(
                Finished(one.job, one.attempt, "failed", 1, failure="resource") for one in given
            )
        )


async def keep_failing(server: RunningServer, worker: FakeWorker, *idle: FakeWorker) -> None:
    """Fails jobs: some are retried, some fail for good; and submits more than anybody runs."""
    while True:
        for one in idle:
            await one.sync()
        await server.submit(job(queue="bad", retries=3), job(queue="bad", retries=0))
        taken = (await worker.sync(want=2)).jobs
        await worker.sync(
            finished=tuple(
                Finished(one.job, one.attempt, "failed", 1, failure="execution") for one in taken
            )
        )
        await server.submit(*[job(queue="long", requires=["never==1"])] * 10)
        await server.admin.get("/api/v1/jobs/count")
        await pass_time(0.05)


async def stage_fuzzing(folder: Path) -> None:
    """A solver that is unhealthy and was last fuzzed long ago, and one with a damaged file."""
    pipeline = await open_pipeline(str(folder / "sick" / "bucket"), "toy")
    bad = BadRuns(2, "nothing ran", 0)
    await pipeline.health.update(lambda _: Health(commits={"d" * 40: bad}))
    old = RunPoint(at_ms=1, commit="d" * 40, engine="afl", target="toy")
    await history_file(pipeline).update(lambda _: History(runs=[old]))
    await pipeline.bucket.close()
    for state in (folder / "damaged").rglob("build-queue.json"):
        state.write_text("{broken")


def solvers_in(folder: Path) -> tuple[str, ...]:
    """Two solvers in good health."""
    found = []
    for name in ("sick", "damaged"):
        (folder / name).mkdir()
        file = Path(fuzz_bucket.make(folder / name, alarm=False))
        if name == "damaged":
            file.write_text(file.read_text().replace("name: toy", "name: other", 1))
            shutil.move(
                folder / name / "bucket/solvers/toy", folder / name / "bucket/solvers/other"
            )
        found.append(str(file))
    return tuple(found)


async def heal_fuzzing(folder: Path, now: int) -> None:
    """Undoes `stage_fuzzing`: the commit is well, was fuzzed just now, and the file is whole."""
    pipeline = await open_pipeline(str(folder / "sick" / "bucket"), "toy")
    await pipeline.health.update(lambda _: Health())
    fresh = RunPoint(at_ms=now, commit="d" * 40, engine="afl", target="toy")
    await history_file(pipeline).update(lambda _: History(runs=[fresh]))
    await pipeline.bucket.close()
    for state in (folder / "damaged").rglob("build-queue.json"):
        state.write_text("{}")


async def set_failed_launches(work: Work, count: int) -> None:
    row = await work.tx.pools.lock_name("spent")
    assert row is not None
    await work.tx.pools.update(row._replace(failures=count))


async def stage(server: RunningServer, patched: pytest.MonkeyPatch, hang: Hang) -> None:
    """Breaks the store, a loop, another one, a route and a pool; records two rare events."""
    patched.setattr(os, "fsync", _full)
    patched.setattr(CronLoop, "run_once", hang)
    patched.setattr(StatisticsLoop, "run_once", _fails)
    patched.setattr(server.services.queries, "count_jobs", _breaks)
    reply = await server.admin.put("/api/v1/pools/spent", json=POOL)
    assert reply.status_code < 300, reply.text

    async def step(work: Work) -> None:
        work.say(EventKind.WATCHDOG, "Workflow 1 counts wrong", data={"workflow": 1})
        work.say(EventKind.LOG, "The log is lost", job=1, data={"attempt": 1, "state": "lost"})
        cost = CostRow("spent", month_of(work.now), "default", "default", 5_000, 0)
        await work.tx.pools.charge([cost])
        await set_failed_launches(work, 3)

    await server.services.engine.run(step)


async def heal(server: RunningServer) -> None:
    """Gives the pool a budget and lets it start machines; cancels the jobs that nobody can run."""
    more = {**POOL, "max_seconds_per_month": 3_600}
    assert (await server.admin.put("/api/v1/pools/spent", json=more)).is_success
    await server.services.engine.run(partial(set_failed_launches, count=0))
    after: int | None = 0
    while after is not None:
        part = {"action": "cancel", "where": {"state": ["queued", "retrying"]}, "after": after}
        reply = await server.admin.post("/api/v1/jobs/bulk", json=part)
        assert reply.is_success, reply.text
        after = reply.json()["next"]


async def until_clear(prometheus: Prometheus) -> None:
    """Waits until no alert fires any more."""
    firing: set[str] = set()

    async def all_clear() -> bool:
        firing.clear()
        firing.update(await prometheus.firing())
        return not firing

    try:
        await until("all are over", all_clear, MAX_LENGTH)
    finally:
        assert sorted(firing) == []


async def until_fired(prometheus: Prometheus, wanted: set[str]) -> None:
    """Waits until each of these alerts has fired."""
    fired: set[str] = set()

    async def all_fired() -> bool:
        fired.update(await prometheus.firing())
        return wanted <= fired

    try:
        await until("all fire", all_fired, MAX_LENGTH)
    finally:
        assert sorted(wanted - fired) == []


async def stay_healthy(
    server: RunningServer, prometheus: Prometheus, worker: FakeWorker, idle: FakeWorker
) -> None:
    """Works long enough for every rule to be evaluated over its whole range."""
    working = asyncio.create_task(keep_working(server, worker, idle))
    done = "sum(windlass_jobs_completed_total) and on () count_over_time(up[6s]) >= 20"

    async def has_worked() -> bool:
        return (await prometheus.value(done) or 0) > 10

    await until("jobs are completed and counted", has_worked, MAX_LENGTH)
    working.cancel()
    assert await prometheus.unhealthy_rules() == []
    assert await prometheus.fired("1m") == set()
    for where, query in queries().items():
        asked = query.replace("$__rate_interval", "4s").replace("$queue", ".*")
        assert await prometheus.problem_of(asked) is None, where


def test_every_alert_is_staged() -> None:
    staged = (
        WHILE_WORKERS_FAIL
        | OF_FUZZING
        | WITHOUT_WORKERS
        | {"WindlassEventLag", "WindlassServerDown"}
    )
    assert staged == set(alerts())


@pytest.mark.skipif(find_program("prometheus") is None, reason=missing_reason("promtool") or "")
def test_nothing_fires_in_a_healthy_run_and_each_alert_until_its_fault_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                running_server(
                    config=CONFIG, blobs=f"file://{tmp_path}/blobs", fuzz=solvers_in(tmp_path)
                )
            )
            target = server.address.removeprefix("http://")
            rules = shortened(ALERTS.read_text(), SHORTER)
            token = await server.token(Role.VIEWER)
            prometheus = await stack.enter_async_context(
                running_prometheus(tmp_path, target, token, rules)
            )
            worker, other = await server.worker("w1"), await server.worker("w2")
            await stay_healthy(server, prometheus, worker, other)
            await stage_fuzzing(tmp_path)
            hang = Hang()
            broken = stack.enter_context(monkeypatch.context())
            await stage(server, broken, hang)
            sick = await server.worker("w0")
            await suspect(server, sick)
            failing = asyncio.create_task(keep_failing(server, worker, other, sick))
            await until_fired(prometheus, WHILE_WORKERS_FAIL | OF_FUZZING)
            assert failing.cancel()
            await server.submit(job(), job())
            await worker.sync(want=1)
            await other.sync(want=1)
            await until_fired(prometheus, WITHOUT_WORKERS)
            with monkeypatch.context() as patched:
                patched.setattr(server.services.feed, "run_once", _fails)
                await server.submit(*[job()] * 500)
                await until_fired(prometheus, {"WindlassEventLag"})
            broken.undo()
            hang.over.set()
            await heal(server)
            await heal_fuzzing(tmp_path, server.services.clock.now_ms())
            fresh = await server.worker("w3"), await server.worker("w4")
            working = asyncio.create_task(keep_working(server, *fresh))
            await until_clear(prometheus)
            assert working.cancel()
            await server.serving.stop()
            await until_fired(prometheus, {"WindlassServerDown"})

    run(scenario())
