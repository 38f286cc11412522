"""How SQLite looks at jobs: reads are cheap, so a few small ones make a view."""

from collections.abc import Sequence

from windlass.domain.rows.views import JobFilter, Place
from windlass.store.job_filters import Candidate, RowFilter, Source
from windlass.store.job_reads import Seen, Stretch
from windlass.store.job_views import FilesOf, GatheredViews
from windlass.store.sql.views import SqlViews


class SqliteViews(SqlViews, GatheredViews):
    """Implements `Views` on SQLite."""

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

    async def _files_of(self, ids: Sequence[int]) -> FilesOf:
        files = self._files
        return FilesOf(await files.logs(ids), await files.progress(ids), await files.dynamic(ids))
