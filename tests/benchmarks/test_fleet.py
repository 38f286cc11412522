"""The benchmark of the fleet measures what it says: jobs are counted, and losses are errors."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from benchmarks.fleet import embedded, functions, over_http, plain_processes
from benchmarks.fleet.beacon import Beacon
from benchmarks.fleet.crowd import crowd
from benchmarks.fleet.processes import Server, server, worker
from benchmarks.fleet.usage import cpu_seconds, peak_memory_mb
from benchmarks.measure import Lap
from benchmarks.peers import dramatiq_peer, huey_peer
from benchmarks.peers.draining import drained, measured
from benchmarks.peers.redis_server import missing, redis_server
from windlass.client.client import AsyncClient
from windlass.domain.job.job import JobSpec
from windlass.messages.jobs import Job

JOBS = 40
LIMIT_SECONDS = 60

# One server and one Redis serve the tests of this file, which therefore stay together.
pytestmark = pytest.mark.xdist_group("fleet")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("fleet") / "server") as started:
        yield started


@pytest.fixture(scope="module")
def busy(running: Server) -> Iterator[Server]:
    with worker(running, "w1", 8):
        yield running


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


def test_every_job_of_a_drained_queue_is_counted(busy: Server) -> None:
    submitted, done = over_http.drain(busy, [functions.noop.job(n) for n in range(JOBS)])
    assert (submitted.jobs, done.jobs) == (JOBS, JOBS)
    with busy.client() as client:
        assert len(client.jobs(JOBS, state="completed", task="python")) == JOBS


def test_a_job_that_fails_spoils_the_figure(busy: Server) -> None:
    jobs = [JobSpec(task="shell", args={"argv": ["/bin/false"]})]
    with pytest.raises(RuntimeError, match="1 of 1 jobs did not complete"):
        over_http.drain(busy, jobs)


def test_a_started_job_says_so_after_it_was_submitted(busy: Server, tmp_path: Path) -> None:
    with Beacon(tmp_path) as beacon, busy.client() as client:
        took = beacon.latency(lambda address, n: client.submit(functions.start, address, n))
    assert took > 0


def test_idle_workers_are_given_what_is_submitted(tmp_path: Path) -> None:
    async def submit_among(idle: Server) -> Job:
        async with crowd(idle, 3) as members, AsyncClient(idle.address, idle.token) as client:
            handle = await client.submit("shell", argv=["/bin/true"])
            await members.received(handle.id)
            return await handle.wait(LIMIT_SECONDS)

    with server(tmp_path / "idle") as idle:
        job = asyncio.run(submit_among(idle))
        assert (job.state, job.attempt) == ("completed", 1)
        assert cpu_seconds(idle.pid) > 0
        assert peak_memory_mb(idle.pid) > 1


def test_an_embedded_client_drains_what_it_was_given(tmp_path: Path) -> None:
    jobs = [functions.noop.job(n) for n in range(JOBS)]
    submitted, _ = embedded.drain(tmp_path / "jobs.db", jobs, 2)
    assert submitted.jobs == JOBS


def test_the_clock_of_a_window_starts_when_a_twentieth_is_done() -> None:
    assert embedded.window([1_000 * second for second in reversed(range(40))]) == Lap(37, 37.0)


def test_plain_processes_are_all_run() -> None:
    assert plain_processes.run(jobs=5, at_once=2).jobs == 5


def test_dramatiq_drains_its_queue(redis_url: str, tmp_path: Path) -> None:
    assert dramatiq_peer.run(redis_url, tmp_path, JOBS).jobs <= JOBS
    with redis.Redis.from_url(redis_url) as connection:
        assert connection.hlen(dramatiq_peer.MESSAGES) == 0


def test_huey_drains_redis_and_starts_what_comes_later(redis_url: str, tmp_path: Path) -> None:
    assert huey_peer.run(redis_url, tmp_path, JOBS).jobs <= JOBS
    with huey_peer.consumer(redis_url, tmp_path) as submit, Beacon(tmp_path) as beacon:
        assert beacon.latency(submit) > 0


def test_huey_drains_sqlite(tmp_path: Path) -> None:
    assert huey_peer.run(str(tmp_path / "huey.db"), tmp_path, JOBS).jobs <= JOBS


def test_a_lap_counts_the_jobs_left_when_its_clock_starts(tmp_path: Path) -> None:
    left = iter([100, 98, 90, 40, 0])
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    assert measured(drained(command, tmp_path / "log", {}, 100, lambda: next(left))).jobs == 90


def test_a_peer_that_was_done_before_the_clock_gives_no_figure() -> None:
    with pytest.raises(RuntimeError, match="more jobs"):
        measured(Lap(0, 1.0))


def test_workers_that_end_early_are_an_error_not_a_figure(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "pass"]
    with pytest.raises(RuntimeError, match="left 7 jobs undone"):
        drained(command, tmp_path / "log", {}, 10, lambda: 7)
