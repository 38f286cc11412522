"""Who does not use traces loads nothing of OpenTelemetry."""

import subprocess
import sys

import pytest

from windlass.tracing.current import current_trace, sending
from windlass.tracing.exporting import wants_tracing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LOAD = """
import sys
import windlass, windlass.front, windlass.assembly.server, windlass.worker.agent.machine
import windlass.executors.python.child, windlass.executors.python.child_loop
from windlass.tracing.exporting import start_tracing
assert start_tracing("any") is None
found = [name for name in sys.modules if name.startswith("opentelemetry")]
assert not found, found
"""


def test_nothing_of_opentelemetry_is_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOAD], env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_decide(variables: dict[str, str], wanted: bool) -> None:
    assert wants_tracing(variables) is wanted


def test_a_program_that_was_started_in_a_trace_continues_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from windlass.domain.job.job import JobSpec

    jobs = [JobSpec(task="shell")]
    monkeypatch.delenv("TRACEPARENT", raising=False)
    with sending(jobs) as sent:
        assert sent is jobs
    monkeypatch.setenv("TRACEPARENT", "nonsense")
    assert current_trace() is None
    monkeypatch.setenv("TRACEPARENT", PARENT)
    with sending(jobs) as sent:
        assert [str(job.trace).split("-")[1] for job in sent] == [PARENT.split("-")[1]]
