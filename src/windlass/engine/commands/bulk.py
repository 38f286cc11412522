"""`engine.bulk`: one command for many jobs, chosen by a filter, one page at a time.

A page is newest first, so jobs that a retry makes are not met again. The caller continues
from `next` until it is None.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobFilter
from windlass.domain.values.errors import WindlassError
from windlass.engine.commands.jobs import Jobs
from windlass.ports.store import Store

PART: Final = 500  # jobs of one call
REPORTED: Final = 20  # refusals that an answer names

OPEN: Final = tuple(
    sorted(
        state.code
        for state in (
            State.BLOCKED, State.QUEUED, State.ASSIGNED, State.RUNNING, State.TIMED_OUT,
            State.RETRYING,
        )
    )
)  # fmt: skip
RETRIED: Final = (State.FAILED.code,)


class RefusedJob(NamedTuple):
    """A job that was left as it is, and why."""

    job: int
    reason: str


class BulkPage(NamedTuple):
    """What one call found and did; `refused` names the first few of `refusals`."""

    matched: int
    applied: int
    refusals: int
    refused: list[RefusedJob]
    next: int | None  # None at the end


Allow = Callable[[JobRecord], str | None]  # why the caller may not change a job


class Bulk:
    """Cancels, retries and prioritizes jobs by filter."""

    def __init__(self, store: Store, jobs: Jobs) -> None:
        self._store = store
        self._jobs = jobs

    async def count(self, wanted: JobFilter, cursor: int) -> BulkPage:
        """Counts the jobs of the next page."""
        jobs, following = await self._page(wanted, cursor)
        return BulkPage(len(jobs), 0, 0, [], following)

    async def cancel(self, wanted: JobFilter, cursor: int, reason: str, actor: str) -> BulkPage:
        """Cancels the jobs of the next page."""
        jobs, following = await self._page(_default(wanted, OPEN), cursor)
        done = await self._jobs.cancel([_id(view) for view in jobs], reason, actor)
        return BulkPage(len(jobs), sum(answer.applied for answer in done), 0, [], following)

    async def retry(self, wanted: JobFilter, cursor: int, actor: str) -> BulkPage:
        """Retries the jobs of the next page; those that another failed job aborted are refused."""
        jobs, following = await self._page(states_for("retry", wanted), cursor)
        applied, refused = 0, []
        for view in jobs:
            try:
                applied += (await self._jobs.retry(_id(view), actor)).applied
            except WindlassError as error:
                refused.append(RefusedJob(_id(view), str(error)))
        return BulkPage(len(jobs), applied, len(refused), refused[:REPORTED], following)

    async def prioritize(
        self, wanted: JobFilter, cursor: int, adjustment: int, actor: str, allow: Allow
    ) -> BulkPage:
        """Adjusts the jobs of the next page that the caller may change."""
        jobs, following = await self._page(_default(wanted, OPEN), cursor)
        applied, refused = 0, []
        for view in jobs:
            why = allow(view)
            if why is not None:
                refused.append(RefusedJob(_id(view), why))
                continue
            try:
                done = await self._jobs.adjust_priority(_id(view), adjustment, actor)
                applied += done.applied
            except WindlassError as error:
                refused.append(RefusedJob(_id(view), str(error)))
        return BulkPage(len(jobs), applied, len(refused), refused[:REPORTED], following)

    async def _page(self, wanted: JobFilter, cursor: int) -> tuple[Sequence[JobRecord], int | None]:
        page = await self._store.read(lambda tx: tx.views.jobs(wanted, cursor, PART))
        return page.jobs, page.next or None


def _default(wanted: JobFilter, states: tuple[int, ...]) -> JobFilter:
    """Returns the filter with the states a command is for, where it names none."""
    return wanted if wanted.states or wanted.dead else wanted._replace(states=states)


def states_for(action: str, wanted: JobFilter) -> JobFilter:
    """Returns the filter of what a command would change."""
    if action == "retry":
        return _default(wanted, RETRIED)._replace(current=True)
    return _default(wanted, OPEN)


def _id(view: JobRecord) -> int:
    return view.facts.id
