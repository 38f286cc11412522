"""`windlass top`: queues, workers, rates and jobs at a glance."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from windlass.cli.options.connection import HERE, RECONNECT, Connection, WaitForServer
from windlass.cli.options.flags import Flag, Json, Limit
from windlass.cli.output.job_table import NARROWED, rough_age, table_of
from windlass.cli.output.tables import make_table
from windlass.cli.output.text import print_json
from windlass.client.blocking.client import Client
from windlass.clock import RealClock
from windlass.domain.values.quantities import counted, parse_moment, readable_duration
from windlass.messages.jobs import Job
from windlass.messages.system import EventInfo
from windlass.messages.workers import QueueInfo, WorkerInfo

WINDOW_MS: Final = 60_000
RUNNING: Final = ("running", "canceling")
WAITING: Final = ("assigned", "queued", "retrying", "blocked", "suspended")
COLUMNS: Final = ("id", "state", "name", "command", "queue", "duration", "age", "worker", "reason")
ABSENT: Final = ("offline", "pending_approval")  # their slots take no jobs
WORKERS_SHOWN: Final = 15
AROUND: Final = 10  # lines that are not rows: the head, titles, remarks and empty lines
MIN_ROWS: Final = 2  # rows of each table on the smallest terminal
MAX_EVENTS: Final = 20_000  # of one look; with more, the rates are for less than a minute


def top(
    *,
    once: Flag = False,
    limit: Limit = 15,
    reconnect: WaitForServer = RECONNECT,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Show queues, workers, rates and jobs; redraw them every second until Ctrl-C.

    Parameters
    ----------
    once
        Draw once and exit, as without a terminal.
    limit
        The maximum number of jobs to show; a small terminal shows fewer.
    """
    from windlass.cli.commands.fleet.top import Overview, draw
    from windlass.cli.output.refresh import show_live

    with at.client(reconnect) as client:
        overview = Overview(client, limit)
        if json:
            print_json(overview.look())
            return
        show_live(client, lambda room, height: draw(overview.look(), room, height), once)


class Rates(msgspec.Struct, frozen=True):
    """How many jobs were submitted, started and ended in the last `seconds`."""

    seconds: float
    submitted: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0


class Frame(msgspec.Struct, frozen=True):
    """What is shown at one moment."""

    queues: Sequence[QueueInfo]
    workers: Sequence[WorkerInfo]
    rates: Rates
    jobs: Sequence[Job]


class Overview:
    """Reads the installation repeatedly; it remembers the events of the last minute."""

    def __init__(self, client: Client, limit: int) -> None:
        self._client = client
        self._limit = limit
        self._clock = RealClock()
        self._after: int | None = None
        self._seen: deque[tuple[int, str | None, str | None]] = deque()

    def look(self) -> Frame:
        """Returns the current state."""
        client = self._client
        jobs = client.jobs(self._limit, state=list(RUNNING))
        if len(jobs) < self._limit:
            jobs += client.jobs(self._limit - len(jobs), state=list(WAITING))
        return Frame(client.queues.list(), client.workers.list(), self._rates(), jobs)

    def _rates(self) -> Rates:
        for event in self._new_events():
            self._after = event.seq
            self._seen.append((parse_moment(event.at, "at"), event.source, event.to))
        start = self._clock.now_ms() - WINDOW_MS
        while self._seen and self._seen[0][0] < start:
            self._seen.popleft()
        to = Counter(state for _, _, state in self._seen)
        while len(self._seen) > MAX_EVENTS:
            self._seen.popleft()
        is_cut = len(self._seen) == MAX_EVENTS
        return Rates(
            seconds=(self._clock.now_ms() - self._seen[0][0] if is_cut else WINDOW_MS) / 1000,
            submitted=sum(source is None for _, source, _ in self._seen),
            started=to["running"],
            completed=to["completed"],
            failed=to["failed"],
        )

    def _new_events(self) -> list[EventInfo]:
        since: dict[str, Any] = {"after": self._after}
        if self._after is None:
            since = {"since": f"{WINDOW_MS // 1000}s"}
        return list(self._client.events(**since, last=MAX_EVENTS, kind=["job"]))


def draw(frame: Frame, room: int, height: int | None = None) -> Group:
    """Returns the view of a frame; whatever comes from outside is escaped.

    With a height, each table gets a part of it, so that all of them are seen.
    """
    queues, workers, jobs = _parts_of(frame, height)
    parts: list[Table | Text] = [_head(frame), Text(), _queues(frame.queues, room, queues), Text()]
    parts += [_workers(frame.workers, room, workers), Text()]
    parts.append(
        table_of(frame.jobs[:jobs], COLUMNS, room, NARROWED)
        if frame.jobs
        else Text("no open jobs", "dim")
    )
    return Group(*parts)


def _parts_of(frame: Frame, height: int | None) -> tuple[int, int, int]:
    """Returns how many queues, workers and jobs are shown."""
    queues, workers = len(frame.queues), min(len(frame.workers), WORKERS_SHOWN)
    if height is None:
        return queues, workers, len(frame.jobs)
    free = max(height - AROUND, 3 * MIN_ROWS)
    queues, workers = (min(count, max(MIN_ROWS, free // 4)) for count in (queues, workers))
    return queues, workers, free - queues - workers


def _head(frame: Frame) -> Text:
    rates, ms = frame.rates, round(frame.rates.seconds * 1000)
    last = "minute" if ms == WINDOW_MS else readable_duration(ms)
    there = [worker for worker in frame.workers if worker.status not in ABSENT]
    busy, slots = (sum(getattr(w, name) for w in there) for name in ("held", "slots"))
    queued = sum(queue.depth for queue in frame.queues)
    return Text(
        f"{queued} queued, {busy} of {counted(slots, 'slot')} busy; "
        f"last {last}: {rates.submitted} submitted, {rates.started} started, "
        f"{rates.completed} completed, {rates.failed} failed",
        "bold",
    )


def _queues(queues: Sequence[QueueInfo], room: int, most: int) -> Table:
    shown = (
        sorted(queues, key=lambda q: -q.depth - (q.running or 0))[:most]
        if len(queues) > most
        else queues
    )
    rows = [
        (q.name, "paused" if q.paused else "open", q.depth, q.running, q.weight) for q in shown
    ]  # fmt: skip
    table = make_table(("queue", "state", "queued", "running", "weight"), rows, room)
    return _with_rest(table, len(queues) - len(shown), "queue")


def _workers(workers: Sequence[WorkerInfo], room: int, most: int) -> Table | Text:
    if not workers:
        return Text("no workers", "dim")
    now = RealClock().now_ms()
    shown = sorted(workers, key=lambda worker: (-worker.held, worker.name))[:most]
    rows = [
        (w.name, w.status, f"{w.held}/{w.slots}",
         rough_age(now - parse_moment(w.last_seen, "last_seen")), w.reason)
        for w in shown
    ]  # fmt: skip
    table = make_table(("worker", "state", "busy", "seen", "reason"), rows, room)
    return _with_rest(table, len(workers) - len(shown), "worker")


def _with_rest(table: Table, left_out: int, noun: str) -> Table:
    if left_out:
        table.caption = f"and {counted(left_out, f'more {noun}')}"
    return table
