"""What open pages are told: reads the log once for all, and collects for each what it shows."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.access.rights import Action, Identity, may, sees
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.values.errors import InvalidInput
from windlass.engine.history.events import CHUNK
from windlass.store.store import Store

MAX_TOPICS: Final = 64
_MAX_DIGITS: Final = 15
SINGLE: Final = ("job", "workflow", "worker")

MAX_LISTED: Final = 200  # ids in one message; beyond that, the page asks for everything again
MAX_ROUNDS: Final = 20  # chunks of the log in one round; the next one reads on
QUIET_MS: Final = 15_000  # after which a comment keeps the connection open

FLEET: Final = frozenset({EventKind.WORKER, EventKind.QUEUE, EventKind.POOL})
PLANS: Final = frozenset({EventKind.SCHEDULE, EventKind.TEMPLATE})  # these say their namespace

ReadAfter = Callable[[int, int], Awaitable[Sequence[Event]]]
# Returns, for jobs that exist: their namespace and workflow.
Locate = Callable[[Sequence[int]], Awaitable[dict[int, tuple[str, int]]]]


# Whole lists, and the kinds of events that change them.
LISTS: Final[Mapping[str, frozenset[int]]] = {
    "jobs": frozenset(
        {EventKind.JOB, EventKind.LOG, EventKind.PRIORITY, EventKind.SUPERSEDE, EventKind.WATCHDOG}
    ),
    "workflows": frozenset({EventKind.WORKFLOW, EventKind.JOB}),
    "workers": frozenset({EventKind.WORKER, EventKind.JOB}),
    "pools": frozenset({EventKind.POOL}),
    "queues": frozenset({EventKind.QUEUE, EventKind.JOB}),
    "schedules": frozenset({EventKind.SCHEDULE, EventKind.REACTION}),
    "templates": frozenset({EventKind.TEMPLATE}),
    "tokens": frozenset({EventKind.ACCESS}),
}

_EXPECTED: Final = f"one of {', '.join(LISTS)}, or {', '.join(f'{name}:ID' for name in SINGLE)}"


class Changed(NamedTuple):
    """What one event changed; 0: nothing of that sort."""

    kind: int
    job: int
    workflow: int
    worker: int
    namespace: str | None  # of the job, schedule or template; None: of none


class Topics(NamedTuple):
    """What a page shows: kinds of events, and single jobs, workflows and workers."""

    kinds: frozenset[int]
    jobs: frozenset[int]
    workflows: frozenset[int]
    workers: frozenset[int]

    @property
    def show_jobs(self) -> bool:
        """Whether the page shows jobs, or counts of them."""
        return EventKind.JOB in self.kinds or bool(self.jobs or self.workflows)

    def take(self, change: Changed) -> bool:
        """Returns whether the page shows what changed."""
        return (
            change.kind in self.kinds
            or change.job in self.jobs
            or change.workflow in self.workflows
            or change.worker in self.workers
        )


def parse_topics(shown: Iterable[str]) -> Topics:
    """Returns the topics of a request; raises `InvalidInput`."""
    given = list(shown)
    if not given or len(given) > MAX_TOPICS:
        raise InvalidInput("show", f"1 to {MAX_TOPICS} topics", len(given))
    kinds: set[int] = set()
    single: dict[str, set[int]] = {name: set() for name in SINGLE}
    for topic in given:
        if topic in LISTS:
            kinds |= LISTS[topic]
            continue
        name, _, number = topic.partition(":")
        is_number = number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS
        if name not in SINGLE or not is_number or int(number) == 0:
            raise InvalidInput("show", _EXPECTED, topic[:100])
        single[name].add(int(number))
    return Topics(
        frozenset(kinds),
        frozenset(single["job"]),
        frozenset(single["workflow"]),
        frozenset(single["worker"]),
    )


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
