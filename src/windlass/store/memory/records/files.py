"""Rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`."""

from collections.abc import Sequence

from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, LogState, NameRow, Progress
from windlass.store.memory.tables import Tables


class MemoryFiles:
    """`FilesWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def log(self, job: int, attempt: int) -> LogRow | None:
        return self._tables.logs.get((job, attempt))

    async def put_log(self, row: LogRow) -> None:
        self._tables.logs.put((row.job, row.attempt), row)

    async def logs(self, jobs: Sequence[int]) -> dict[int, list[LogRow]]:
        found = {job: self._tables.logs.between((job,), (job + 1,)) for job in sorted(jobs)}
        return {job: rows for job, rows in found.items() if rows}

    async def streaming(self, after: int, count: int) -> list[LogRow]:
        rows = self._tables.logs.between((after + 1,), None)
        return [row for row in rows if row.state == LogState.STREAMING][:count]

    async def add_artifacts(self, rows: Sequence[ArtifactRow]) -> None:
        for row in rows:
            known = self._tables.artifacts.get(row.job) or {}
            self._tables.artifacts.put(row.job, {**known, (row.attempt, row.name): row})

    async def artifacts(self, jobs: Sequence[int]) -> dict[int, list[ArtifactRow]]:
        found = {job: self._tables.artifacts.get(job) for job in sorted(jobs)}
        return {job: sorted(rows.values()) for job, rows in found.items() if rows}

    async def set_name(self, row: NameRow) -> None:
        self._tables.names.put((row.namespace, row.name), row)

    async def names(self, namespace: str | None) -> list[NameRow]:
        return sorted(row for row in self._tables.names if namespace in (None, row.namespace))

    async def lookup(self, namespace: str, names: Sequence[str]) -> dict[str, NameRow]:
        found = (self._tables.names.get((namespace, name)) for name in names)
        return {row.name: row for row in found if row is not None}

    async def referenced(self, digests: Sequence[str]) -> set[str]:
        used = {row.sha256 for rows in self._tables.artifacts for row in rows.values()}
        used |= {row.sha256 for row in self._tables.names}
        return used & set(digests)

    async def put_progress(self, row: Progress) -> None:
        self._tables.progress.put(row.job, row)

    async def progress(self, jobs: Sequence[int]) -> dict[int, Progress]:
        found = (self._tables.progress.get(job) for job in sorted(jobs))
        return {row.job: row for row in found if row is not None}

    async def put_dynamic(self, rows: Sequence[Dynamic]) -> None:
        for row in rows:
            self._tables.dynamic.put(row.job, row)

    async def dynamic(self, jobs: Sequence[int]) -> dict[int, Dynamic]:
        found = (self._tables.dynamic.get(job) for job in sorted(jobs))
        return {row.job: row for row in found if row is not None}
