"""The same for many jobs, found by a filter, a bounded part of them at a time.

A part is a page of a list: newest first, so jobs that a retry makes are not met again.
Whoever asks goes on from `next` until there is none.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.views import JobFilter, JobView
from windlass.domain.values.errors import WindlassError
from windlass.engine.engine import Engine

PART: Final = 500  # jobs of one call
TOLD: Final = 20  # refusals that are told one by one

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


class Refused(NamedTuple):
    """A job that was left as it is, and why."""

    job: int
    reason: str


class Part(NamedTuple):
    """What one call found and did; `refused` are the first few of `refusals`."""

    matched: int
    applied: int
    refusals: int
    refused: list[Refused]
    next: int  # 0 at the end


Allow = Callable[[JobView], str | None]  # why a job may not be touched by who asks


class Bulk:
    """Edits by filter."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def count(self, wanted: JobFilter, cursor: int) -> Part:
        """How many there are, from the cursor on, as far as one call looks."""
        jobs, following = await self._page(wanted, cursor)
        return Part(len(jobs), 0, 0, [], following)

    async def cancel(self, wanted: JobFilter, cursor: int, reason: str, actor: str) -> Part:
        """Cancel the next of them."""
        jobs, following = await self._page(_default(wanted, OPEN), cursor)
        done = await self._engine.cancel([_id(view) for view in jobs], reason, actor)
        return Part(len(jobs), sum(answer.applied for answer in done), 0, [], following)

    async def retry(self, wanted: JobFilter, cursor: int, actor: str) -> Part:
        """Retry the next of them; those whose cause stands are refused, and follow it."""
        jobs, following = await self._page(_default(wanted, RETRIED), cursor)
        applied, refused = 0, []
        for view in jobs:
            try:
                applied += (await self._engine.retry(_id(view), actor)).applied
            except WindlassError as error:
                refused.append(Refused(_id(view), str(error)))
        return Part(len(jobs), applied, len(refused), refused[:TOLD], following)

    async def prioritize(
        self, wanted: JobFilter, cursor: int, adjustment: int, actor: str, allow: Allow
    ) -> Part:
        """Adjust the next of them, where who asks may."""
        jobs, following = await self._page(_default(wanted, OPEN), cursor)
        applied, refused = 0, []
        for view in jobs:
            why = allow(view)
            if why is not None:
                refused.append(Refused(_id(view), why))
                continue
            try:
                done = await self._engine.adjust_priority(_id(view), adjustment, actor)
                applied += done.applied
            except WindlassError as error:
                refused.append(Refused(_id(view), str(error)))
        return Part(len(jobs), applied, len(refused), refused[:TOLD], following)

    async def _page(self, wanted: JobFilter, cursor: int) -> tuple[Sequence[JobView], int]:
        page = await self._engine.store.read(lambda tx: tx.views.jobs(wanted, cursor, PART))
        return page.jobs, page.next


def _default(wanted: JobFilter, states: tuple[int, ...]) -> JobFilter:
    """The states an edit is for, where none are named."""
    return wanted if wanted.states or wanted.dead else wanted._replace(states=states)


def states_for(action: str, wanted: JobFilter) -> JobFilter:
    """What an edit would touch, for counting it first."""
    return _default(wanted, RETRIED if action == "retry" else OPEN)


def _id(view: JobView) -> int:
    return view.record.facts.id
