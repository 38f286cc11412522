"""Refuses what a caller may not do: by the table of rights, and by the bounds of priorities.

A search passes over jobs of other namespaces, too. How many there are is not for everybody.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from windlass.domain.access.policy import UNBOUNDED, check_priority
from windlass.domain.access.rights import SOMETHING, Action, Identity, Resource, may, why_not
from windlass.domain.job.job import JobSpec, decode_spec
from windlass.domain.lifecycle.rank import parse_priority
from windlass.engine.engine import Engine
from windlass.engine.submit.join_workflow import base_of, is_relative
from windlass.messages.jobs import JobCount, JobList, NewWorkflow, PreviewReply
from windlass.operations.dispatch.errors import Forbidden, Unauthorized
from windlass.store.sql.transaction import ReadTx

Counted = TypeVar("Counted", JobCount, PreviewReply)

BOUND: Final = 1_000  # stands for a search that ended before it was through
GENERATIONS: Final = 50  # of jobs that submit jobs; those further down belong to nobody

LOWER_ONLY: Final = "a submitter may only lower priorities"

_BY_JOB: Final = re.compile(r"job ([1-9][0-9]{0,17})")


def authorize(who: Identity | None, action: Action, resource: Resource = SOMETHING) -> None:
    """Raises `Unauthorized` without a valid token, `Forbidden` if the caller may not."""
    reason = why_not(who, action, resource)
    if reason is not None:
        raise Unauthorized(reason) if who is None else Forbidden(reason)


class Rights:
    """Checks what a caller asks for against the settings of the installation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._policy = engine.config.access

    async def check_own(self, jobs: Sequence[int], who: Identity) -> None:
        """Raises `Forbidden` for the first job that the caller may not change."""
        for job, why in (await self.refusals(jobs, who)).items():
            raise Forbidden(f"job {job}: {why}")

    async def refusals(self, jobs: Sequence[int], who: Identity) -> dict[int, str]:
        """Returns why the caller may not change some of these jobs, by their ids."""
        if self._changes_all(who):
            return {}
        owners = await self._engine.store.read(lambda tx: _owners(tx, jobs))
        return {job: _not_own(owner) for job, owner in owners.items() if not _is_own(owner, who)}

    def check_own_workflow(self, submitted_by: str | None, who: Identity) -> None:
        """Raises `Forbidden` unless the caller may change a workflow with this submitter."""
        if not self._changes_all(who) and not _is_own(submitted_by, who):
            raise Forbidden(_not_own(submitted_by))

    def _changes_all(self, who: Identity) -> bool:
        """Returns whether the caller may change jobs of others, by its role or by the settings."""
        if self._policy.submitter_changes_all:
            return may(who, Action.CHANGE_JOBS)
        return may(who, Action.CHANGE_ALL_JOBS)

    def refuse_adjustment(self, base: int, before: int, after: int, who: Identity) -> str | None:
        """Returns why the caller may not change the adjustment of a job with this base."""
        if after > before and not may(who, Action.RAISE_PRIORITIES):
            return LOWER_ONLY
        least, most = self._policy.bounds(who.role)
        if (least, most) == UNBOUNDED:
            return None
        total = base + after
        if (after > before and total > most) or (after < before and total < least):
            return f"the role {who.role} may give priorities from {least} to {most}, not {total}"
        return None

    def check_priority(self, value: int | str | None, who: Identity, field: str) -> None:
        """Raises `InvalidInput` for a priority that the caller may not give."""
        if value is not None and self._policy.bounds(who.role) != UNBOUNDED:
            check_priority(value, who, self._policy, field)

    async def check_priorities(
        self, jobs: Sequence[JobSpec], new: NewWorkflow | None, who: Identity
    ) -> None:
        """Raises `InvalidInput` for the first job with a priority that the caller may not give.

        A job may not get a higher one from another job either, which it names as its parent.
        """
        if self._policy.bounds(who.role) == UNBOUNDED:
            return
        if new is not None:
            self.check_priority(new.priority, who, "workflow.priority")
        relative: list[tuple[int, JobSpec]] = []
        for number, job in enumerate(jobs):
            if job.priority is None and job.parent is None:
                continue
            if job.parent is not None or is_relative(job):
                relative.append((number, job))
            elif job.priority is not None:
                check_priority(job.priority, who, self._policy, f"jobs[{number}].priority")
        if relative:
            await self._check_relative(relative, new, who)

    async def check_children(self, parent: int, jobs: Sequence[JobSpec], who: Identity) -> None:
        """Does the same for children of a running job; they may always have its priority."""
        own = [(n, job) for n, job in enumerate(jobs) if job.priority is not None]
        if not own or self._policy.bounds(who.role) == UNBOUNDED:
            return
        ground = (await self._effective([parent])).get(parent, 0)
        for number, job in own:
            field = f"jobs[{number}].priority"
            base = base_of(job, parse_priority(job.priority, field), ground, ground)
            if base > ground:
                check_priority(base, who, self._policy, field)

    async def _check_relative(
        self, jobs: Sequence[tuple[int, JobSpec]], new: NewWorkflow | None, who: Identity
    ) -> None:
        parents = await self._effective(job.parent for _, job in jobs if job.parent is not None)
        flows = await self._workflow_bases(job.workflow for _, job in jobs if job.workflow)
        own = parse_priority(new.priority) if new is not None and new.priority is not None else 0
        for number, job in jobs:
            field = f"jobs[{number}].priority"
            given = None if job.priority is None else parse_priority(job.priority, field)
            parent = None if job.parent is None else parents.get(job.parent)
            ground = flows.get(job.workflow, 0) if job.workflow else own
            check_priority(base_of(job, given, parent, ground), who, self._policy, field)

    async def _effective(self, jobs: Iterable[int]) -> dict[int, int]:
        """Returns the effective priorities of jobs, by their ids."""
        ids = sorted(set(jobs))
        facts = await self._engine.store.read(lambda tx: tx.jobs.read(ids)) if ids else {}
        return {job: fact.base + fact.adjustment for job, fact in facts.items()}

    async def _workflow_bases(self, workflows: Iterable[int]) -> dict[int, int]:
        ids = sorted(set(workflows))
        about = await self._engine.store.read(lambda tx: tx.workflows.about(ids)) if ids else {}
        return {workflow: one.base for workflow, one in about.items()}


