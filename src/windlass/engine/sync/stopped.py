"""Applies what a stopped worker could not report, when its next process enrols."""

from windlass.domain.lifecycle.states import State
from windlass.engine.attempts.reports import Done, apply_reports, split_reports
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import Released, SyncRequest

ASSIGNED = State.ASSIGNED.code
STOPPED = "the worker was stopped"


async def settle_stopped(work: Work, enrolment: Enrolment) -> None:
    """Takes the results of the stopped incarnation and hands back what else it holds.

    So a worker that is stopped together with its server costs its jobs no retries.
    """
    stopped = enrolment.stopped
    if stopped is None or not enrolment.proves_dead(stopped.incarnation):
        return
    worker = await work.tx.workers.lock_name(enrolment.name)
    if worker is None or worker.incarnation != stopped.incarnation:
        return
    told = {(item.job, item.attempt) for item in stopped.finished}
    released = tuple(
        # A reason would make it look like a refusal, though it never started.
        Released(lease.job, lease.attempt, None if lease.state == ASSIGNED else STOPPED)
        for lease in await work.tx.leases.of_workers([worker.id])
        if (lease.job, lease.attempt) not in told
    )
    reports = SyncRequest(
        incarnation=stopped.incarnation, seq=0, finished=stopped.finished, released=released
    )
    done: Done = {}
    others = split_reports(worker, reports, work.config.result_limit, done)
    await apply_reports(work, done, others)
