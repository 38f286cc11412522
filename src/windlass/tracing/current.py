"""The current trace of this program, if it uses OpenTelemetry or was started in a trace."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.traces import Trace, parse_trace
from windlass.tracing.attributes import of_sending

VARIABLE: Final = "TRACEPARENT"
_API: Final = "opentelemetry.trace"


def current_trace() -> str | None:
    """Returns the context of the current span, else that of the environment, else None."""
    api = sys.modules.get(_API)
    if api is not None:
        found = _text(api.get_current_span())
        if found is not None:
            return found
    text = os.environ.get(VARIABLE)
    return text if parse_trace(text) is not None else None


def with_trace(jobs: Sequence[JobSpec], trace: str | None) -> list[JobSpec]:
    """Returns the jobs; those without a trace get this one."""
    if trace is None:
        return list(jobs)
    return [
        job if job.trace is not None else msgspec.structs.replace(job, trace=trace) for job in jobs
    ]


@contextmanager
def sending(jobs: list[JobSpec]) -> Iterator[list[JobSpec]]:
    """Makes a span around the submission of these jobs, if this program traces.

    Yields the jobs with its context, or the same list if there is no trace.
    """
    api = sys.modules.get(_API)
    if api is None or not jobs:
        trace = current_trace()
        yield jobs if trace is None else with_trace(jobs, trace)
        return
    queue = jobs[0].queue
    with api.get_tracer("windlass").start_as_current_span(
        f"send {queue}",
        context=_outer(api),
        kind=api.SpanKind.PRODUCER,
        attributes=of_sending(queue, len(jobs)),
    ) as span:
        trace = _text(span) or current_trace()
        yield jobs if trace is None else with_trace(jobs, trace)


def enter_trace(text: str) -> None:
    """Makes a trace current in this context, if OpenTelemetry is installed."""
    trace = parse_trace(text)
    if trace is None:
        return
    try:
        from opentelemetry import context
        from opentelemetry import trace as api
    except ImportError:
        return
    span = api.NonRecordingSpan(remote_context(api, trace))
    context.attach(api.set_span_in_context(span, context.Context()))


def leave_trace() -> None:
    """Leaves the trace that was entered last in this context."""
    found = sys.modules.get("opentelemetry.context")
    if found is not None:
        found.attach(found.Context())


def _outer(api: Any) -> Any:
    """Returns the context of the environment if no span is current; None for the current one."""
    trace = parse_trace(os.environ.get(VARIABLE))
    if trace is None or api.get_current_span().get_span_context().is_valid:
        return None
    return api.set_span_in_context(api.NonRecordingSpan(remote_context(api, trace)))


def remote_context(api: Any, trace: Trace) -> Any:
    """Returns the context of another program's span, for OpenTelemetry."""
    return api.SpanContext(
        int(trace.trace, 16), int(trace.span, 16), is_remote=True,
        trace_flags=api.TraceFlags(int(trace.flags, 16)),
    )  # fmt: skip


def _text(span: Any) -> str | None:
    found = span.get_span_context()
    if not found.is_valid:
        return None
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{int(found.trace_flags):02x}"