def _is_own(owner: str | None, who: Identity) -> bool:
    return may(who, Action.CHANGE_JOBS, Resource(owner=owner or ""))


def _not_own(owner: str | None) -> str:
    whose = f"{owner} submitted it" if owner else "its submitter is not known"
    return f"a submitter may only change its own jobs, and {whose}"


async def _owners(tx: ReadTx, jobs: Sequence[int]) -> dict[int, str | None]:
    """Returns who submitted each job; what a job submitted belongs to that job's owner."""
    makers: dict[int, str | None] = {}
    wanted = sorted(set(jobs))
    for _ in range(GENERATIONS):
        specs = await tx.jobs.specs(wanted) if wanted else {}
        makers |= {job: decode_spec(body).submitted_by for job, body in specs.items()}
        parents = {_maker(makers[job]) for job in specs} - {0} - set(makers)
        if not parents:
            break
        wanted = sorted(parents)
    return {job: _root(job, makers) for job in jobs if job in makers}


def _root(job: int, makers: dict[int, str | None]) -> str | None:
    maker = makers[job]
    for _ in range(GENERATIONS):
        parent = _maker(maker)
        if not parent:
            return maker
        maker = makers.get(parent)
    return None


def _maker(submitted_by: str | None) -> int:
    """Returns the job that submitted another, or 0 if a person did."""
    match = _BY_JOB.fullmatch(submitted_by or "")
    return int(match[1]) if match else 0


def listed_for(who: Identity, found: JobList, limit: int) -> JobList:
    """Returns a page of jobs for this caller."""
    if not who.namespaces:
        return found
    is_cut = found.next is not None and len(found.jobs) < limit
    return replace(found, looked=BOUND if is_cut else len(found.jobs))


def counted_for(who: Identity, found: Counted) -> Counted:
    """Returns a count of jobs for this caller."""
    if not who.namespaces:
        return found
    return replace(found, looked=found.count if found.exact else BOUND, estimate=None)
