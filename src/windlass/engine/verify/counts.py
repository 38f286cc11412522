"""S19: every counter equals a recount. S2: every key names one job."""

from collections import Counter

from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import COUNTS, ended_badly
from windlass.domain.rows.records import CascadeKind, JobFacts, Wait
from windlass.engine.submit.submission import MARK as SUBMISSION
from windlass.engine.verify.findings import Findings
from windlass.engine.verify.known import SnapshotIndex
from windlass.engine.verify.past import Past

QUEUED = State.QUEUED.code
COMPLETED = State.COMPLETED.code
_LOOKED_AT = (CascadeKind.RELEASE, CascadeKind.DECIDE)  # cascades about a wait itself

_DEPTH = "depth:"


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
