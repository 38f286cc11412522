"""Checks that each open job is in exactly one place, with a ticket that agrees with it.

Also that none is ranked behind a job that waits for it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from windlass.domain.lifecycle.states import STATE_BY_CODE, State
from windlass.domain.matching.suspects import NOBODY, Company
from windlass.domain.rows.records import JobFacts, Lease, Ticket
from windlass.domain.rows.steps import StepState
from windlass.engine.verify.findings import Findings
from windlass.engine.verify.known import SnapshotIndex
from windlass.engine.verify.past import JobPast, Past
from windlass.store.sql.snapshot import Snapshot

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code
SUSPENDED = State.SUSPENDED.code


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
