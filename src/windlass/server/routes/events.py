"""The event log as a stream: server-sent events from any sequence number."""

from collections.abc import AsyncIterator

import msgspec

from windlass.api.render import show_event
from windlass.domain.access.roles import Identity
from windlass.domain.rows.events import EventKind
from windlass.server.http.binding import Cursor
from windlass.server.http.call import Call
from windlass.server.http.permissions import VIEWER
from windlass.server.http.replies import EVENTS, ServerSentEvent, Stream
from windlass.server.http.routes import Routes
from windlass.server.services import Services

CHUNK = 500
IDLE_MS = 250
QUIET_ROUNDS = 60  # after so many idle rounds a comment keeps the connection alive
HEADERS = {"Cache-Control": "no-cache", "Connection": "keep-alive", "X-Accel-Buffering": "no"}

_encode = msgspec.json.Encoder().encode

routes = Routes("/api/v1/events", "events")


@routes.get("", needs=VIEWER, media_type=EVENTS)
async def follow_events(call: Call, after: Cursor = 0, follow: bool = True) -> Stream:
    """Streams the events behind `after`, and with `follow` new ones; their id is the seq."""
    last = call.header(b"last-event-id")
    start = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else after
    return Stream(_stream(call.services, call.who, start, follow), EVENTS, HEADERS)


async def _stream(
    services: Services, who: Identity, after: int, follow: bool
) -> AsyncIterator[bytes]:
    quiet = 0
    while True:
        events = await services.feed.read_after(after, CHUNK)
        for event in await services.queries.visible_events(events, who):
            kind = EventKind(event.kind).name.lower()
            data = _encode(show_event(event))
            yield ServerSentEvent(id=str(event.seq), event=kind, data=data).encode()
        if events:
            after, quiet = events[-1].seq, 0
            continue
        if not follow:
            return
        quiet += 1
        if quiet % QUIET_ROUNDS == 0:
            yield ServerSentEvent(comment="still here").encode()
        await services.clock.sleep_ms(IDLE_MS)
