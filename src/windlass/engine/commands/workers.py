"""`engine.workers`: commands about workers, and what a stopped worker left to report."""

from collections.abc import Mapping

from windlass.domain.lifecycle.states import ASSIGNED
from windlass.domain.matching.workers import WorkerStatus
from windlass.engine.attempts.reports import Done, apply_reports, split_reports
from windlass.engine.claim.wakeups import WaitingSyncs
from windlass.engine.commands.sync import SyncCommand
from windlass.engine.fleet import workers
from windlass.engine.fleet.enrolment import Enrolment, admit, check_enrolment
from windlass.engine.fleet.workers import expect_known_tasks
from windlass.engine.transaction.arguments import (
    check_id,
    check_items,
    check_metadata,
    check_reported,
    check_text,
)
from windlass.engine.transaction.group_commit import RunStep
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import Released, SyncRequest
from windlass.ports.loop_time import give_way


class Workers:
    """Enrols, drains, describes and removes workers."""

    def __init__(self, *, run: RunStep, syncs: SyncCommand, waiting_syncs: WaitingSyncs) -> None:
        self._run = run
        self._syncs = syncs
        self._waiting_syncs = waiting_syncs

    async def enrol(self, enrolment: Enrolment) -> workers.Enrolled:
        """Begins a new incarnation of a worker."""
        check_enrolment(enrolment)
        check_reported(enrolment.metadata)
        if enrolment.stopped is not None:
            check_items("stopped.finished", enrolment.stopped.finished)

        async def step(work: Work) -> workers.Enrolled:
            admitted = await admit(work, enrolment)
            await settle_stopped(work, admitted)
            return await workers.enrol(work, admitted)

        enrolled = await self._run(step)
        self._syncs.forget(enrolled.worker)
        return enrolled

    async def leave(self, worker: int, incarnation: int) -> bool:
        """Ends an incarnation at its own request; returns False if it had ended already."""
        check_id("worker", worker)
        check_id("incarnation", incarnation)
        return await self._run(lambda work: workers.leave(work, worker, incarnation))

    async def set_status(
        self,
        worker: int,
        status: WorkerStatus,
        reason: str | None = None,
        actor: str | None = None,
    ) -> bool:
        """Drains, enables or disables a worker."""
        check_id("worker", worker)
        check_text("reason", reason)
        check_text("actor", actor)
        return await self._run(lambda work: workers.set_status(work, worker, status, reason, actor))

    async def set_metadata(
        self, worker: int, static: Mapping[str, object], actor: str | None = None
    ) -> bool:
        """Sets the static metadata of a worker, which operators decide."""
        check_id("worker", worker)
        check_metadata(static)
        check_text("actor", actor)
        return await self._set_static(worker, static, lambda _: static, actor)

    async def change_metadata(
        self, worker: int, changes: Mapping[str, object], actor: str | None = None
    ) -> bool:
        """Changes single entries of the static metadata; None removes one."""
        check_id("worker", worker)
        check_text("actor", actor)
        given = {key: value for key, value in changes.items() if value is not None}
        check_metadata(given)

        def merge(present: Mapping[str, object]) -> Mapping[str, object]:
            merged = {**present, **changes}
            kept = {key: value for key, value in merged.items() if value is not None}
            check_metadata(kept)
            return kept

        return await self._set_static(worker, given, merge, actor)

    async def _set_static(
        self,
        worker: int,
        given: Mapping[str, object],
        change: workers.Change,
        actor: str | None,
    ) -> bool:
        async def step(work: Work) -> bool:
            await expect_known_tasks(work, given)
            return await workers.set_static(work, worker, change, actor)

        done = await self._run(step)
        await give_way()  # to its sync, which may get a job now
        self._waiting_syncs.end(worker)  # it waits for jobs that match its old metadata
        return done

    async def remove(self, worker: int, force: bool = False, actor: str | None = None) -> bool:
        """Removes a worker."""
        check_id("worker", worker)
        check_text("actor", actor)
        return await self._run(lambda work: workers.remove(work, worker, force, actor))


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
