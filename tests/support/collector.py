"""A receiver of OTLP over HTTP on loopback, as a collector of OpenTelemetry is one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


class Seen(NamedTuple):
    """A span that arrived; ids are hexadecimal."""

    service: str
    name: str
    trace: str
    span: str
    parent: str
    links: tuple[str, ...]
    attributes: dict[str, str]
    is_error: bool
    milliseconds: float


class Collector:
    """Keeps the spans that arrive at `address`."""

    def __init__(self) -> None:
        self.spans: list[Seen] = []
        self.address = ""

    def named(self, name: str) -> list[Seen]:
        """The spans with this name, by their start."""
        return [span for span in self.spans if span.name == name]

    async def take(self, request: web.Request) -> web.Response:
        """Answers an export."""
        told = ExportTraceServiceRequest.FromString(await request.read())
        for group in told.resource_spans:
            service = next(
                a.value.string_value for a in group.resource.attributes if a.key == "service.name"
            )
            for scope in group.scope_spans:
                self.spans += [_seen(service, span) for span in scope.spans]
        body = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=body, content_type="application/x-protobuf")


def _seen(service: str, span: Span) -> Seen:
    return Seen(
        service,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        tuple(link.span_id.hex() for link in span.links),
        {a.key: a.value.string_value or str(a.value.int_value) for a in span.attributes},
        span.status.code == Status.STATUS_CODE_ERROR,
        (span.end_time_unix_nano - span.start_time_unix_nano) / 1e6,
    )


@asynccontextmanager
async def running_collector() -> AsyncIterator[Collector]:
    """Listens until the end of the block."""
    collector = Collector()
    application = web.Application()
    application.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    collector.address = f"http://127.0.0.1:{port}"
    try:
        yield collector
    finally:
        await runner.cleanup()
