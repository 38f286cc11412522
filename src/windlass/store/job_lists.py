"""Lists and counts jobs in the same way on every store, over a few reads that differ.

A list is driven from the narrowest place that holds all wanted states: running jobs from `leases`,
blocked ones from `waits`, failed ones from an index of their own. Whatever the filter, one call
reads at most `SCAN` rows and returns a cursor, so a search through millions of jobs blocks nobody.

Ids rise with the time of submission, except between concurrent transactions: we find times of
creation by bisection, and read `SKEW_MS` more on both sides. Jobs in the order of their ends come
from the event log, because an index of ends would make every job more expensive.
"""

import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Final

from windlass.domain.lifecycle.states import (
    ACTIVE_CODES,
    BLOCKED,
    COMPLETED,
    FAILED,
    QUEUED,
    REJECTED,
    RETRYING,
    SUSPENDED,
    TERMINAL_CODES,
)
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobCount, JobFilter, JobPage, JobSort, Place, SortedPage
from windlass.domain.values.errors import InvalidInput
from windlass.store.job_filters import (
    BAD_CODES,
    Candidate,
    JobText,
    RowFilter,
    Source,
    allows,
    asks_record,
    asks_spec,
    check_states,
    decode_shape,
    fitting,
    searches,
    states_of,
    tells,
    tells_state,
)
from windlass.store.job_reads import JobReads, Seen, Stretch

SCAN: Final = 5_000  # rows that one call reads
CHUNK: Final = 500  # rows read at once
WIDEST: Final = 2_000  # rows read at once if few of the earlier ones matched
MIN_EXAMINED: Final = 50  # at least this many of them are examined closely
SEARCHED: Final = 1_000  # rows whose texts one call searches
COUNTED: Final = 10_000  # rows that one count reads
EVENTS: Final = 20_000  # events read by one list in the order of ends
SHAPES: Final = 1_000  # shapes read by one list in the order of priority
SKEW_MS: Final = 600_000  # how far ids and times of creation may be out of order
FIRST: Final = 2**62  # above every id

_DEPTH: Final = "depth:"


