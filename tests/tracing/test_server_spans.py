"""What a server adds to a trace, and what it does with contexts of strangers."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.collector import Collector, running_collector
from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, job, running_server
from tests.support.waiting import until
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.traces import attempt_trace, parse_trace
from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.rows.events import Event, EventKind, Level
from windlass.domain.rows.records import WorkflowRow
from windlass.domain.values.ids import WorkflowId
from windlass.engine.fleet.lost_workers import recover_orphans
from windlass.engine.history.events import Line
from windlass.messages.sync import Finished
from windlass.server.feed import write_line
from windlass.server.tracing import WorkflowSpans
from windlass.tracing.exporting import Made

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
SECRET = "open-sesame-4711"


async def traced(monkeypatch: pytest.MonkeyPatch, collector: Collector) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")


async def submit(server: RunningServer, parent: str, *jobs: dict[str, Any]) -> int:
    reply = await server.admin.post(
        "/api/v1/jobs", json={"jobs": list(jobs)}, headers={"traceparent": parent}
    )
    assert reply.status_code == 201, reply.text
    return int(reply.json()["ids"][0])


async def trace_of(server: RunningServer, number: int) -> str | None:
    specs = await server.services.engine.store.read(lambda tx: tx.jobs.specs([number]))
    text = specs[number].decode()
    return text.split('"trace":"')[1].split('"')[0] if '"trace"' in text else None


def test_the_trace_of_a_request_becomes_that_of_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_collector() as collector:
            await traced(monkeypatch, collector)
            async with running_server() as server:
                worker = await server.worker()
                args = {"argv": ["curl", SECRET]}
                number = await submit(server, PARENT, job(args=args, name=SECRET))
                assert await trace_of(server, number) == PARENT
                await worker.sync(want=1)
                await worker.sync(finished=(Finished(number, 1, "completed", 0),))
                await server.services.feed.run_once(0)

                async def arrived() -> bool:
                    return len(collector.spans) == 2

                await until("both spans arrive", arrived, 60)
            names = {span.name: span for span in collector.spans}
            assert set(names) == {"POST /api/v1/jobs", "wait default"}
            assert {(s.trace, s.parent) for s in collector.spans} == {(TRACE, SPAN)}
            assert names["wait default"].attributes["windlass.job.state"] == "running"
            assert names["wait default"].attributes["cicd.pipeline.task.name"] == "curl"
            assert SECRET not in str(collector.spans)

    run(scenario())


def test_an_attempt_whose_worker_died_has_a_span_by_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with running_collector() as collector:
            await traced(monkeypatch, collector)
            async with running_server() as server:
                worker = await server.worker()
                number = await submit(server, PARENT, job())
                other = await submit(server, PARENT, job(retries=0))
                await worker.sync(want=2)
                killed = Finished(other, 1, "failed", failure="worker_lost", message="killed")
                await worker.sync(finished=(killed,))  # its process only, and the worker says so
                gone = await server.admin.delete(
                    f"/api/v1/workers/{worker.id}", params={"force": True}
                )
                assert gone.is_success, gone.text
                await server.services.engine.run(recover_orphans)
                await server.services.feed.run_once(0)

                async def arrived() -> bool:
                    return bool(collector.named("process default"))

                await until("the span arrives", arrived, 60)
            (lost,) = collector.named("process default")
            parent = parse_trace(PARENT)
            assert parent is not None
            assert lost.span == attempt_trace(parent, number, 1).span  # a retry links to it
            assert (lost.trace, lost.parent, lost.is_error) == (TRACE, SPAN, True)
            assert lost.attributes["error.type"] == "worker_lost"
            assert lost.attributes["cicd.pipeline.task.run.result"] == "error"
            assert lost.attributes["cicd.pipeline.task.run.id"] == f"{number}.1"

    run(scenario())


def test_a_workflow_has_a_span_for_each_of_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_collector() as collector:
            await traced(monkeypatch, collector)
            async with running_server() as server:
                worker = await server.worker()
                jobs = [job(name="a"), job(name="b", after=["a"])]
                reply = await server.admin.post(
                    "/api/v1/jobs",
                    json={"jobs": jobs, "workflow": {"name": "nightly"}},
                    headers={"traceparent": PARENT},
                )
                first, second = reply.json()["ids"]
                await worker.sync(want=1)
                await worker.sync(finished=(Finished(first, 1, "completed", 0),), want=1)
                failed = Finished(second, 1, "failed", 1, failure="execution")
                await worker.sync(finished=(failed,))
                await server.services.feed.run_once(0)
                workflow = reply.json()["workflow"]
                again = await server.admin.post(f"/api/v1/workflows/{workflow}/retry", json={})
                assert again.is_success, again.text
                taken: list[Any] = []

                async def is_taken() -> bool:
                    taken.extend((await worker.sync(want=1)).jobs)
                    return bool(taken)

                await until("the failed job is tried again", is_taken, 60)
                done = Finished(taken[0].job, taken[0].attempt, "completed", 0)
                await worker.sync(finished=(done,))
                await server.services.feed.run_once(0)

                async def arrived() -> bool:
                    return len(collector.named("RUN nightly")) == 2

                await until("both runs arrive", arrived, 60)
            runs = collector.named("RUN nightly")
            assert {(span.trace, span.parent) for span in runs} == {(TRACE, SPAN)}
            assert [span.attributes["cicd.pipeline.result"] for span in runs] == [
                "failure",
                "success",
            ]
            assert [span.is_error for span in runs] == [True, False]
            about = {
                span.attributes["cicd.pipeline.run.id"] for span in collector.named("wait default")
            }
            assert about == {runs[0].attributes["cicd.pipeline.run.id"]} == {str(workflow)}

    run(scenario())


def test_a_run_of_a_workflow_begins_when_it_was_submitted_or_opened_again() -> None:
    made: list[Made] = []
    tracing: Any = SimpleNamespace(add=made.append)
    spans = WorkflowSpans(tracing)
    row = WorkflowRow(WorkflowId(3), "default", "nightly", WorkflowState.FAILED, 1, 0, 100, 900, ())
    store: Any = SimpleNamespace(read=lambda _: _rows({3: row}))
    moves = [
        (200, WorkflowState.QUEUED, WorkflowState.DISPATCHING),
        (500, WorkflowState.DISPATCHING, WorkflowState.FAILED),
        (700, WorkflowState.FAILED, WorkflowState.DISPATCHING),
        (900, WorkflowState.DISPATCHING, WorkflowState.COMPLETED),
    ]
    events = [
        Event(at, at, EventKind.WORKFLOW, 0, 0, 0, 0, 0, 0, None, None, _moved(source, to))
        for at, source, to in moves
    ]
    trace = parse_trace(PARENT)
    assert trace is not None
    spans.learn(3, trace)
    asyncio.run(spans.prepare(store, events))
    for event in events:
        spans.observe(event, counts=event.seq != 500)  # another server counts the first end
    assert [(one.name, one.start_ms, one.end_ms) for one in made] == [("RUN nightly", 700, 900)]
    for event in events[:2]:
        WorkflowSpans(tracing).observe(event, counts=True)  # it is not traced
    assert len(made) == 1


def _moved(source: WorkflowState, to: WorkflowState) -> str:
    return json.dumps({"workflow": 3, "from": source, "to": to})


async def _rows(found: dict[int, WorkflowRow]) -> dict[int, WorkflowRow]:
    return found


def test_lines_of_the_log_about_traced_jobs_name_their_trace() -> None:
    event = Event(1, 0, EventKind.JOB, 7, 0, 0, 0, 0, State.QUEUED.code, None, None, None)
    with capture_logs() as logged:
        write_line(Line(Level.INFO, "queued", event, ""), {7: TRACE}.get)
        write_line(Line(Level.INFO, "queued", event, ""), {8: TRACE}.get)
        write_line(Line(Level.INFO, "queued", event, ""))
    assert [entry["facts"].get("trace_id") for entry in logged] == [TRACE, None, None]


async def roots(collector: Collector) -> list[str]:
    """Returns the trace of each `send` span without a parent, once there is one."""

    async def arrived() -> bool:
        return any(span.name == "send default" for span in collector.spans)

    await until("a root arrives", arrived, 60)
    return [s.trace for s in collector.spans if s.name == "send default" and not s.parent]


def test_a_server_begins_a_trace_for_jobs_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_collector() as collector:
            await traced(monkeypatch, collector)
            async with running_server() as server:
                reply = await server.admin.post("/api/v1/jobs", json={"jobs": [job(), job()]})
                first, second = reply.json()["ids"]
                own = await trace_of(server, first) or ""
                assert await trace_of(server, second) == own
                assert await roots(collector) == [own.split("-")[1]]

    run(scenario())


def test_jobs_of_schedules_are_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_collector() as collector:
            await traced(monkeypatch, collector)
            async with running_server() as server:
                body = {"name": "nightly", "jobs": {"a": {"run": ["true"]}}}
                for method, path, data in (
                    ("PUT", "templates/nightly", {"body": body}),
                    ("PUT", "schedules/often", {"template": "nightly", "cron": "0 3 * * *"}),
                    ("POST", "schedules/often/run", {}),
                ):
                    reply = await server.admin.request(method, f"/api/v1/{path}", json=data)
                    assert reply.is_success, reply.text
                jobs = (await server.admin.get("/api/v1/jobs")).json()["jobs"]
                own = await trace_of(server, jobs[0]["id"]) or ""
                assert own.split("-")[1] in await roots(collector)

    run(scenario())


def test_a_sampler_that_takes_nothing_leaves_jobs_unrecorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with running_collector() as collector:
            await traced(monkeypatch, collector)
            monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
            monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
            async with running_server() as server:
                number = await server.submit(job())
                own = await trace_of(server, number) or ""
                assert int(own[-2:], 16) % 2 == 0, "the flag for sampled spans"
            assert collector.spans == []

    run(scenario())


def test_a_wrong_context_is_ignored_in_a_header_and_refused_in_a_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with running_collector() as collector:
            await traced(monkeypatch, collector)
            async with running_server() as server:
                for wrong in ("", "nonsense", PARENT + "0" * 5_000, f"00-{'0' * 32}-{SPAN}-01"):
                    number = await submit(server, wrong, job())
                    assert (await trace_of(server, number) or "")[3:35] not in (TRACE, "0" * 32)
                body = {"jobs": [job(trace="nonsense")]}
                refused = await server.admin.post("/api/v1/jobs", json=body)
                assert (refused.status_code, error_of(refused)["field"]) == (422, "jobs[0].trace")

    run(scenario())


def test_without_an_endpoint_nothing_is_kept_and_nothing_is_exported() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            assert server.services.tracing is None
            number = await submit(server, PARENT, job())
            assert await trace_of(server, number) is None

    run(scenario())
