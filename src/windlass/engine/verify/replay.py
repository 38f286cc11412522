"""Replays the log, event by event, and checks each step before it is applied."""

from collections.abc import Callable, Sequence
from typing import Any

from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.rank import parse_priority
from windlass.domain.lifecycle.states import ACTIVE_CODES, ASSIGNED
from windlass.domain.lifecycle.workflow_state import ENDED, FORGIVEN, ended_badly
from windlass.domain.pools.pools import Lifecycle
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import JobFacts
from windlass.engine.verify.past import (
    Findings,
    JobPast,
    Past,
    SnapshotIndex,
    apply_move,
    apply_worker_event,
)
from windlass.ports.loop_time import LongList, give_way_if_long

# Checks one transition of one job before it is applied.
MoveCheck = Callable[["Replay", JobPast, Event], None]


class Replay:
    """The state that results from the log. Events come in the order of their numbers."""

    def __init__(
        self, known: SnapshotIndex, found: Findings, checks: Sequence[MoveCheck] = ()
    ) -> None:
        self.known = known
        self.found = found
        self.past = Past()
        self._checks = checks
        self._appliers: dict[int, Callable[[Event], None]] = {
            EventKind.JOB: self._move,
            EventKind.WORKER: self._apply_worker,
            EventKind.WORKFLOW: self._apply_workflow,
            EventKind.QUEUE: self._apply_queue,
            EventKind.PRIORITY: self._apply_priority,
            EventKind.SUPERSEDE: self._apply_supersede,
            EventKind.LOOP: self._apply_removal,
            EventKind.SCHEDULE: self._apply_schedule,
            EventKind.POOL: self._apply_pool,
        }

    async def release(self) -> None:
        """Frees all of it without the garbage collector, and what is long in steps."""
        self._appliers.clear()
        LongList(self.past.jobs.values())
        for rows in self.known.snapshot:
            LongList(rows)
            await give_way_if_long()

    def apply(self, event: Event) -> None:
        """Applies one event."""
        past = self.past
        if event.seq <= past.seq:
            self.found.add("S20", f"event {event.seq} follows {past.seq}", event.job, event.seq)
        past.seq = event.seq
        applier = self._appliers.get(event.kind)
        if applier is not None:
            applier(event)

    def _move(self, event: Event) -> None:
        if event.source == 0 and event.job in self.past.seeded:
            # It was submitted after the baseline, so its own events say everything.
            self.past.seeded.discard(event.job)
            del self.past.jobs[event.job]
        job = self.past.jobs.setdefault(event.job, JobPast())
        for check in self._checks:
            check(self, job, event)
        data = event.details
        row = self.known.jobs.get(event.job)
        if row is not None:
            self._count(row.facts, job, event, data)
        if event.source == 0:
            job.base = data["base"] if "base" in data else self._own_base(event.job)
        apply_move(job, event, data)

    def _own_base(self, job: int) -> int:
        """Returns the base priority of a spec; the log holds it only if it came from elsewhere."""
        own = self.known.ties(job).priority
        return 0 if own is None else parse_priority(own)

    def _count(self, facts: JobFacts, job: JobPast, event: Event, data: dict[str, Any]) -> None:
        """Updates the counts of workflows, limits and workers."""
        if facts.workflow is not None:
            counts = self.past.workflow(facts.workflow).counts
            counts[event.to] += 1
            if event.source:
                counts[event.source] -= 1
            if ended_badly(event.to):
                counts[FORGIVEN] += bool(facts.flags & ALLOW_FAILURE)
        enters = event.to in ACTIVE_CODES and event.source not in ACTIVE_CODES
        leaves = event.source in ACTIVE_CODES and event.to not in ACTIVE_CODES
        if facts.limit:
            limit = self.past.limit(facts.limit)
            limit.active += enters - leaves
            own = self.known.ties(facts.id).concurrency
            if event.source == 0 and own is not None and "supersedes" not in data:
                limit.set_max(own.max, event.at)
        runs = event.to in ACTIVE_CODES and event.to != ASSIGNED
        ran = job.state in ACTIVE_CODES and job.state != ASSIGNED
        if runs or ran:
            self.past.worker(event.worker).running += runs - ran

    def _apply_worker(self, event: Event) -> None:
        worker = self.past.worker(event.worker)
        data = event.details
        if data.get("status") == "enrolled" and event.incarnation <= worker.incarnation:
            message = f"worker {event.worker} enrolled as {event.incarnation} again"
            self.found.add("S3", message, 0, event.seq)
        apply_worker_event(worker, event, data)

    def workflow_of(self, event: Event) -> int:
        """Returns the workflow that its own event is about."""
        number: int = event.details["workflow"]
        return number

    def _apply_workflow(self, event: Event) -> None:
        data = event.details
        workflow = self.past.workflow(data["workflow"])
        if "to" not in data:  # what was requested, not the outcome
            return
        known = data["workflow"] in self.known.workflows  # else retention has removed it
        if known and workflow.state != data["from"]:
            message = f"workflow {data['workflow']} left state {data['from']}, it was in "
            self.found.add("S20", message + str(workflow.state), 0, event.seq)
        if data["from"] in ENDED:
            workflow.run += 1
        workflow.state = data["to"]

    def _apply_queue(self, event: Event) -> None:
        data = event.details
        if "paused" in data:
            self.past.paused[data["queue"]] = data["paused"]
        if "max_running" in data:
            self.past.holdings.set_limits(data)

    def _apply_priority(self, event: Event) -> None:
        self.past.jobs.setdefault(event.job, JobPast()).adjustment = event.details["adjustment"]

    def _apply_removal(self, event: Event) -> None:
        """Forgets jobs that retention has removed, since there is nothing to compare."""
        for first, last in event.details.get("removed", ()):
            for job in range(first, last + 1):
                self.past.jobs.pop(job, None)
                self.past.missing.pop(job, None)

    def _apply_schedule(self, event: Event) -> None:
        data = event.details
        if data.get("run_state") != "started" or not data["slot"]:
            return
        place, slots = (data["schedule"], data["slot"]), self.past.slots
        if place in slots:
            message = f"schedule {data['name']} started slot {data['slot']} as workflow "
            again = f"{slots[place]} and again as {data['workflow']}"
            self.found.add("S17", message + again, 0, event.seq)
        slots[place] = data["workflow"]

    def _apply_pool(self, event: Event) -> None:
        data = event.details
        living = self.past.pools.setdefault(data["pool"], set())
        if "tokens" in data:
            living |= set(data["tokens"])
            if len(living) > data["most"]:
                message = f"pool {data['pool']} has {len(living)} workers, "
                self.found.add("S13", f"{message}{data['most']} are allowed", 0, event.seq)
        elif data.get("state") == Lifecycle.GONE.name.lower():
            living.discard(data["token"])

    def _apply_supersede(self, event: Event) -> None:
        old = self.past.jobs.setdefault(event.job, JobPast())
        if old.superseded_by:
            message = f"superseded by {old.superseded_by} and again"
            self.found.add("S3", message, event.job, event.seq)
        old.superseded_by = event.details["by"]
        row = self.known.jobs.get(event.job)
        if row is None or row.facts.workflow is None:
            return
        counts = self.past.workflow(row.facts.workflow).counts
        counts[old.state] -= 1
        if ended_badly(old.state):
            counts[FORGIVEN] -= bool(row.facts.flags & ALLOW_FAILURE)
