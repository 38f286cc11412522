"""The page that Prometheus reads: complete, well formed, and honest while the store is not."""

import errno
import gc
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard import fuzz_bucket
from tests.support.debian import find_program, missing_reason
from tests.support.running import run
from tests.support.running_server import RunningServer, job, running_server
from windlass.domain.access.rights import Role
from windlass.engine.loops.pools import PoolsLoop
from windlass.messages.sync import Finished
from windlass.server.metrics.catalogue import CATALOGUE, MAX_QUEUES, QUEUES_EVER
from windlass.server.metrics.series import ShownNames
from windlass.server.plugins import server_parts

SERIES = re.compile(r"^(\w+)(?:\{(.*)\})? \S+$")
LABEL = re.compile(r'(\w+)="')
POOL = {"name": "spare", "provider": "command", "options": {
    "launch": ["true"], "list": ["true"], "terminate": ["true"]},
    "max_seconds_per_month": 3600, "min_workers": 2, "max_workers": 2,
    "enabled": False}  # fmt: skip

OPEN_JOBS = 1_000


def _full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


async def busy(server: RunningServer) -> None:
    """Jobs in several states, a retry, a failure, a worker and a pool."""
    worker = await server.worker(slots=4)
    done = await server.submit(job(queue="mail"))
    failed = await server.submit(job(retries=0))
    again = await server.submit(job(retries=2))
    late = await server.submit(job(retries=2))
    await worker.sync(want=4)
    reports = (
        Finished(done, 1, "completed", 0),
        Finished(failed, 1, "failed", 1, failure="execution"),
        Finished(again, 1, "failed", 1, failure="network"),
        Finished(late, 1, "timed_out"),
    )
    await worker.sync(finished=reports)
    await server.submit(job(), job(unblock="manual"))
    await server.submit(job())
    held = await worker.sync(want=1)
    assert held.jobs
    await server.admin.post("/api/v1/queues/batch/pause")
    reply = await server.admin.put("/api/v1/pools/spare", json=POOL)
    assert reply.status_code < 300, reply.text
    await PoolsLoop(server.services.pools).run_once(await server.services.engine.now())
    await server.services.feed.run_once(0)


async def page_of(server: RunningServer) -> str:
    reply = await server.admin.get("/metrics")
    assert reply.status_code == 200
    return reply.text


def series_of(page: str) -> Iterator[tuple[str, set[str]]]:
    """Each series' name and the names of its labels."""
    for line in page.splitlines():
        if not line.startswith("#"):
            found = SERIES.match(line)
            assert found is not None, line
            yield found[1], set(LABEL.findall(found[2] or ""))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    solver = fuzz_bucket.make(tmp_path_factory.mktemp("fuzz"))

    async def scenario() -> str:
        async with running_server(fuzz=(solver,)) as server:
            await busy(server)
            await page_of(server)  # the request itself is counted
            return await page_of(server)

    return run(scenario())


ELSEWHERE = {"windlass_attempts_lost_total": "tests/engine/history"}


def test_every_metric_of_the_catalogue_is_shown_with_its_labels(page: str) -> None:
    shown: dict[str, set[str]] = {}
    for name, labels in series_of(page):
        base = re.sub("_(bucket|count|sum)$", "", name)
        shown.setdefault(base if base != name else name, set()).update(labels - {"le"})
    for metric in CATALOGUE:
        if metric.name not in ELSEWHERE:
            assert shown.get(metric.name) == set(metric.labels), metric.name


def test_fuzzing_is_counted_by_solver(page: str) -> None:
    lines = set(page.splitlines())
    assert {
        'windlass_fuzz_readable{solver="toy"} 1.0',
        'windlass_fuzz_unhealthy_commits{solver="toy"} 1.0',
        'windlass_fuzz_findings{solver="toy",state="open"} 1.0',
        'windlass_fuzz_findings{solver="toy",state="flaky"} 0.0',
        'windlass_fuzz_commits{place="schedule",solver="toy"} 2.0',
        'windlass_fuzz_commits{place="failed",solver="toy"} 1.0',
        'windlass_fuzz_untriaged_inputs{solver="toy"} 0.0',
    } <= lines


def test_every_metric_shown_is_in_the_catalogue(page: str) -> None:
    declared = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    ours = {name for name in declared if not re.search("^process_|_created$", name)}
    of_plugins = (metric for part in server_parts().values() for metric in part.metrics)
    assert ours <= {metric.name for metric in (*CATALOGUE, *of_plugins)}


