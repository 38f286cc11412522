"""One trace from the client through server and worker to a child job, across real processes."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.support.collector import Collector, running_collector
from tests.support.fleet import Fleet
from tests.support.forms import LONG
from tests.support.loopback import free_port
from tests.support.running import run
from tests.support.waiting import until
from windlass.client.client import AsyncClient
from windlass.messages.jobs import Job

MAX_LENGTH = 30
SECRET = "open-sesame-4711"
FUNCTIONS = """
import os
import windlass
from opentelemetry import trace

@windlass.task(retries=1, backoff={"initial": "10ms"})
def child(word):
    if windlass.current().attempt == 1:
        raise ValueError(word)

@windlass.task
def parent(word):
    with trace.get_tracer("mine").start_as_current_span("my work"):
        windlass.current().submit(child, word)
    return os.environ["TRACEPARENT"]
"""
VARIABLES = {
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
}
PASSED_ON = ("--env", "OTEL_EXPORTER_OTLP_ENDPOINT", "--env", "OTEL_BSP_SCHEDULE_DELAY")


def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str) -> Fleet:
    """A fleet whose processes export to this endpoint, with a module of functions."""
    (tmp_path / "traced_jobs.py").write_text(FUNCTIONS)
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    monkeypatch.setenv("PYTHONPATH", paths)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return Fleet(tmp_path, f"sqlite://{tmp_path}/windlass.db")


async def submit(fleet: Fleet, *words: str) -> int:
    code, said = await fleet.run("submit", "--json", *words)
    assert code == 0, fleet.tails()
    return int(json.loads(said)["id"])


async def finish(fleet: Fleet, job: int) -> Job:
    client = AsyncClient(fleet.address, fleet.token)
    try:
        return await client.service.wait(job, MAX_LENGTH)
    finally:
        await client.close()


def test_one_trace_leads_from_the_client_to_the_child_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running_collector() as collector:
            fleet = prepare(tmp_path, monkeypatch, collector.address)
            await fleet.start_servers()
            await fleet.start_worker("worker-1", *PASSED_ON)
            try:
                args = json.dumps({"function": "traced_jobs:parent", "args": [SECRET]})
                job = await submit(fleet, "--task", "python", "--args", args)
                shown = await finish(fleet, job)
                assert shown.state == "completed", fleet.tails()
                await until("all spans arrive", lambda: arrived(collector), MAX_LENGTH)
            except AssertionError as error:
                raise AssertionError(f"{error}: {names(collector)} {fleet.tails()}") from None
            finally:
                await fleet.stop()
            check(collector, job, shown)

    run(scenario())


async def arrived(collector: Collector) -> bool:
    """Whether a retried child has ended."""
    return len(collector.named("process default")) >= 3 and bool(collector.named("my work"))


def names(collector: Collector) -> list[tuple[str, str]]:
    return sorted((span.service, span.name) for span in collector.spans)


def check(collector: Collector, job: int, shown: Job) -> None:
    """Compares the spans with what happened."""
    (sent,) = collector.named("send default")
    spans = [span for span in collector.spans if span.trace == sent.trace]
    (submitted,) = [span for span in spans if span.name == "POST /api/v1/jobs"]
    attempts = [span for span in spans if span.name == "process default"]
    parent = next(s for s in attempts if s.attributes["messaging.message.id"] == str(job))
    (mine,) = [span for span in spans if span.name == "my work"]
    first, second = sorted(
        (s for s in attempts if s is not parent),
        key=lambda s: s.attributes["cicd.pipeline.task.run.id"],
    )
    services = {span.name: span.service for span in spans}
    assert services == {
        "send default": "windlass-client",
        "POST /api/v1/jobs": "windlass-server",
        "wait default": "windlass-server",
        "process default": "windlass-worker",
        "my work": "windlass-function",
    }
    assert (submitted.parent, parent.parent, mine.parent) == (sent.span, sent.span, parent.span)
    assert (first.parent, second.parent) == (mine.span, mine.span)
    assert second.links == (first.span,)
    assert str(shown.result).split("-")[1:3] == [sent.trace, parent.span]
    assert (first.is_error, first.attributes["error.type"]) == (True, "execution")
    assert not second.is_error
    waits = [span for span in spans if span.name == "wait default"]
    assert len(waits) == 3
    assert {span.parent for span in waits} == {sent.span, mine.span}
    about = parent.attributes
    assert about["messaging.system"] == "windlass"
    assert about["messaging.destination.name"] == "default"
    assert about["messaging.operation.name"] == "process"
    assert about["cicd.pipeline.task.name"] == "traced_jobs:parent"
    assert about["cicd.pipeline.task.run.result"] == "success"
    assert not [s for s in collector.spans if SECRET in str(s)]


async def _listen(over: asyncio.Event) -> asyncio.Server:
    """A collector that takes connections and never answers."""

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    return await asyncio.start_server(hold, "127.0.0.1", 0)


@pytest.mark.parametrize("is_dead", [False, True] if LONG else [False])
def test_a_collector_that_does_not_answer_stops_no_job_and_no_process(
    is_dead: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        over = asyncio.Event()
        server = await _listen(over)
        port = free_port() if is_dead else server.sockets[0].getsockname()[1]
        fleet = prepare(tmp_path, monkeypatch, f"http://127.0.0.1:{port}")
        await fleet.start_servers()
        await fleet.start_worker("worker-1")
        loop = asyncio.get_running_loop()
        try:
            job = await submit(fleet, "--", "true")
            assert (await finish(fleet, job)).state == "completed", fleet.tails()
            began = loop.time()
        finally:
            ends = await fleet.stop()
            over.set()
            server.close()
        assert set(ends.values()) == {0}
        assert loop.time() - began < 15

    run(scenario())
