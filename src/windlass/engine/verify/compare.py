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
        told = past.holdings.queue(queue.name)
        limits = queue.max_running, queue.max_per_worker
        if limits != (told.max_running, told.max_per_worker):
            found.add("S20", f"queue {queue.name} has limits {limits}; the log differs")


def _compare_jobs(known: SnapshotIndex, past: Past, found: Findings) -> None:
    for job, row in known.jobs.items():
        told = past.jobs.get(job)
        if told is None:
            found.add("S20", "is not in the log", job)
            continue
        facts = row.facts
        for name, has, should in (
            ("state", facts.state, told.state if told.ended else 0),
            ("attempt", facts.attempt, told.closed),
            ("failed", facts.failed, told.failed),
            ("lost", facts.lost, told.lost),
            ("returned", facts.returned, told.returned),
            ("base", facts.base, told.base),
            ("adjustment", facts.adjustment, told.adjustment),
            ("supersedes", facts.supersedes, told.supersedes),
            ("superseded_by", facts.superseded_by, told.superseded_by),
            ("worker", facts.worker, _last_worker(told)),
        ):
            if has != should:
                found.add("S20", f"has {name} {has}, the log says {should}", job)


def _last_worker(told: JobPast) -> int:
    """Returns the worker of the attempt that ended the job; 0 if none did or it is open."""
    by_attempt = told.ended and told.closed and all(told.closed != n for n, *_ in told.tries)
    return told.worker if by_attempt else 0


def _compare_attempts(known: SnapshotIndex, past: Past, found: Findings) -> None:
    recorded: dict[int, list[tuple[int, int, int]]] = {}
    for row in known.snapshot.attempts:
        recorded.setdefault(row.job, []).append((row.number, row.worker, row.incarnation))
    for job, told in past.jobs.items():
        if recorded.get(job, []) != told.tries:
            found.add("S20", f"has closed attempts {recorded.get(job)}, not {told.tries}", job)


def _compare_workers(known: SnapshotIndex, past: Past, found: Findings) -> None:
    for row in known.snapshot.workers:
        told = past.worker(row.id)
        if told.removed or (row.status, row.incarnation) != (told.status, told.incarnation):
            found.add(
                "S20",
                f"worker {row.id} has status {row.status} in incarnation {row.incarnation}, "
                f"the log says {told.status} in {told.incarnation}",
            )
    for worker, told in past.workers.items():
        if worker and not told.removed and worker not in known.workers:
            found.add("S20", f"worker {worker} is gone, the log has not removed it")


def _compare_workflows(known: SnapshotIndex, past: Past, found: Findings) -> None:
    for row in known.snapshot.workflows:
        told = past.workflow(row.id)
        if (row.state, row.run) != (told.state, told.run):
            found.add(
                "S20",
                f"workflow {row.id} is in state {row.state}, run {row.run}; "
                f"the log says {told.state}, run {told.run}",
            )
        if bool(row.finished_at) != (row.state in ENDED):
            found.add("S20", f"workflow {row.id} finished at {row.finished_at}")
