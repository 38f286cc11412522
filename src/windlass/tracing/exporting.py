"""Makes spans and exports them over OTLP, in a thread: nobody waits for a collector.

The span of an attempt is made by its worker, or by a server if the worker died with it.
"""

import atexit
import os
import threading
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from windlass.domain.lifecycle.traces import Trace, attempt_trace
from windlass.domain.values.ids import shown_attempt
from windlass.tracing.attributes import of_job, of_processing
from windlass.tracing.current import remote_context

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
CLOSE_SECONDS: Final = 1.0  # time for the last spans of a process that exits

LOST: Final = "lost"
_ERRORS: Final = ("failed", "timed_out", LOST)


class Made(NamedTuple):
    """A span that has ended. `own` is its context, if set in advance; times are in ms."""

    name: str
    kind: str  # as in `SpanKind`
    parent: Trace | None
    start_ms: int
    end_ms: int
    attributes: Mapping[str, Any]
    own: Trace | None = None
    link: Trace | None = None
    error: str | None = None  # class of the error


def wants_tracing(environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether the standard variables of OpenTelemetry ask for traces."""
    is_off = (
        environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
        or environ.get("OTEL_TRACES_EXPORTER", "otlp") == "none"
    )
    return not is_off and any(environ.get(name) for name in ENDPOINTS)


class Tracing:
    """Exports the spans of one process."""

    def __init__(self, service: str) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        class Ids(RandomIdGenerator):
            """Random ids, unless the next one was set in advance."""

            def __init__(self) -> None:
                self.next: int | None = None

            def generate_span_id(self) -> int:
                fixed, self.next = self.next, None
                return super().generate_span_id() if fixed is None else fixed

        name = os.environ.get("OTEL_SERVICE_NAME") or service
        self._ids = Ids()
        self._api = trace
        self.provider = TracerProvider(
            resource=Resource.create({"service.name": name}),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self.provider.get_tracer("windlass")

    def add(self, made: Made) -> Trace:
        """Adds a span and returns its context; spans are dropped if the queue is full."""
        api = self._api
        self._ids.next = None if made.own is None else int(made.own.span, 16)
        span = self._tracer.start_span(
            made.name,
            context=self._context(made.parent),
            kind=api.SpanKind[made.kind],
            attributes=dict(made.attributes),
            links=() if made.link is None else [api.Link(remote_context(api, made.link))],
            start_time=made.start_ms * 1_000_000,
        )
        self._ids.next = None
        if made.error is not None:
            span.set_attribute("error.type", made.error)
            span.set_status(api.Status(api.StatusCode.ERROR))
        span.end(end_time=max(made.start_ms, made.end_ms) * 1_000_000)
        known = span.get_span_context()
        return Trace(
            f"{known.trace_id:032x}", f"{known.span_id:016x}", f"{int(known.trace_flags):02x}"
        )

    def close(self) -> None:
        """Sends remaining spans, within a short time."""
        # An unresponsive collector must not delay the end of the process.
        closing = threading.Thread(target=self.provider.shutdown, daemon=True)  # noqa: TID251
        closing.start()
        closing.join(CLOSE_SECONDS)

    def _context(self, parent: Trace | None) -> Any:
        from opentelemetry.context import Context

        if parent is None:
            return Context()
        span = self._api.NonRecordingSpan(remote_context(self._api, parent))
        return self._api.set_span_in_context(span, Context())


def start_tracing(service: str) -> Tracing | None:
    """Returns the exporter of this process's spans; None unless that is configured."""
    if not wants_tracing():
        return None
    try:
        return Tracing(service)
    except ImportError as error:
        import structlog  # takes the process of a function as long to load as all the rest

        log = structlog.get_logger("windlass.tracing")
        log.warning("no traces: pip install 'windlass[otel]'", error=str(error))
        return None


def end_tracing(tracing: Tracing | None) -> None:
    """Sends the last spans of a process, if it has any."""
    if tracing is not None:
        tracing.close()


def trace_program(service: str) -> None:
    """Lets code of this process make spans with OpenTelemetry's API, if that is configured.

    A program that has configured OpenTelemetry itself is left alone.
    """
    tracing = start_tracing(service)
    if tracing is None:
        return
    from opentelemetry import trace

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(tracing.provider)
        atexit.register(tracing.close)


class Ended(NamedTuple):
    """An attempt that is over, with the data for its span; times are in ms."""

    job: int
    attempt: int
    queue: str
    task: str
    workflow: int | None
    began: int
    ended: int
    outcome: str
    failure: str | None = None


def attempt_span(parent: Trace, of: Ended) -> Made:
    """Returns the span of an attempt; a retry links to the attempt before."""
    about = of_job(of.job, shown_attempt(of.attempt), of.queue, of.task, of.workflow)
    is_retry = shown_attempt(of.attempt) > 1
    return Made(
        f"process {of.queue}",
        "CONSUMER",
        parent,
        of.began,
        of.ended,
        {**about, **of_processing(of.outcome)},
        own=attempt_trace(parent, of.job, of.attempt),
        link=attempt_trace(parent, of.job, of.attempt - 1) if is_retry else None,
        error=(of.failure or of.outcome) if of.outcome in _ERRORS else None,
    )
