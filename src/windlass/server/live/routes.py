"""The stream that open pages follow: server-sent events, two in a second at most."""

from collections.abc import AsyncIterator

import msgspec

from windlass.domain.access.rights import Action, Identity
from windlass.messages.numbers import Cursor
from windlass.operations.dispatch.answers import EVENTS, ServerSentEvent, Stream
from windlass.operations.dispatch.routes import Routes
from windlass.server.http.call import HttpCall
from windlass.server.live.topics import Topics, parse_topics
from windlass.server.services import ServerServices

HEADERS = {"Connection": "keep-alive", "X-Accel-Buffering": "no"}

_encode = msgspec.json.Encoder().encode

routes = Routes("/api/v1/live", "events")


@routes.get("", needs=Action.READ_EVENTS, media_type=EVENTS)
async def follow_changes(
    call: HttpCall, show: list[str], after: Cursor = 0, follow: bool = True
) -> Stream:
    """Streams what changes among what a page shows, as ids; the page asks again for those.

    `show` is jobs, workflows, workers, pools, queues, schedules, templates or tokens, or one of
    them: job:7, workflow:3, worker:2. The id of a message is the number of the last event it knows.
    Without `follow`, only that number is answered.
    """
    chunks = _stream(call.services, call.who, parse_topics(show), after, follow)
    return Stream(chunks, EVENTS, HEADERS, follow)


async def _stream(
    services: ServerServices, who: Identity, topics: Topics, after: int, follow: bool
) -> AsyncIterator[bytes]:
    """Yields messages; a client that reads slowly gets fewer, with more in each."""
    hub, clock = services.live, services.clock
    listener = await hub.open(who, topics, after, clock.now_ms())
    try:
        yield ServerSentEvent(id=str(listener.at), event="at", data=b"{}").encode()
        while follow:
            await listener.is_due.wait()
            change = listener.take(clock.now_ms())
            if change is None:
                yield ServerSentEvent(comment="still here").encode()
            else:
                data = _encode(change)
                yield ServerSentEvent(id=str(listener.at), event="changed", data=data).encode()
    finally:
        hub.close(listener)
