"""The server's log of events: each line names its job and says why, as text and as JSON."""

import asyncio
import re

import pytest
from structlog.testing import capture_logs

from tests.support.running import run
from tests.support.running_server import running_server
from windlass.domain.config import Config
from windlass.domain.rows.events import Level
from windlass.engine.history.events import EventLines, WorkerNames, read_new
from windlass.messages.sync import Finished
from windlass.ports.gateway import Holder
from windlass.server.feed import write_line


def test_each_line_names_its_job_and_each_json_line_its_reason() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            number = await server.submit()
            (given,) = (await worker.sync(want=1)).jobs
            holder = Holder(worker.id, worker.incarnation, number, given.attempt)
            await worker.gateway.append_log(holder, 0, b"cut")
            await worker.sync(finished=(Finished(number, given.attempt, "completed", 0),))
            await worker.gateway.end_log(holder, 1_000, "lost")
            store = server.services.engine.store
            events, _ = await read_new(store, 0)
            with capture_logs() as logged:
                await EventLines(WorkerNames(store), write_line, Level.DEBUG).write(events)
            of_job = [line for line in logged if line["facts"].get("job") == number]
            assert {line["facts"]["kind"] for line in of_job} >= {"job", "log"}
            for line in of_job:
                assert re.search(rf"\bjob {number}\b", line["event"], re.IGNORECASE), line
                assert line["facts"]["reason"], line
            (lost,) = [line for line in of_job if line["facts"]["kind"] == "log"]
            assert (lost["log_level"], lost["event"]) == (
                "warning", f"[Log] Job {number}: The log is lost",
            )  # fmt: skip
            reasons = [line["facts"]["reason"] for line in of_job if line["facts"]["kind"] == "job"]
            assert reasons[0] == "Submitted"
            assert reasons[-1].startswith("Completed on worker ")

    run(scenario())


def test_a_server_stops_though_its_event_log_is_never_read_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several hundred thousand jobs take minutes to be logged and counted."""
    reading = asyncio.Event()

    async def read_for_ever(now: int) -> None:
        reading.set()
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with running_server(config=Config(drain_limit_ms=100)) as server:
            monkeypatch.setattr(server.services.feed, "run_once", read_for_ever)
            await reading.wait()

    async def within_limit() -> None:
        async with asyncio.timeout(60):
            await scenario()

    run(within_limit())
