"""What operators and their tools ask: health, metrics, events, verification."""

import json
import time
from pathlib import Path
from typing import Any

import httpx

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, job, running_server
from windlass.engine.transaction.effects import Metrics
from windlass.messages.sync import Finished
from windlass.server.metrics import Meters

METRICS = (
    'windlass_queue_depth{queue="default"} 1.0',
    'windlass_assignments_total{result="success"} 1.0',
    'windlass_assignments_total{result="failure"}',
    "windlass_retries_total 0.0",
    "windlass_timeouts_total 0.0",
    "windlass_orphans_total 0.0",
    "windlass_worker_failures_total 0.0",
    'windlass_loop_last_run_seconds{loop="health"}',
    "windlass_db_pool_open",
    "windlass_db_pool_idle",
    "windlass_db_pool_in_use",
    "windlass_db_pool_waits_total",
    "windlass_job_wait_seconds_count",
    "windlass_job_run_seconds_count",
)


async def _one_done_one_waiting(server: RunningServer) -> int:
    worker = await server.worker()
    number = await server.submit()
    await worker.sync(want=1)
    await worker.sync(finished=(Finished(number, 1, "completed", 0),))
    await server.submit()
    return number


async def _events(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    reply = await client.get("/api/v1/events", params={"follow": "false", **query})
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    lines = reply.text.splitlines()
    found = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data:")]
    ids = [int(line.removeprefix("id: ")) for line in lines if line.startswith("id:")]
    assert ids == [event["seq"] for event in found]
    return found


def test_health_needs_no_token() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            client = await server.http(None)
            for path in ("/healthz", "/readyz"):
                reply = await client.get(path)
                assert (reply.status_code, reply.json()) == (200, {"status": "ok"})

    run(scenario())


def test_the_metrics_have_their_names() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await _one_done_one_waiting(server)
            await server.services.feed.run_once(0)
            reply = await server.admin.get("/metrics")
            assert reply.headers["Content-Type"].startswith("text/plain")
            for metric in METRICS:
                assert metric in reply.text, metric

    run(scenario())


def test_events_come_from_any_number_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server(f"sqlite://{tmp_path}/windlass.db") as server:
            number = await _one_done_one_waiting(server)
            everything = await _events(server.admin)
            assert [e["seq"] for e in everything] == sorted(e["seq"] for e in everything)
            middle = everything[2]["seq"]
            assert await _events(server.admin, after=middle) == everything[3:]
            resumed = await server.admin.get(
                "/api/v1/events?follow=false", headers={"Last-Event-ID": str(middle)}
            )
            assert f"id: {middle}\r\n" not in resumed.text
            assert f"id: {everything[3]['seq']}\r\n" in resumed.text
            of_job = (await server.admin.get(f"/api/v1/jobs/{number}/events")).json()["events"]
            assert of_job == [event for event in everything if event["job"] == number]
            assert [event["to"] for event in of_job][-1] == "completed"

    run(scenario())


def test_followed_events_include_those_to_come() -> None:
    async def scenario() -> None:
        async with (
            running_server() as server,
            server.admin.stream("GET", "/api/v1/events") as reply,
        ):
            number = await server.submit(job(name="later"))
            async for line in reply.aiter_lines():
                if line.startswith("data:") and '"kind":"job"' in line:
                    break
            assert json.loads(line.removeprefix("data: "))["job"] == number

    run(scenario())


def test_verify_finds_nothing_wrong(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server(f"sqlite://{tmp_path}/windlass.db") as server:
            await _one_done_one_waiting(server)
            reply = await server.admin.post("/api/v1/verify")
            assert (reply.status_code, reply.json()) == (200, {"violations": []})

    run(scenario())


def test_events_can_be_filtered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server(f"sqlite://{tmp_path}/windlass.db") as server:
            number = await _one_done_one_waiting(server)
            everything = await _events(server.admin)
            jobs = [e for e in everything if e["kind"] == "job"]
            assert await _events(server.admin, kind=["job"]) == jobs
            assert await _events(server.admin, kind=["job", "worker"], last=2) == jobs[-2:]
            of_job = [e for e in jobs if e["job"] == number]
            assert await _events(server.admin, job=number) == of_job
            assert await _events(server.admin, state="completed") == of_job[-1:]
            of_worker = [e for e in everything if e["worker"]]
            assert await _events(server.admin, worker="w1") == of_worker
            assert "Assigned to worker w1" in of_worker[1]["line"]
            assert await _events(server.admin, since="1h") == everything
            assert await _events(server.admin, since="2999-01-01T00:00:00Z") == []
            for wrong, field in (("kind=jobs", "kind"), ("since=noon", "since")):
                reply = await server.admin.get(f"/api/v1/events?{wrong}")
                assert (reply.status_code, error_of(reply)["field"]) == (422, field)
            assert (await server.admin.get("/api/v1/events?worker=w9")).status_code == 404

    run(scenario())


def test_counters_begin_with_the_server_and_not_with_the_first_scrape() -> None:
    meters = Meters()
    began = time.time()  # noqa: TID251 - the library reads this clock
    while time.time() == began:  # noqa: TID251
        pass
    lines = meters.render(Metrics(), None).decode().splitlines()
    created = [line for line in lines if line.startswith("windlass_assignments_created{")]
    assert len(created) == 2
    assert all(float(line.split()[-1]) <= began for line in created)
