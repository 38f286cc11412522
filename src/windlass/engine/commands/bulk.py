"""`engine.bulk`: one command for many jobs, chosen by a filter, one page at a time.

Pages go from newest to oldest, so they do not include jobs made by the retries. The caller
continues from `next` until it is None.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from windlass.domain.lifecycle.states import State, can_supersede
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobFilter
from windlass.domain.values.errors import WindlassError
from windlass.engine.commands.jobs import Jobs
from windlass.messages.bulk import BulkReply, RefusedJob
from windlass.store.store import Store

PART: Final = 500  # jobs of one call
REPORTED: Final = 20  # refusals named in an answer

OPEN: Final = tuple(
    sorted(
        state.code
        for state in (
            State.BLOCKED, State.QUEUED, State.ASSIGNED, State.RUNNING, State.TIMED_OUT,
            State.RETRYING, State.SUSPENDED,
        )
    )
)  # fmt: skip
RETRIED: Final = (State.FAILED.code,)  # the default actor
RETRYABLE: Final = tuple(sorted(state.code for state in State if can_supersede(state)))


# Returns why the caller may not change some of the jobs, by their ids.
Refuse = Callable[[Sequence[JobRecord]], Awaitable[Mapping[int, str]]]


class Bulk:
    """Cancels, retries and prioritizes jobs by filter."""

    def __init__(self, store: Store, jobs: Jobs) -> None:
        self._store = store
        self._jobs = jobs

    async def count(self, wanted: JobFilter, cursor: int) -> BulkReply:
        """Counts the jobs of the next page."""
        jobs, following = await self._page(wanted, cursor)
        return BulkReply(matched=len(jobs), applied=0, next=following)

    async def cancel(
        self, wanted: JobFilter, cursor: int, reason: str, actor: str, refuse: Refuse,
        most: int | None = None,
    ) -> BulkReply:  # fmt: skip
        """Cancels the jobs of the next page that the caller may change."""
        jobs, following = await self._page(_default(wanted, OPEN), cursor, most)
        refused = await refuse(jobs)
        ids = [_id(view) for view in jobs if _id(view) not in refused]
        done = await self._jobs.cancel(ids, reason, actor)
        applied = sum(answer.applied for answer in done)
        return _answer(jobs, applied, refused, following)

    async def retry(
        self, wanted: JobFilter, cursor: int, actor: str, refuse: Refuse, most: int | None = None
    ) -> BulkReply:
        """Retries the jobs of the next page; refuses those aborted by another failed job."""
        jobs, following = await self._page(states_for("retry", wanted), cursor, most)

        async def retry(job: int) -> bool:
            return (await self._jobs.retry(job, actor)).applied

        return await _each(jobs, following, retry, await refuse(jobs))

    async def prioritize(
        self, wanted: JobFilter, cursor: int, adjustment: int, actor: str, refuse: Refuse,
        most: int | None = None,
    ) -> BulkReply:  # fmt: skip
        """Adjusts the jobs of the next page that the caller may change."""
        jobs, following = await self._page(_default(wanted, OPEN), cursor, most)

        async def adjust(job: int) -> bool:
            return (await self._jobs.adjust_priority(job, adjustment, actor)).applied

        return await _each(jobs, following, adjust, await refuse(jobs))

    async def _page(
        self, wanted: JobFilter, cursor: int, most: int | None = None
    ) -> tuple[Sequence[JobRecord], int | None]:
        size = PART if most is None else min(PART, most)
        page = await self._store.read(lambda tx: tx.views.jobs(wanted, cursor, size))
        return page.jobs, page.next or None


async def _each(
    jobs: Sequence[JobRecord],
    following: int | None,
    change: Callable[[int], Awaitable[bool]],
    refused: Mapping[int, str],
) -> BulkReply:
    """Changes jobs one by one, except those that are refused."""
    applied, reasons = 0, dict(refused)
    for job in map(_id, jobs):
        if job in reasons:
            continue
        try:
            applied += await change(job)
        except WindlassError as error:
            reasons[job] = str(error)
    return _answer(jobs, applied, reasons, following)


def _answer(
    jobs: Sequence[JobRecord], applied: int, refused: Mapping[int, str], following: int | None
) -> BulkReply:
    first = [RefusedJob(id=job, reason=refused[job]) for job in map(_id, jobs) if job in refused][
        :REPORTED
    ]
    return BulkReply(
        matched=len(jobs), applied=applied, refusals=len(refused), refused=first, next=following
    )


def _default(wanted: JobFilter, states: tuple[int, ...]) -> JobFilter:
    """Returns the filter with the states that a command applies to, if it names none."""
    return wanted if wanted.states or wanted.dead else wanted._replace(states=states)


def states_for(action: str, wanted: JobFilter) -> JobFilter:
    """Returns the filter for what a command would change."""
    if action == "retry":
        return _default(wanted, RETRIED)._replace(current=True)
    return _default(wanted, OPEN)


def changeable(action: str, wanted: JobFilter) -> JobFilter | None:
    """Returns the filter for what a command can change; None if it names no such state."""
    found = states_for(action, wanted)
    able = RETRYABLE if action == "retry" else OPEN
    states = tuple(state for state in found.states if state in able)
    if found.dead:
        return found if action == "retry" else None
    return found._replace(states=states) if states else None


def _id(view: JobRecord) -> int:
    return view.facts.id
