"""How SQLite looks at jobs: reads are cheap, so a few small ones make a view."""

from collections.abc import Sequence

from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobFilter, Place
from windlass.store.job_filters import Candidate, RowFilter, Source, make_view
from windlass.store.job_reads import Seen, Stretch
from windlass.store.sql.views import Views


class SqliteViews(Views):
    """Implements `Views` on SQLite: jobs are brought together from one read of each table."""

    async def _look(
        self,
        sources: tuple[Source, ...] | list[int],
        wanted: JobFilter,
        row_filter: RowFilter,
        stretch: Stretch,
    ) -> Seen:
        if sources != (Source.JOBS,) or row_filter.is_open:
            return await super()._look(sources, wanted, row_filter, stretch)
        query = "scan_ended" if stretch.down else "scan_ended_up"
        rows = await self._session.rows(Candidate, query, stretch.start, stretch.width)
        ended = len(rows) < stretch.width
        return Seen(row_filter.passing(rows), len(rows), rows[-1].job if rows else 0, ended)

    async def _ready_first(self, shapes: Sequence[int], after: Place, count: int) -> list[Place]:
        probes = [(shape, *after, count) for shape in shapes]
        rows = await self._session.fetch_many("ready_first", "iiii", probes)
        return sorted((rank, job) for rank, job in rows)[:count]

    async def _views(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns these jobs in this order."""
        if not ids:
            return []
        records = await self._records(ids)
        unfinished = [job for job in ids if job in records and records[job].facts.is_open]
        leases = await self._leases(unfinished)
        waiting = [job for job in unfinished if job not in leases]
        found = sorted(await self._standings(waiting), key=lambda row: row.state, reverse=True)
        places = {row.job: row for row in found}
        last = {record.facts.worker for record in records.values()}
        held = {lease.worker for lease in leases.values()}
        names = await self.worker_names({n for n in last if n is not None} | held)
        logs, progress = await self._files.logs(ids), await self._files.progress(ids)
        dynamic = await self._files.dynamic(ids)
        return [
            make_view(
                records[job], leases.get(job), places.get(job), names, logs.get(job, ()),
                progress.get(job), dynamic.get(job),
            )
            for job in ids
            if job in records
        ]  # fmt: skip
