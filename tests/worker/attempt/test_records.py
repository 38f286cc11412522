"""What a worker's log and its spans say about attempts."""

from typing import Any

import msgspec
import pytest
import structlog
from structlog.testing import capture_logs

from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.traces import attempt_trace, parse_trace
from windlass.messages.jobs import SubmitRequest
from windlass.messages.sync import Assignment, Finished, Released
from windlass.tracing.exporting import Made, Tracing
from windlass.worker.attempt.records import MAX_LINES, Record, Records
from windlass.worker.attempt.spec import read_spec

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "open-sesame"


@pytest.fixture(autouse=True)
def all_levels() -> None:
    """Undoes what an embedded client of an earlier test has configured: only warnings."""
    structlog.reset_defaults()


class Time:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_000

    def now_ms(self) -> int:
        return self.now

    async def sleep_ms(self, duration_ms: int) -> None:
        self.now += duration_ms


class Kept(Tracing):
    """Keeps spans instead of exporting them."""

    def __init__(self) -> None:
        self.made: list[Made] = []

    def add(self, made: Made) -> Any:
        self.made.append(made)

    def close(self) -> None:
        """Has nothing to send."""


def begin(records: Records, attempt: int = 1, **spec: Any) -> Record:
    fields = {"task": "shell", "args": {"argv": ["curl", SECRET]}, "queue": "mail", **spec}
    body = msgspec.json.encode(fields)
    assignment = Assignment(7, attempt, 1, "running", None, None, msgspec.Raw(body))
    return records.begin(assignment, read_spec(body))


def test_attempts_that_were_handed_back_do_not_count_for_programs() -> None:
    body = msgspec.json.encode({"task": "shell", "args": {}, "queue": "mail"})
    given = Assignment(7, 3, 1, "running", None, None, msgspec.Raw(body), handed_back=2)
    with capture_logs() as logged:
        record = Records(Time()).begin(given, read_spec(body))
    assert record.env()["WINDLASS_ATTEMPT"] == "1"
    assert [entry["attempt"] for entry in logged] == [1]


def test_the_log_tells_how_long_an_attempt_took_and_how_it_ended() -> None:
    time = Time()
    with capture_logs() as logged:
        record = begin(Records(time), attempt=2)
        time.now += 1_500
        record.end(Finished(7, 2, "failed", 1, "network", "no route"))
        begin(Records(time)).end(Released(7, 1, reason="drained"))
        begin(Records(time)).end(None)
        begin(Records(time)).end(Finished(7, 1))
    ends = [entry for entry in logged if entry["event"] == "job ended"]
    assert ends[0] == {
        "event": "job ended", "log_level": "warning", "job": 7, "attempt": 2, "outcome": "failed",
        "seconds": 1.5, "failure": "network", "reason": "no route",
    }  # fmt: skip
    told = [(e["outcome"], e["log_level"], e.get("reason")) for e in ends[1:]]
    assert told == [
        ("released", "info", "drained"),
        ("lost", "warning", "its lease was lost"),
        ("completed", "info", None),
    ]
    started = next(entry for entry in logged if entry["event"] == "job started")
    assert started == {
        "event": "job started", "log_level": "info", "job": 7, "attempt": 2, "task": "shell",
        "queue": "mail",
    }  # fmt: skip
    assert SECRET not in str(logged)


def test_a_burst_of_short_jobs_is_summed_up_and_failures_are_not() -> None:
    time = Time()
    records = Records(time)
    with capture_logs() as logged:
        for _ in range(MAX_LINES + 50):
            begin(records).end(Finished(7, 1))
        for _ in range(3):
            begin(records).end(Finished(7, 1, "failed"))
        time.now += 1_000
        begin(records).end(Finished(7, 1))
    ends = [entry["outcome"] for entry in logged if entry["event"] == "job ended"]
    assert (ends.count("completed"), ends.count("failed")) == (MAX_LINES + 1, 3)
    starts = [entry for entry in logged if entry["event"] == "job started"]
    assert len(starts) == MAX_LINES + 1
    assert [entry["jobs"] for entry in logged if entry["event"] == "more jobs started"] == [53]
    assert [entry["jobs"] for entry in logged if entry["event"] == "more jobs ended"] == [50]


def test_a_span_follows_the_conventions_and_has_nothing_of_the_arguments() -> None:
    time, tracing = Time(), Kept()
    parent = parse_trace(TRACE)
    assert parent is not None
    with capture_logs() as logged:
        record = begin(Records(time, tracing), attempt=2, trace=TRACE, workflow=3)
        time.now += 20
        record.end(Finished(7, 2, "failed", 1, "execution", SECRET))
    (made,) = tracing.made
    assert (made.name, made.kind, made.parent) == ("process mail", "CONSUMER", parent)
    assert made.own == attempt_trace(parent, 7, 2)
    assert made.link == attempt_trace(parent, 7, 1)
    assert (made.start_ms, made.end_ms, made.error) == (1_000, 1_020, "execution")
    assert made.attributes == {
        "messaging.system": "windlass",
        "messaging.destination.name": "mail",
        "messaging.message.id": "7",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "cicd.pipeline.run.id": "3",
        "cicd.pipeline.task.name": "curl",
        "cicd.pipeline.task.run.id": "7.2",
        "cicd.pipeline.task.run.result": "failure",
    }
    assert {entry["trace_id"] for entry in logged} == {parent.trace}


def test_programs_and_children_continue_the_trace() -> None:
    parent = parse_trace(TRACE)
    assert parent is not None
    traced = begin(Records(Time(), Kept()), trace=TRACE)
    own = attempt_trace(parent, 7, 1).text
    assert traced.env()["TRACEPARENT"] == own
    other = JobSpec(task="shell", trace=TRACE)
    adopted = traced.adopt(SubmitRequest(jobs=[JobSpec(task="shell"), other]))
    assert [job.trace for job in adopted.jobs] == [own, TRACE]
    # A worker that exports nothing passes on what came with the job.
    assert begin(Records(Time()), trace=TRACE).env()["TRACEPARENT"] == TRACE
    untraced = begin(Records(Time(), Kept()))
    assert "TRACEPARENT" not in untraced.env()
    request = SubmitRequest(jobs=[other])
    assert untraced.adopt(request) is request
