"""The event log as a stream: server-sent events from any sequence number.

All streams together read one chunk of the log at a time, and everybody else has a turn between two.
An answer that ends is bounded: its last event, `more`, says from where on to ask again.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec

from windlass.domain.access.rights import Action, Identity
from windlass.domain.lifecycle.states import parse_state
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.values.errors import NotFound, UnknownName
from windlass.domain.values.ids import Cursor, Id
from windlass.domain.values.names import did_you_mean
from windlass.engine.fleet.workers import MAX_DIGITS, find_worker
from windlass.engine.history.events import EventFilter, Select, number_before, number_before_last
from windlass.operations.dispatch.call import EVENTS, Call, ServerSentEvent, Stream
from windlass.operations.dispatch.routes import Routes
from windlass.operations.parse import moment_since
from windlass.operations.render import show_event
from windlass.operations.services import Services
from windlass.ports.loop_time import give_way

CHUNK = 250  # events that are read, filtered and written in one go
MAX_LOOKED = 20_000  # events behind one answer that does not follow
IDLE_MS = 250
QUIET_ROUNDS = 60  # idle rounds until a comment keeps the connection alive
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

    `since` is a time, or how long ago; `last` shows only this many, the newest that match. Without
    `follow`, an answer looks at 20,000 events at most. If there are more, it ends with an event
    `more`, whose data say the `after` to go on with.
    """
    if not follow or last is not None:
        call.spend()
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
    try:
        return (await services.engine.store.read(lambda tx: find_worker(tx, worker))).id
    except NotFound:
        for number, known in services.names.known.items():
            if worker == (str(number) if worker.isdigit() else known.name):
                return number
        raise


def _selection(services: Services, who: Identity, wanted: EventFilter) -> Select:
    async def select(events: Sequence[Event]) -> Sequence[Event]:
        """Returns those that match and that the caller may see."""
        matching = [event for event in events if wanted.takes(event)]
        return await services.queries.visible_events(matching, who)

    return select


async def _stream(
    services: Services, select: Select, after: int, follow: bool
) -> AsyncIterator[bytes]:
    quiet = looked = 0
    while True:
        events, data = await _next_chunk(services, select, after)
        if data:
            yield data
        if events:
            after, quiet, looked = events[-1].seq, 0, looked + len(events)
            if looked >= MAX_LOOKED and not follow:
                more = _encode({"after": after})
                yield ServerSentEvent(id=str(after), event="more", data=more).encode()
                return
            continue
        if not follow:
            return
        quiet += 1
        if quiet % QUIET_ROUNDS == 0:
            yield ServerSentEvent(comment="still here").encode()
        await services.clock.sleep_ms(IDLE_MS)


async def _next_chunk(
    services: Services, select: Select, after: int
) -> tuple[Sequence[Event], bytes]:
    """Returns the next events of the log, and those that are shown as they are sent."""
    async with services.feed.chunk_turn:
        await give_way()
        events = await services.feed.read_after(after, CHUNK)
        shown = await select(events)
        await services.names.learn(shown)
        return events, b"".join(_sent(event, services) for event in shown)


def _sent(event: Event, services: Services) -> bytes:
    kind = EventKind(event.kind).name.lower()
    data = _encode(show_event(event, services.names.known))
    return ServerSentEvent(id=str(event.seq), event=kind, data=data).encode()


def event_filter(
    kinds: Sequence[str] | None, states: Sequence[str] | None, job: int | None
) -> EventFilter:
    """Parses a filter of the event log; `states` are those after a transition."""
    return EventFilter(
        kinds=frozenset(_kind(name) for name in kinds or ()),
        states=frozenset(found.code for name in states or () for found in parse_state(name)),
        job=job,
    )


def _kind(name: str) -> int:
    known = {kind.name.lower(): kind for kind in EventKind}
    found = known.get(name.strip().lower())
    if found is None:
        hint = did_you_mean(name, known).removeprefix("; ")
        raise UnknownName("kind", name, f"one of {', '.join(known)}", hint)
    return int(found)