class JobLists(JobReads):
    """The job lists of `Views`; each store adds its own reads."""

    growth = 4  # factor by which a list reads more rows if few of the earlier ones matched

    async def jobs(self, wanted: JobFilter, cursor: int, limit: int) -> JobPage:
        """Returns jobs with an id below `cursor` (0: all), newest first.

        Each call reads a bounded number of rows, so a page may be short and still have a `next`.
        """
        above, below = await self._range(wanted)
        below = min(cursor or FIRST, below)
        if wanted.key is not None:
            row_filter = await self._row_filter(wanted)
            ids = await self._keyed(wanted)
            ids = sorted((job for job in ids if job < below), reverse=True)
            return JobPage(await self._matching(wanted, row_filter, await self._light(ids)), 0)
        return await self._walk(wanted, above, below, limit, down=True)

    async def sorted_jobs(
        self, wanted: JobFilter, sort: JobSort, after: Place | None, limit: int
    ) -> SortedPage:
        """Returns jobs after a position of an order, bounded like `jobs`.

        Raises `InvalidInput` if the order cannot show the wanted jobs.
        """
        if wanted.key is not None and sort is not JobSort.NEWEST:
            raise InvalidInput("sort", "newest, for a list by key", sort)
        if sort is JobSort.OLDEST:
            return await self._oldest(wanted, after, limit)
        if sort is JobSort.RUNNING:
            return await self._longest_running(wanted, after, limit)
        if sort is JobSort.PRIORITY:
            return await self._next_taken(wanted, after, limit)
        if sort is JobSort.FINISHED:
            return await self._last_finished(wanted, after, limit)
        page = await self.jobs(wanted, after[1] if after else 0, limit)
        return SortedPage(page.jobs, (0, page.next) if page.next else None, page.looked)

    async def count_jobs(self, wanted: JobFilter) -> JobCount:
        """Counts jobs; reads a bounded number of rows."""
        counted = await self._queued_by_counter(wanted)
        if counted is not None:
            return JobCount(counted, 0, True)
        if wanted.key is not None:
            page = await self.jobs(wanted, 0, COUNTED)
            return JobCount(len(page.jobs), len(page.jobs), True)
        row_filter = await self._row_filter(wanted)
        above, below = await self._range(wanted)
        sources = await self._sources(wanted)
        count = looked = 0
        most = _most(wanted) if asks_record(wanted) or asks_spec(wanted) else COUNTED
        while looked < most:
            rows = await self._next(sources, wanted, below, CHUNK, down=True)
            if not rows or rows[0].job <= above:
                return JobCount(count, looked, True)
            count += await self._count(wanted, row_filter, rows)
            looked += len(rows)
            below = rows[-1].job
        if sources != (Source.JOBS,):
            return JobCount(count, looked, False)
        oldest = await self._oldest_job()
        left = max(0, below - max(above, oldest - 1) - 1)
        return JobCount(count, looked, False, count + round(count / looked * left))

    # The orders

    async def _oldest(self, wanted: JobFilter, after: Place | None, limit: int) -> SortedPage:
        above, below = await self._range(wanted)
        above = max(above, after[1] if after else 0)
        page = await self._walk(wanted, above, below, limit, down=False)
        return SortedPage(page.jobs, (0, page.next) if page.next else None, page.looked)

    async def _walk(
        self, wanted: JobFilter, above: int, below: int, limit: int, *, down: bool
    ) -> JobPage:
        """Returns the first matching jobs between two ids."""
        row_filter = await self._row_filter(wanted)
        sources = await self._sources(wanted)
        told = tells_state(wanted)
        found: list[JobRecord] = []
        ids: list[int] = []
        at, looked, most = below if down else above, 0, _most(wanted)
        widths = itertools.repeat(limit) if _is_any(wanted, row_filter) else self._widths(limit)
        while looked < most:
            stretch = Stretch(at, most - looked, min(next(widths), most - looked), down)
            seen = await self._look(sources, wanted, row_filter, stretch)
            first = seen.rows[0].job if seen.rows else seen.at
            if not seen.at or (first <= above if down else first >= below):
                return JobPage(found or await self._views(ids), 0, looked)
            looked, at = looked + seen.looked, seen.at
            if told:
                some = await self._candidates(wanted, seen.rows, seen.texts)
                ids += some[: limit - len(ids)]
            else:
                found += await self._take(wanted, row_filter, seen.rows, limit - len(found))
            if len(found) + len(ids) == limit:
                return JobPage(
                    found or await self._views(ids), ids[-1] if told else found[-1].facts.id, looked
                )
            if seen.ended:
                return JobPage(found or await self._views(ids), 0, looked)
        return JobPage(found or await self._views(ids), at, looked)

    def _widths(self, limit: int) -> Iterator[int]:
        """Yields how many rows to read at once: few at first, then more and more."""
        first = 2 * max(MIN_EXAMINED, limit)
        return (min(first * self.growth**times, WIDEST) for times in itertools.count())

    async def _longest_running(
        self, wanted: JobFilter, after: Place | None, limit: int
    ) -> SortedPage:
        """Sorts the leases, which are bounded by the fleet's slots."""
        check_states(wanted, JobSort.RUNNING, ACTIVE_CODES)
        row_filter = await self._row_filter(wanted)
        count = limit if _is_any(wanted, row_filter) else SCAN
        places = await self._leases_by_start(after or (-1, 0), count)
        return await self._pick(wanted, row_filter, places, limit, len(places) == count)

    async def _next_taken(self, wanted: JobFilter, after: Place | None, limit: int) -> SortedPage:
        """Merges the first ready jobs of each shape."""
        check_states(wanted, JobSort.PRIORITY, frozenset({QUEUED}))
        allowed = [row.id for row in await self._shapes() if allows(wanted, row.body)]
        if len(allowed) > SHAPES:
            hint = "filter by namespace, queue or task"
            message = f"one of the others: the jobs are of over {SHAPES} kinds"
            raise InvalidInput("sort", message, JobSort.PRIORITY, hint)
        known = RowFilter(frozenset(), None)  # they are queued and have the wanted shapes
        each = limit if _is_any(wanted, known) else CHUNK
        places = await self._ready_first(allowed, after or (-FIRST, 0), each)
        return await self._pick(wanted, known, places[:each], limit, len(places) >= each)

    async def _pick(
        self,
        wanted: JobFilter,
        row_filter: RowFilter,
        places: Sequence[Place],
        limit: int,
        more: bool,
    ) -> SortedPage:
        """Returns the jobs at these positions that match, in this order."""
        found: list[JobRecord] = []
        for start in range(0, len(places), CHUNK):
            part = places[start : start + CHUNK]
            keys = {job: key for key, job in part}
            found += await self._some(wanted, row_filter, list(keys), limit - len(found))
            if len(found) == limit:
                last = found[-1].facts.id
                return SortedPage(found, (keys[last], last), start + len(part))
        return SortedPage(found, places[-1] if more and places else None, len(places))

    async def _last_finished(
        self, wanted: JobFilter, after: Place | None, limit: int
    ) -> SortedPage:
        """Walks the event log backwards; a job's position is the number of its last event."""
        check_states(wanted, JobSort.FINISHED, TERMINAL_CODES)
        row_filter = await self._row_filter(wanted)
        oldest, newest = await self._event_bounds()
        below = after[0] if after else newest + 1
        if after is None and wanted.finished_to is not None:
            below = await self._event_behind(wanted.finished_to + SKEW_MS, oldest, newest)
        above = oldest - 1
        if wanted.finished_from is not None:
            start = await self._event_behind(wanted.finished_from - SKEW_MS, oldest, newest)
            above = max(above, start - CHUNK)
        found: list[JobRecord] = []
        looked, widths = 0, self._widths(limit)
        while looked < EVENTS and below > above + 1:
            start, count = max(above + 1, below - (EVENTS - looked)), next(widths)
            ends = await self._ends_between(start, below, count)
            numbers = {job: number for number, job in reversed(ends)}
            jobs = list(dict.fromkeys(job for _, job in ends))
            found += await self._some(wanted, row_filter, jobs, limit - len(found))
            if len(found) == limit:
                return SortedPage(found, (numbers[found[-1].facts.id], 0), looked + len(ends))
            start = ends[-1][0] if len(ends) == count else start
            looked, below = looked + below - start, start
        return SortedPage(found, (below, 0) if below > above + 1 else None, looked)

    # Finding times

    async def _range(self, wanted: JobFilter) -> tuple[int, int]:
        """Returns two ids; jobs of the wanted times lie strictly between them."""
        above, below = 0, FIRST
        latest = [at for at in (wanted.created_to, wanted.finished_to) if at is not None]
        if wanted.created_from is None and not latest:
            return above, below
        newest = await self._newest_job()
        if latest:
            below = await self._id_behind(min(latest) + SKEW_MS, newest)
        if wanted.created_from is not None:
            above = max(0, await self._id_behind(wanted.created_from - SKEW_MS, newest) - CHUNK)
        return above, below

    async def _id_behind(self, at: int, newest: int) -> int:
        """Returns an id above all jobs created by `at`, too high by less than a chunk."""

        async def is_by_then(job: int) -> bool:
            created = await self._created_up_to(job)
            return created is None or created <= at

        return await _bisect(0, newest + 1, is_by_then)

    async def _event_behind(self, at: int, oldest: int, newest: int) -> int:
        """Returns a number above all events up to `at`, too high by less than a chunk."""

        async def is_by_then(event: int) -> bool:
            found = await self._event_time(event)
            return found is not None and found <= at

        return await _bisect(oldest - 1, newest + 1, is_by_then)

    # Where a list takes its jobs from

    async def _sources(self, wanted: JobFilter) -> tuple[Source, ...] | list[int]:
        """Returns the places that hold all wanted jobs, or the ids if there are few."""
        if wanted.workflow is not None:
            return (Source.WORKFLOW,)
        if wanted.ids:
            return sorted(wanted.ids, reverse=True)
        states = states_of(wanted)
        if states == {QUEUED}:
            few = await self._few_queued(SCAN)
            if few is not None:
                return sorted(few, reverse=True)
        if not states or states & {QUEUED, COMPLETED}:
            return (Source.JOBS,)
        drive = {
            Source.LEASES: ACTIVE_CODES,
            Source.WAITS: {BLOCKED},
            Source.DUE: {RETRYING, SUSPENDED},
            Source.BAD: BAD_CODES,
        }
        return tuple(source for source, holds in drive.items() if states & holds)

    async def _next(
        self,
        sources: tuple[Source, ...] | list[int],
        wanted: JobFilter,
        start: int,
        width: int,
        *,
        down: bool,
    ) -> list[Candidate]:
        """Returns the next candidates below an id, descending, or above it, ascending."""
        if isinstance(sources, list):
            return await self._next_of(sources, start, width, down)
        found = [
            await self._scan(source, start, width, wanted.workflow, down=down) for source in sources
        ]
        if len(found) == 1:
            return found[0]
        merged = merge(*found, key=lambda row: row.job, reverse=down)
        # A blocked job that still runs is in two places.
        return list({row.job: row for row in merged}.values())[:width]

    async def _next_of(
        self, ids: Sequence[int], start: int, width: int, down: bool
    ) -> list[Candidate]:
        if down:
            return await self._light([job for job in ids if job < start][:width])
        behind = [job for job in reversed(ids) if job > start][:width]
        return (await self._light(behind[::-1]))[::-1]

    async def _look(
        self,
        sources: tuple[Source, ...] | list[int],
        wanted: JobFilter,
        row_filter: RowFilter,
        stretch: Stretch,
    ) -> Seen:
        """Returns the next candidates that pass."""
        rows = await self._next(sources, wanted, stretch.start, stretch.width, down=stretch.down)
        ended = len(rows) < stretch.width and (isinstance(sources, list) or len(sources) == 1)
        return Seen(row_filter.passing(rows), len(rows), rows[-1].job if rows else 0, ended)

    async def _row_filter(self, wanted: JobFilter) -> RowFilter:
        """Returns the filter on candidates, with the shapes that it allows."""
        shapes = None
        if not (wanted.namespaces is None and wanted.queue is None and wanted.task is None):
            known = await self._shapes()
            shapes = frozenset(row.id for row in known if allows(wanted, row.body))
        return RowFilter(states_of(wanted), shapes)

    async def _keyed(self, wanted: JobFilter) -> list[int]:
        namespaces = wanted.namespaces
        if namespaces is None:
            known = {decode_shape(row.body).namespace for row in await self._shapes()}
            namespaces = tuple(sorted(known))
        return await self._jobs_of_key(namespaces, wanted.key or "")

    # What matches

    async def _some(
        self, wanted: JobFilter, row_filter: RowFilter, ids: Sequence[int], limit: int
    ) -> list[JobRecord]:
        """Returns the first matching jobs of these, in this order."""
        if _is_any(wanted, row_filter):
            return await self._views(ids[:limit])
        light = {row.job: row for row in await self._light(sorted(ids, reverse=True))}
        rows = [light[job] for job in ids if job in light]
        return await self._take(wanted, row_filter, rows, limit)

    async def _take(
        self, wanted: JobFilter, row_filter: RowFilter, rows: Sequence[Candidate], limit: int
    ) -> list[JobRecord]:
        """Returns the first matching candidates; reads few more than it returns."""
        likely = row_filter.passing(rows)
        close = CHUNK if asks_record(wanted) or asks_spec(wanted) else max(MIN_EXAMINED, limit)
        found: list[JobRecord] = []
        for start in range(0, len(likely), close):
            ids = await self._candidates(wanted, likely[start : start + close])
            while ids and len(found) < limit:
                some, ids = ids[: max(MIN_EXAMINED, limit)], ids[max(MIN_EXAMINED, limit) :]
                found += self._chosen(wanted, await self._views(some))
            if len(found) >= limit:
                break
        return found[:limit]

    async def _matching(
        self, wanted: JobFilter, row_filter: RowFilter, rows: Sequence[Candidate]
    ) -> list[JobRecord]:
        ids = await self._candidates(wanted, row_filter.passing(rows))
        return self._chosen(wanted, await self._views(ids))

    def _chosen(self, wanted: JobFilter, views: Sequence[JobRecord]) -> list[JobRecord]:
        """Returns the jobs in the wanted states; only current ones if the filter says so."""
        states = states_of(wanted)
        if wanted.dead or wanted.current:
            views = [view for view in views if not view.facts.superseded_by]
        return [view for view in views if not states or view.state in states]

    async def _candidates(
        self,
        wanted: JobFilter,
        rows: Sequence[Candidate],
        texts: Mapping[int, JobText] | None = None,
    ) -> list[int]:
        """Returns the jobs that match apart from their states; reads the texts that were not
        given.
        """
        ids = [row.job for row in rows]
        if wanted.ids:
            named = frozenset(wanted.ids)
            ids = [job for job in ids if job in named]
        if asks_spec(wanted):
            specs = await self._specs(ids)
            ids = [job for job in ids if job in specs and tells(wanted, specs[job])]
        if asks_record(wanted):
            if texts is None:
                texts = await self._job_texts(ids)
            ids = fitting(wanted, [texts[job] for job in ids if job in texts])
        return ids

    async def _count(
        self, wanted: JobFilter, row_filter: RowFilter, rows: Sequence[Candidate]
    ) -> int:
        """Counts matching jobs, and reads no more than that needs."""
        if wanted.dead or wanted.current:
            return len(await self._matching(wanted, row_filter, rows))
        ids = await self._candidates(wanted, row_filter.passing(rows))
        if tells_state(wanted):
            return len(ids)
        ended = {row.job: row.ended for row in rows}
        leases = await self._leases(ids)
        waiting = [job for job in ids if job not in leases and not ended[job]]
        found = sorted(await self._standings(waiting), key=lambda row: row.state, reverse=True)
        standing = {row.job: row.state for row in found}
        standing |= {job: lease.state for job, lease in leases.items()}
        return sum((ended[job] or standing.get(job, QUEUED)) in row_filter.states for job in ids)

    async def _queued_by_counter(self, wanted: JobFilter) -> int | None:
        """Returns how many jobs are queued, in one queue or in all, if counters know."""
        plain = JobFilter(states=(QUEUED,), queue=wanted.queue)
        if wanted != plain:
            return None
        depths = await self.queue_depths()
        return sum(depths.values()) if wanted.queue is None else depths.get(wanted.queue, 0)

    async def failed_jobs(self, looked: int) -> list[JobRecord]:
        """Returns failed and rejected jobs without a successor, among the newest that ended
        badly.
        """
        rows = await self._scan(Source.BAD, FIRST, looked, None, down=True)
        ids = [row.job for row in rows if row.ended in (FAILED, REJECTED)]
        records = await self._records(ids)
        found = [records[job] for job in ids if job in records]
        return [record for record in found if not record.facts.superseded_by]

    async def queue_depths(self) -> dict[str, int]:
        """Returns how many jobs are queued in each queue."""
        found = await self._counters()
        return {n.removeprefix(_DEPTH): v for n, v in found.items() if n.startswith(_DEPTH)}


async def _bisect(low: int, high: int, is_low: Callable[[int], Awaitable[bool]]) -> int:
    """Returns a number that is not low, too high by less than a chunk."""
    while high - low > CHUNK:
        middle = (low + high) // 2
        if await is_low(middle):
            low = middle
        else:
            high = middle
    return high


def _most(wanted: JobFilter) -> int:
    """Returns how many rows one call reads: texts take longer than the rest."""
    return SEARCHED if searches(wanted) else SCAN


def _is_any(wanted: JobFilter, row_filter: RowFilter) -> bool:
    """Returns True if every candidate that passes by its columns matches."""
    asks = asks_record(wanted) or asks_spec(wanted) or wanted.dead or wanted.current
    return row_filter.is_any and not asks and not wanted.ids
