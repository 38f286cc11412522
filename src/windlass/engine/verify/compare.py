"""Compares the rows of a snapshot with the result of the log, table by table.

S20: the rows agree with the log, and each open job is in exactly one place, with a ticket that
agrees with it, and not ranked behind a job that waits for it. S19: every counter equals a recount.
S2: every key names one job. S13: no pool exceeds its limit. S17: a slot of a schedule has one run.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.states import (
    BLOCKED,
    COMPLETED,
    QUEUED,
    STATE_BY_CODE,
    SUSPENDED,
)
from windlass.domain.lifecycle.workflow_state import COUNTS, ENDED, ended_badly
from windlass.domain.matching.suspects import NOBODY, Company
from windlass.domain.pools.pools import Lifecycle
from windlass.domain.rows.records import CascadeKind, JobFacts, Lease, Ticket, Wait
from windlass.domain.rows.steps import StepState
from windlass.domain.schedules import RunState
from windlass.engine.submit.submission import MARK as SUBMISSION
from windlass.engine.verify.past import Findings, JobPast, Past, SnapshotIndex
from windlass.store.sql.snapshot import Snapshot

_LOOKED_AT = (CascadeKind.RELEASE, CascadeKind.DECIDE)  # cascades about a wait itself
_DEPTH = "depth:"


def compare(known: SnapshotIndex, past: Past, found: Findings) -> None:
    """Compares jobs, attempts, workers, workflows and queues."""
    _compare_jobs(known, past, found)
    _compare_attempts(known, past, found)
    _compare_workers(known, past, found)
    _compare_workflows(known, past, found)
    for queue in known.snapshot.queues:
        if bool(queue.paused) != past.paused.get(queue.name, False):
            found.add("S20", f"queue {queue.name} is paused: {queue.paused}; the log differs")
        logged = past.holdings.queue(queue.name)
        limits = queue.max_running, queue.max_per_worker
        if limits != (logged.max_running, logged.max_per_worker):
            found.add("S20", f"queue {queue.name} has limits {limits}; the log differs")


def _compare_jobs(known: SnapshotIndex, past: Past, found: Findings) -> None:
    for job, row in known.jobs.items():
        logged = past.jobs.get(job)
        if logged is None:
            found.add("S20", "is not in the log", job)
            continue
        facts = row.facts
        for name, has, should in (
            ("state", facts.state, logged.state if logged.ended else None),
            ("attempt", facts.attempt, logged.closed),
            ("failed", facts.failed, logged.failed),
            ("lost", facts.lost, logged.lost),
            ("returned", facts.returned, logged.returned),
            ("handed_back", facts.handed_back, logged.handed_back),
            ("base", facts.base, logged.base),
            ("adjustment", facts.adjustment, logged.adjustment),
            ("supersedes", facts.supersedes, logged.supersedes),
            ("superseded_by", facts.superseded_by, logged.superseded_by),
            ("worker", facts.worker, _last_worker(logged)),
        ):
            if has != should:
                found.add("S20", f"has {name} {has}, the log says {should}", job)


def _last_worker(logged: JobPast) -> int | None:
    """Returns the worker of the attempt that ended the job, if one did."""
    by_attempt = (
        logged.ended and logged.closed and all(logged.closed != n for n, *_ in logged.tries)
    )
    return logged.worker if by_attempt else None


def _compare_attempts(known: SnapshotIndex, past: Past, found: Findings) -> None:
    recorded: dict[int, list[tuple[int, int, int]]] = {}
    for row in known.snapshot.attempts:
        recorded.setdefault(row.job, []).append((row.number, row.worker, row.incarnation))
    for job, logged in past.jobs.items():
        if recorded.get(job, []) != logged.tries:
            found.add("S20", f"has closed attempts {recorded.get(job)}, not {logged.tries}", job)


def _compare_workers(known: SnapshotIndex, past: Past, found: Findings) -> None:
    for row in known.snapshot.workers:
        logged = past.worker(row.id)
        if logged.removed or (row.status, row.incarnation) != (logged.status, logged.incarnation):
            found.add(
                "S20",
                f"worker {row.id} has status {row.status} in incarnation {row.incarnation}, "
                f"the log says {logged.status} in {logged.incarnation}",
            )
    for worker, logged in past.workers.items():
        if worker and not logged.removed and worker not in known.workers:
            found.add("S20", f"worker {worker} is gone, the log has not removed it")


def _compare_workflows(known: SnapshotIndex, past: Past, found: Findings) -> None:
    for row in known.snapshot.workflows:
        logged = past.workflow(row.id)
        if (row.state, row.run) != (logged.state, logged.run):
            found.add(
                "S20",
                f"workflow {row.id} is in state {row.state}, run {row.run}; "
                f"the log says {logged.state}, run {logged.run}",
            )
        if (row.finished_at is not None) != (row.state in ENDED):
            found.add("S20", f"workflow {row.id} finished at {row.finished_at}")


class JobInPlace(NamedTuple):
    """One job in one place, and the state that this implies."""

    place: str
    job: int
    state: int
    ticket: Ticket | None
    lease: Lease | None = None


def jobs_in_places(snapshot: Snapshot) -> Iterator[JobInPlace]:
    """Yields every row of every place; a wait kept beside a lease is not counted."""
    for wait in snapshot.waits:
        if not wait.is_running:
            yield JobInPlace("waits", wait.job, BLOCKED, wait.ticket)
    for due in snapshot.due:
        yield JobInPlace("due", due.job, due.state, due.ticket)
    for ticket in snapshot.parked:
        yield JobInPlace("parked", ticket.job, QUEUED, ticket)
    for ticket in snapshot.ready:
        yield JobInPlace("ready", ticket.job, QUEUED, ticket)
    for lease in snapshot.leases:
        yield JobInPlace("leases", lease.job, lease.state, None, lease)


def check_places(known: SnapshotIndex, past: Past, found: Findings) -> None:
    """S20: every open job is in one place, in the state that the log left it in."""
    seen: dict[int, str] = {}
    for standing in jobs_in_places(known.snapshot):
        job = standing.job
        if job in seen:
            found.add("S20", f"is in {seen[job]} and in {standing.place}", job)
        seen[job] = standing.place
        row = known.jobs.get(job)
        if row is None:
            found.add("S20", f"is in {standing.place}, but there is no such job", job)
            continue
        _check_standing(standing, row.facts, past.jobs.get(job, JobPast()), found)
    for job, row in known.jobs.items():
        if row.facts.is_open and job not in seen:
            found.add("S20", "is open but in no place", job)
    for wait in known.snapshot.waits:
        place = seen.get(wait.job, "no place")
        if wait.is_running and place != "leases":
            found.add("S20", f"has a wait for its run, but is in {place}", wait.job)


def check_suspended(known: SnapshotIndex, found: Findings) -> None:
    """L3: what a suspended job waits for is stored, so that something will continue it."""
    pending = {(s.job, s.attempt) for s in known.snapshot.steps if s.state == StepState.PENDING}
    for due in known.snapshot.due:
        if due.state == SUSPENDED and (due.job, due.ticket.attempt) not in pending:
            found.add("L3", "is suspended, but waits for nothing", due.job)


def check_suspects(known: SnapshotIndex, found: Findings) -> None:
    """S13: no worker holds more suspects than may share one, or a job beside one that is alone."""
    companies: dict[int, Company] = {}
    for lease in sorted(known.snapshot.leases, key=lambda lease: lease.lease):
        company = companies.get(lease.worker, NOBODY)
        if not company.admits(lease.suspicion):
            found.add("S13", f"is beside a suspect on worker {lease.worker}", lease.job)
        companies[lease.worker] = company.joined_by(lease.suspicion)


def _check_standing(standing: JobInPlace, facts: JobFacts, past: JobPast, found: Findings) -> None:
    place, job = standing.place, standing.job
    if not facts.is_open:
        found.add("S20", f"has ended but is in {place}", job)
    if standing.state != past.state:
        shown = STATE_BY_CODE[standing.state], STATE_BY_CODE[past.state]
        found.add("S20", f"is {shown[0]} in {place}, the log says {shown[1]}", job)
    if standing.ticket is not None:
        _check_ticket(standing.ticket, facts, place, found)
    lease = standing.lease
    if lease is not None:
        holder = lease.attempt, lease.worker, lease.incarnation
        if holder != (past.attempt, past.worker, past.incarnation):
            found.add("S20", f"its lease is {holder}, the log says otherwise", job)
        if lease.limit != facts.limit:
            found.add("S20", f"its lease counts under limit {lease.limit}", job)


def _check_ticket(ticket: Ticket, facts: JobFacts, place: str, found: Findings) -> None:
    for name, has, should in (
        ("shape", ticket.shape, facts.shape),
        ("rank", ticket.rank, facts.rank),
        ("attempt", ticket.attempt, facts.attempt),
        ("workflow", ticket.workflow, facts.workflow),
        ("limit", ticket.limit, facts.limit),
        ("excluded", ticket.excluded, facts.excluded),
    ):
        if has != should:
            message = f"its ticket in {place} says {name} {has}, the job {should}"
            found.add("S20", message, ticket.job)


def check_order(known: SnapshotIndex, found: Findings) -> None:
    """S20: the rank of an open job is at least as good as that of all jobs it blocks.

    Open cascades may still change ranks, so then nothing is checked.
    """
    if known.snapshot.cascades:
        return
    for job, edges in known.snapshot.dependents:
        row = known.jobs.get(job)
        if row is None or not row.facts.is_open:
            continue
        for edge in edges:
            waiting = known.jobs.get(edge >> 1)
            if waiting is None or not waiting.facts.is_open or waiting.facts.rank >= row.facts.rank:
                continue
            found.add("S20", f"is ranked behind job {edge >> 1}, which waits for it", job)
            break


def check_counts(known: SnapshotIndex, past: Past, found: Findings) -> None:
    """Recounts depths, limits, workflows and unmet conditions."""
    _check_depths(known, past, found)
    _check_limits(known, past, found)
    _check_workflows(known, past, found)
    _check_unmet(known, found)
    _check_keys(known, found)


def _check_depths(known: SnapshotIndex, past: Past, found: Findings) -> None:
    depths = Counter(
        known.queue_of(job)
        for job, logged in past.jobs.items()
        if logged.state == QUEUED and job in known.jobs
    )
    counted = {
        name.removeprefix(_DEPTH): value
        for name, value in known.snapshot.counters
        if name.startswith(_DEPTH)
    }
    for queue in sorted({*depths, *counted}):
        if depths[queue] != counted.get(queue, 0):
            message = f"queue {queue} counts {counted.get(queue, 0)} jobs, it holds {depths[queue]}"
            found.add("S19", message)


def _check_limits(known: SnapshotIndex, past: Past, found: Findings) -> None:
    leased = Counter(lease.limit for lease in known.snapshot.leases)
    leased.update(lease.queue_limit for lease in known.snapshot.leases)
    for row in known.snapshot.limits:
        # The log does not say which leases count against a queue's limit.
        logged = past.limit(row.id).active if row.namespace else leased[row.id]
        if not row.leased == leased[row.id] == logged:
            message = f"limit {row.key} counts {row.leased} leases, there are {leased[row.id]}"
            found.add("S19", f"{message}; the log says {logged}")


def _check_workflows(known: SnapshotIndex, past: Past, found: Findings) -> None:
    recount: dict[int, list[int]] = {}
    for row in known.snapshot.jobs:
        facts, logged = row.facts, past.jobs.get(row.facts.id)
        if facts.workflow is None or facts.superseded_by or logged is None:
            continue
        counts = recount.setdefault(facts.workflow, [0] * COUNTS)
        counts[logged.state] += 1
        counts[0] += ended_badly(logged.state) and bool(facts.flags & ALLOW_FAILURE)
    for workflow in known.snapshot.workflows:
        counts = recount.get(workflow.id, [0] * COUNTS)
        logged_counts = past.workflow(workflow.id).counts
        if not list(workflow.counts) == counts == logged_counts:
            message = f"workflow {workflow.id} counts {list(workflow.counts)}, there are {counts}"
            found.add("S19", f"{message}; the log says {logged_counts}")


def _check_unmet(known: SnapshotIndex, found: Findings) -> None:
    """Checks that each wait counts its unmet edges, except those about to change."""
    snapshot = known.snapshot
    changing = {cascade.job for cascade in snapshot.cascades}
    released = {c.known_job for c in snapshot.cascades if c.kind in _LOOKED_AT}
    stopping = {c.workflow for c in snapshot.cascades if c.workflow is not None}
    unmet: Counter[int] = Counter()
    unsure: set[int] = set(released)
    for owner, edges in snapshot.dependents:
        facts = known.jobs[owner].facts
        for edge in edges:
            if owner in changing:
                unsure.add(edge >> 1)
            elif not _is_met(facts, bool(edge & 1)):
                unmet[edge >> 1] += 1
    for wait in snapshot.waits:
        if wait.job not in unsure and wait.ticket.workflow not in stopping:
            _check_wait(wait, unmet[wait.job], found)


def _check_wait(wait: Wait, edges: int, found: Findings) -> None:
    should = edges + wait.needs_operator
    if wait.unmet != should:
        message = f"waits for {wait.unmet} conditions, {should} are unmet"
        found.add("S19", message, wait.job)


def _is_met(owner: JobFacts, any_end: bool) -> bool:
    if owner.is_open:
        return False
    return any_end or owner.state == COMPLETED or bool(owner.flags & ALLOW_FAILURE)


def _check_keys(known: SnapshotIndex, found: Findings) -> None:
    """S2: of the jobs with one key, only one is open, and the key names one of them."""
    newest: dict[tuple[str, str], list[int]] = {}
    with_key: set[tuple[str, str, int]] = set()
    for row in known.snapshot.jobs:
        if b'"key"' not in row.spec:
            continue
        ties = known.ties(row.facts.id)
        if ties.key is not None:
            with_key.add((ties.namespace, ties.key, row.facts.id))
            if row.facts.is_open:
                newest.setdefault((ties.namespace, ties.key), []).append(row.facts.id)
    named = {
        (row.namespace, row.key): row.job
        for row in known.snapshot.keys
        if not row.key.startswith(SUBMISSION)
    }
    for key in sorted({*newest, *named}):
        name, open_jobs = named.get(key), newest.get(key, [])
        if open_jobs not in ([], [name]) or (name is not None and (*key, name) not in with_key):
            message = f"key {key[1]} names job {name}, jobs {open_jobs} have it and are open"
            found.add("S2", message, named.get(key) or 0)


def check_pools(known: SnapshotIndex, past: Past, found: Findings) -> None:
    """Checks that the living workers match the log, and that no two rows are the same worker."""
    names = {row.id: row.name for row in known.snapshot.pools}
    living = [row for row in known.snapshot.pool_workers if row.state != Lifecycle.GONE]
    seen: set[int | None] = set()
    for row in living:
        if row.pool not in names:
            found.add("S20", f"worker {row.token} belongs to pool {row.pool}, which does not exist")
        if row.worker in seen:
            found.add("S20", f"two machines of pools are worker {row.worker}")
        seen.add(row.worker)
    if past.trimmed:
        return  # some of them were requested by events that were removed
    logged = {(pool, token) for pool, tokens in past.pools.items() for token in tokens}
    there = {(names.get(row.pool, ""), row.token) for row in living}
    for pool, token in sorted(logged ^ there):
        what = "there" if (pool, token) in there else "gone"
        found.add("S20", f"worker {token} of pool {pool} is {what}, the log says otherwise")


def check_schedules(known: SnapshotIndex, past: Past, found: Findings) -> None:
    """Checks that each slot has one run, the one that the log says was started."""
    seen: set[tuple[int, int]] = set()
    last = {row.id: row.last_slot for row in known.snapshot.schedules}
    for run in known.snapshot.schedule_runs:
        if run.slot is None:
            continue
        place = (run.schedule, run.slot)
        if place in seen:
            found.add("S17", f"schedule {run.schedule} has two runs of slot {run.slot}")
        seen.add(place)
        if run.slot > last.get(run.schedule, 0):
            message = f"schedule {run.schedule} may run slot {run.slot} again: it has run {run.id}"
            found.add("S17", message)
        logged = past.slots.get(place, run.workflow)
        if run.state in (RunState.STARTED, RunState.ENDED) and logged != run.workflow:
            message = f"slot {run.slot} of schedule {run.schedule} is workflow {run.workflow}, "
            found.add("S17", f"{message}the log says {logged}")
