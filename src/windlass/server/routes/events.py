"""The event log as a stream: server-sent events from any sequence number."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec

from windlass.api.events import event_filter, moment_since
from windlass.api.render import show_event
from windlass.domain.access.actions import Action
from windlass.domain.access.roles import Identity
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.values.errors import NotFound
from windlass.engine.history.read_events import (
    EventFilter,
    Select,
    number_before,
    number_before_last,
)
from windlass.ports.store import ReadTx
from windlass.server.http.call import Call
from windlass.server.http.replies import EVENTS, ServerSentEvent, Stream
from windlass.server.http.routes import Routes
from windlass.server.services import Services
from windlass.wire.numbers import Cursor, Id

CHUNK = 500
IDLE_MS = 250
QUIET_ROUNDS = 60  # after so many idle rounds a comment keeps the connection alive
MAX_DIGITS = 19  # of an id; a longer number is none
HEADERS = {"Connection": "keep-alive", "X-Accel-Buffering": "no"}

Last = Annotated[int, msgspec.Meta(ge=0, le=100_000)]

_encode = msgspec.json.Encoder().encode

routes = Routes("/api/v1/events", "events")


@routes.get("", needs=Action.READ_EVENTS, media_type=EVENTS)
async def follow_events(
    call: Call,
    after: Cursor = 0,
    follow: bool = True,
    kind: list[str] | None = None,
    state: list[str] | None = None,
    job: Id | None = None,
    worker: str | None = None,
    since: str | None = None,
    last: Last | None = None,
) -> Stream:
    """Streams the events behind `after`, and with `follow` new ones; their id is the seq.

    `since` is a time, or how long ago; `last` shows only so many of those that match.
    """
    services, store = call.services, call.services.engine.store
    wanted = event_filter(kind, state, job)
    if worker is not None:
        wanted = msgspec.structs.replace(wanted, worker=await _worker(services, worker))
    select = _selection(services, call.who, wanted)
    resumed = call.header(b"last-event-id")
    if resumed.isascii() and resumed.isdigit() and len(resumed) < MAX_DIGITS:
        return Stream(_stream(services, select, int(resumed), follow), EVENTS, HEADERS, follow)
    if since is not None:
        at = moment_since(since, await services.engine.now())
        after = max(after, await number_before(store, at))
    if last is not None:
        after = await number_before_last(store, select, last, after)
    return Stream(_stream(services, select, after, follow), EVENTS, HEADERS, follow)


async def _worker(services: Services, worker: str) -> int:
    """Returns the id of a worker, given by its name or id, also of one that was removed."""
    number = int(worker) if worker.isdigit() and len(worker) < MAX_DIGITS else 0

    async def find(tx: ReadTx) -> int | None:
        row = await tx.workers.read_name(worker)
        return row.id if row is not None else next(iter(await tx.workers.read([number])), None)

    found, names = await services.engine.store.read(find), services.names.known
    removed = (id_ for id_, known in names.items() if known.name == worker or id_ == number)
    found = found or next(removed, None)
    if found is None:
        raise NotFound("worker", worker)
    return found


def _selection(services: Services, who: Identity, wanted: EventFilter) -> Select:
    async def select(events: Sequence[Event]) -> Sequence[Event]:
        """Returns those that match and that the caller may see."""
        matching = [event for event in events if wanted.takes(event)]
        return await services.queries.visible_events(matching, who)

    return select


async def _stream(
    services: Services, select: Select, after: int, follow: bool
) -> AsyncIterator[bytes]:
    quiet = 0
    while True:
        events = await services.feed.read_after(after, CHUNK)
        shown = await select(events)
        await services.names.learn(shown)
        for event in shown:
            kind = EventKind(event.kind).name.lower()
            data = _encode(show_event(event, services.names.known))
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
