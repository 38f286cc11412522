"""Rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`."""

from collections.abc import Sequence

from windlass.domain.rows.files import (
    UPLOADED,
    ArtifactRow,
    Dynamic,
    LogRow,
    LogState,
    NameRow,
    Progress,
    UploadRow,
)
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

    async def lost_logs(self, count: int) -> list[LogRow]:
        rows = reversed(self._tables.logs.between((), None))
        return [row for row in rows if row.state == LogState.LOST][:count]

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
        used |= {row.sha256 for row in self._tables.uploads}
        return used & set(digests)

    async def uploads(self, namespace: str | None) -> list[UploadRow]:
        return sorted(row for row in self._tables.uploads if namespace in (None, row.namespace))

    async def put_upload(self, row: UploadRow) -> None:
        self._tables.uploads.put((row.namespace, row.sha256), row)

    async def use_uploads(
        self, namespace: str, digests: Sequence[str], now: int
    ) -> dict[str, UploadRow]:
        found: dict[str, UploadRow] = {}
        for digest in digests:
            row = self._tables.uploads.get((namespace, digest))
            if row is not None:
                found[digest] = row._replace(used_at=now)
                await self.put_upload(found[digest])
        return found

    async def trim_uploads(self, used_before: int, count: int) -> int:
        rows = (row for files in self._tables.artifacts for row in files.values())
        used = {row.sha256 for row in rows if row.attempt == UPLOADED}
        old = [
            row
            for row in sorted(self._tables.uploads, key=lambda row: (row.used_at, row))
            if row.used_at < used_before and row.sha256 not in used
        ]
        for row in old[:count]:
            self._tables.uploads.pop((row.namespace, row.sha256))
        return len(old[:count])

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