def test_the_store_is_counted_by_queue_and_state(page: str) -> None:
    lines = set(page.splitlines())
    assert 'windlass_jobs{queue="default",state="blocked"} 1.0' in lines
    assert 'windlass_jobs{queue="default",state="retrying"} 2.0' in lines
    assert 'windlass_jobs{queue="default",state="suspended"} 0.0' in lines
    (depth,) = [line for line in lines if line.startswith('windlass_queue_depth{queue="default"}')]
    assert f'windlass_jobs{{queue="default",state="queued"}} {depth.split()[-1]}' in lines
    assert 'windlass_workers{status="online"} 1.0' in lines
    assert 'windlass_worker_slots{status="online"} 4.0' in lines
    assert 'windlass_pool_budget_seconds{pool="spare"} 3600.0' in lines
    assert 'windlass_pool_wanted_workers{pool="spare"} 2.0' in lines
    assert "windlass_leases 1.0" in lines
    assert "windlass_store_ready 1.0" in lines
    assert "windlass_event_lag_events 0.0" in lines


def test_requests_are_counted_by_route_and_not_by_path(page: str) -> None:
    assert (
        'windlass_http_requests_total{method="POST",route="/api/v1/jobs",status="201"} 6.0' in page
    )
    assert 'route="/api/v1/workers/{worker:int}/sync"' in page
    assert "/api/v1/workers/1/" not in page


def test_paths_that_do_not_exist_make_no_series() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            for number in range(3):
                assert (await server.admin.get(f"/no/{number}")).status_code == 404
            shown = await page_of(server)
            assert "/no/" not in shown
            line = 'windlass_http_requests_total{method="none",route="none",status="404"} 3.0'
            assert line in shown

    run(scenario())


@pytest.mark.skipif(find_program("promtool") is None, reason=missing_reason("promtool") or "")
def test_promtool_finds_nothing_wrong(page: str) -> None:
    command = [find_program("promtool") or "", "check", "metrics"]
    checked = subprocess.run(command, input=page, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_the_collector_does_not_walk_the_open_jobs_that_are_counted() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.services.feed.run_once(0)
            await server.submit(*[job()] * OPEN_JOBS)
            gc.collect()
            before = len(gc.get_objects())
            await server.services.feed.run_once(0)
            gc.collect()
            assert len(gc.get_objects()) - before < OPEN_JOBS / 2

    run(scenario())


def test_a_store_that_takes_no_write_is_shown_as_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running_server(blobs=f"file://{tmp_path}/blobs") as server:
            await server.submit()
            monkeypatch.setattr(os, "fsync", _full)
            lines = (await page_of(server)).splitlines()
            assert "windlass_store_ready 0.0" in lines
            assert 'windlass_queue_depth{queue="default"} 1.0' in lines

    run(scenario())


def test_only_people_who_may_read_the_metrics_get_them() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            assert (await (await server.http(None)).get("/metrics")).status_code == 401
            assert (await (await server.role(Role.VIEWER)).get("/metrics")).status_code == 200
            limited = await server.role(Role.ADMIN, "team")
            assert (await limited.get("/metrics")).status_code == 403

    run(scenario())


def test_the_largest_values_are_kept_and_the_rest_is_added_up() -> None:
    values = {f"q{n}": float(n) for n in range(MAX_QUEUES + 10)}
    names = ShownNames(MAX_QUEUES, QUEUES_EVER)
    kept = names.largest(values)
    assert len(kept) == MAX_QUEUES + 1
    assert sum(kept.values()) == sum(values.values())
    assert kept["other",] == sum(range(10))
    kept = names.largest({**values, "other": 500.0})  # a queue of that name counts too
    assert sum(kept.values()) == sum(values.values()) + 500


def test_names_that_come_and_go_do_not_make_more_and_more_series() -> None:
    names = ShownNames(most=3, ever=5)
    seen: set[tuple[str, ...]] = set()
    for scrape in range(10):
        values = {f"q{scrape}-{n}": 1.0 for n in range(3)}
        kept = names.largest({"steady": 9.0, **values})
        assert kept["steady",] == 9
        assert sum(kept.values()) == 12
        seen |= kept.keys()
    assert len(seen - {("other",)}) == 5
