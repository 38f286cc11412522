"""Views of jobs on PostgreSQL: each read is a round trip, so one statement does much."""

from collections.abc import Sequence
from typing import Any

from windlass.domain.rows.files import Dynamic, LogRow, Progress
from windlass.domain.rows.records import (
    JobFacts,
    JobRecord,
    Lease,
)
from windlass.domain.rows.views import (
    JobFilter,
    Place,
)
from windlass.store import job_lists
from windlass.store.job_filters import Candidate, JobText, RowFilter, Source, asks_record
from windlass.store.job_reads import Seen, Stretch
from windlass.store.sql.jobs import FACTS
from windlass.store.sql.views import Views

# Where the parts of a row of `job_views` begin: what a record needs first, then other tables.
STATE = FACTS + 9
LEASE = STATE + 3
LOG = LEASE + len(Lease._fields)
PROGRESS = LOG + len(LogRow._fields)
DYNAMIC = PROGRESS + len(Progress._fields)
NOT_LISTED = (), (), ()  # attempts, artifacts, workers

_MATCHING = {  # with texts, down
    (False, True): "scan_matching",
    (False, False): "scan_matching_up",
    (True, True): "scan_texts",
    (True, False): "scan_texts_up",
}


class PostgresViews(Views):
    """Implements `Views` on PostgreSQL."""

    growth = 16  # each read is a round trip

    async def _look(
        self,
        sources: tuple[Source, ...] | list[int],
        wanted: JobFilter,
        row_filter: RowFilter,
        stretch: Stretch,
    ) -> Seen:
        with_texts = asks_record(wanted)
        if sources != (Source.JOBS,) or (row_filter.is_any and not with_texts):
            return await super()._look(sources, wanted, row_filter, stretch)
        shapes = None if row_filter.shapes is None else sorted(row_filter.shapes)
        found = await self._session.fetch(
            _MATCHING[with_texts, stretch.down], stretch.start, stretch.most, stretch.width,
            row_filter.ended, row_filter.is_open, shapes,
        )  # fmt: skip
        rows = [Candidate._make(row[:3]) for row in found]
        texts = {row[0]: JobText(row[0], *row[3:]) for row in found} if with_texts else None
        if len(rows) == stretch.width:
            last = rows[-1].job
            begin = rows[0].job if stretch.start == job_lists.FIRST else stretch.start
            looked = max(len(rows), min(abs(begin - last), stretch.most))  # at least
            return Seen(rows, looked, last, False, texts)
        reach = "reach" if stretch.down else "reach_up"
        reached = await self._session.fetch(reach, stretch.start, stretch.most)
        looked, at = reached[0]
        return Seen(rows, looked, at, looked < stretch.most, texts)

    async def _ready_first(self, shapes: Sequence[int], after: Place, count: int) -> list[Place]:
        rows = await self._session.fetch(
            "ready_first", self._session.integers(shapes), *after, count
        )
        return [(row[0], row[1]) for row in rows]

    async def _id_behind(self, at: int, newest: int) -> int:
        args = at, newest + 1, job_lists.CHUNK
        return int(await self._session.fetch_value("id_behind", *args))

    async def _event_behind(self, at: int, oldest: int, newest: int) -> int:
        args = at, oldest - 1, newest + 1, job_lists.CHUNK
        return int(await self._session.fetch_value("event_behind", *args))

    async def _views(self, ids: Sequence[int]) -> list[JobRecord]:
        found = {row[0]: view_of(row) for row in await self._fetch("job_views", ids)}
        return [found[job] for job in ids if job in found]


def view_of(row: Any) -> JobRecord:
    """Makes the record that lists show from a row of `job_views`."""
    return JobRecord._make(
        (
            JobFacts._make(row[:FACTS]),
            *row[FACTS : LEASE - 1],
            None if row[LEASE] is None else Lease._make(row[LEASE:LOG]),
            row[LEASE - 1],
            None if row[LOG] is None else LogRow._make(row[LOG:PROGRESS]),
            None if row[PROGRESS] is None else Progress._make(row[PROGRESS:DYNAMIC]),
            None if row[DYNAMIC] is None else Dynamic._make(row[DYNAMIC:]),
            *NOT_LISTED,
        )
    )
