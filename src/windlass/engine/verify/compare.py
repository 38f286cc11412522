"""S20: compares the rows of a snapshot with the result of the log."""

from windlass.domain.lifecycle.workflow_state import ENDED
from windlass.engine.verify.findings import Findings
from windlass.engine.verify.known import SnapshotIndex
from windlass.engine.verify.past import JobPast, Past


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
