"""The event log as a stream: server-sent events from any sequence number."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, get
from litestar.params import FromQuery, Parameter
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage

from windlass.api.queries import Queries
from windlass.api.render import show_event
from windlass.domain.events import EventKind
from windlass.domain.roles import Identity, Role
from windlass.server.guard import identity_of
from windlass.server.services import Services, UseQueries, UseServices

CHUNK = 500
IDLE_MS = 250
QUIET_ROUNDS = 60  # after so many idle rounds a comment keeps the connection alive

_encode = msgspec.json.Encoder().encode


class EventRoutes(Controller):
    """Follow what happens."""

    path = "/api/v1/events"
    tags = ("events",)

    @get("/", opt={"role": Role.VIEWER})
    async def follow(
        self,
        request: Request[Any, Any, Any],
        services: UseServices,
        queries: UseQueries,
        after: Annotated[int, Parameter(ge=0, le=2**62)] = 0,
        follow: FromQuery[bool] = True,
    ) -> ServerSentEvent:
        """Events behind `after`, and with `follow` those to come; the id is the seq."""
        who = identity_of(request)
        last = request.headers.get("last-event-id", "")
        start = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else after
        return ServerSentEvent(_stream(services, queries, who, start, follow))


async def _stream(
    services: Services, queries: Queries, who: Identity, after: int, follow: bool
) -> AsyncIterator[ServerSentEventMessage]:
    quiet = 0
    while True:
        events = await services.feed.read_after(after, CHUNK)
        for event in await queries.visible_events(events, who):
            yield ServerSentEventMessage(
                id=str(event.seq),
                event=EventKind(event.kind).name.lower(),
                data=_encode(show_event(event)),
            )
        if events:
            after, quiet = events[-1].seq, 0
            continue
        if not follow:
            return
        quiet += 1
        if quiet % QUIET_ROUNDS == 0:
            yield ServerSentEventMessage(comment="still here")
        await services.clock.sleep_ms(IDLE_MS)
