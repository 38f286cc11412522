"""Reads the log once for all open pages, and collects for each what it has to be told."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from windlass.domain.access.rights import Action, Identity, may, sees
from windlass.domain.rows.events import Event, EventKind
from windlass.engine.history.events import CHUNK
from windlass.server.live.topics import Changed, Topics
from windlass.store.store import Store

MAX_LISTED: Final = 200  # ids in one message; beyond that, the page asks for everything again
MAX_ROUNDS: Final = 20  # chunks of the log in one round; the next one reads on
QUIET_MS: Final = 15_000  # after which a comment keeps the connection open

FLEET: Final = frozenset({EventKind.WORKER, EventKind.QUEUE, EventKind.POOL})
PLANS: Final = frozenset({EventKind.SCHEDULE, EventKind.TEMPLATE})  # these say their namespace

ReadAfter = Callable[[int, int], Awaitable[Sequence[Event]]]
# Returns, for jobs that exist: their namespace and workflow.
Locate = Callable[[Sequence[int]], Awaitable[dict[int, tuple[str, int]]]]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What changed since the last message, among what the page shows.

    With `more`, other things changed too: ask for everything again.
    """

    kinds: list[str]
    jobs: list[int]
    workflows: list[int]
    workers: list[int]
    more: bool = False


class LiveReport(msgspec.Struct, frozen=True):
    """How many pages are open, and how many events one round read."""

    pages: int
    events: int


class Listener:
    """One open page: what it shows, and what it has not been told yet."""

    def __init__(self, who: Identity, topics: Topics, at: int, now: int) -> None:
        self._who = who
        self._topics = topics
        self._sees_tokens = may(who, Action.MANAGE_TOKENS)
        self._sees_fleet = may(who, Action.READ_FLEET)
        self.at = at  # the number of the last event that it knows of
        self.spoke_at = now
        self.is_due = asyncio.Event()
        self._kinds: set[int] = set()
        self._found: tuple[set[int], set[int], set[int]] = (set(), set(), set())
        self._more = False

    def add(self, change: Changed) -> None:
        """Takes what concerns it, and what its caller may see."""
        if not self._topics.take(change) or not self._sees(change):
            return
        self._kinds.add(change.kind)
        ids = (change.job, change.workflow, change.worker)
        for known, number in zip(self._found, ids, strict=True):
            if number and len(known) < MAX_LISTED:
                known.add(number)
            elif number and number not in known:
                self._more = True
        self.is_due.set()

    def add_all(self) -> None:
        """Notes that it has missed something."""
        self._more = True
        self.is_due.set()

    def add_removal(self) -> None:
        """Notes that jobs were removed, of any namespace."""
        if self._topics.show_jobs:
            self.add_all()

    def take(self, now: int) -> Change | None:
        """Returns what it has to be told, and forgets it; None if nothing."""
        self.is_due.clear()
        self.spoke_at = now
        if not self._kinds and not self._more:
            return None
        jobs, workflows, workers = (sorted(known) for known in self._found)
        kinds = [EventKind(kind).name.lower() for kind in sorted(self._kinds)]
        change = Change(
            kinds=kinds, jobs=jobs, workflows=workflows, workers=workers, more=self._more
        )
        self._kinds = set()
        self._found = (set(), set(), set())
        self._more = False
        return change

    def _sees(self, change: Changed) -> bool:
        if change.kind == EventKind.ACCESS and not self._sees_tokens:
            return False
        if change.kind in FLEET:
            return self._sees_fleet  # lists of workers, queues and pools are not by namespace
        if change.namespace is None:
            return not self._who.namespaces
        return sees(self._who, change.namespace, Action.READ_EVENTS)


class LiveHub:
    """A loop that tells open pages what changed; it does nothing while none is open."""

    name = "live"
    interval_ms = 500

    def __init__(self, store: Store, read_after: ReadAfter, locate: Locate) -> None:
        self._store = store
        self._read_after = read_after
        self._locate = locate
        self._after = -1
        self._listeners: set[Listener] = set()

    async def newest(self) -> int:
        """Returns the number of an event that every later reading knows of, almost the newest."""
        if self._after >= 0:
            return self._after
        return await self._store.read(lambda tx: tx.log.newest())

    async def open(self, who: Identity, topics: Topics, after: int, now: int) -> Listener:
        """Adds a page; `after` is the last event that it knows of, 0 for a new page."""
        self._after = max(self._after, await self.newest())
        listener = Listener(who, topics, self._after, now)
        if 0 < after < self._after:
            listener.add_all()
        self._listeners.add(listener)
        return listener

    def close(self, listener: Listener) -> None:
        """Forgets a page; the last one lets the loop rest."""
        self._listeners.discard(listener)
        if not self._listeners:
            self._after = -1

    async def run_once(self, now: int) -> LiveReport:
        """Passes on the events since the last round."""
        seen = 0
        for _ in range(MAX_ROUNDS if self._listeners else 0):
            after = self._after
            events = await self._read_after(after, CHUNK)
            if self._after != after:
                break  # the last page was closed meanwhile
            if events:
                await self._pass_on(events)
                self._after = events[-1].seq
            seen += len(events)
            if len(events) < CHUNK:
                break
        for listener in self._listeners:
            listener.at = self._after
            if now - listener.spoke_at >= QUIET_MS:
                listener.is_due.set()
        return LiveReport(len(self._listeners), seen)

    async def _pass_on(self, events: Sequence[Event]) -> None:
        if any(map(_removes_jobs, events)):
            # Which jobs is not said: those that are gone have no namespace any more.
            for listener in self._listeners:
                listener.add_removal()
        jobs = sorted({event.job for event in events if event.job})
        places = await self._locate(jobs) if jobs else {}
        for change in {_change(event, places) for event in events}:
            for listener in self._listeners:
                listener.add(change)


def _removes_jobs(event: Event) -> bool:
    return event.kind == EventKind.LOOP and "removed" in msgspec.json.decode(event.data or "{}")


def _change(event: Event, places: dict[int, tuple[str, int]]) -> Changed:
    if event.job:
        # A job that is gone was in no namespace that anybody could name: nobody is told its number.
        namespace, workflow = places.get(event.job, (None, 0))
        return Changed(event.kind, event.job, workflow, event.worker, namespace)
    data = msgspec.json.decode(event.data or "{}")
    workflow = data.get("workflow") if event.kind == EventKind.WORKFLOW else 0
    namespace = data.get("namespace") if event.kind in PLANS else None
    return Changed(
        event.kind,
        0,
        workflow if isinstance(workflow, int) else 0,
        event.worker,
        namespace if isinstance(namespace, str) else None,
    )
