"""Rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`."""

from collections.abc import Sequence

from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, NameRow, Progress, UploadRow
from windlass.store.sql.session import Role


class Files(Role):
    """`FilesWrite`."""

    __slots__ = ()

    async def log(self, job: int, attempt: int) -> LogRow | None:
        return await self._session.row(LogRow, "log", job, attempt)

    async def put_log(self, row: LogRow) -> None:
        await self._session.execute("put_log", *row)

    async def logs(self, jobs: Sequence[int]) -> dict[int, list[LogRow]]:
        found: dict[int, list[LogRow]] = {}
        if jobs:
            for row in await self._session.rows(LogRow, "logs_of_jobs", self._session.ids(jobs)):
                found.setdefault(row.job, []).append(row)
        return found

    async def streaming(self, after: int, count: int) -> list[LogRow]:
        return await self._session.rows(LogRow, "streaming_logs", after, count)

    async def lost_logs(self, count: int) -> list[LogRow]:
        return await self._session.rows(LogRow, "lost_logs", count)

    async def add_artifacts(self, rows: Sequence[ArtifactRow]) -> None:
        await self._session.many("put_artifacts", "iiooio", rows)

    async def artifacts(self, jobs: Sequence[int]) -> dict[int, list[ArtifactRow]]:
        found: dict[int, list[ArtifactRow]] = {}
        if jobs:
            wanted = self._session.ids(jobs)
            for row in await self._session.rows(ArtifactRow, "artifacts_of_jobs", wanted):
                found.setdefault(row.job, []).append(row)
        return found

    async def set_name(self, row: NameRow) -> None:
        await self._session.execute("put_name", *row)

    async def names(self, namespace: str | None) -> list[NameRow]:
        if namespace is None:
            return await self._session.rows(NameRow, "all_names")
        return await self._session.rows(NameRow, "names_of_namespace", namespace)

    async def lookup(self, namespace: str, names: Sequence[str]) -> dict[str, NameRow]:
        if not names:
            return {}
        wanted = self._session.texts(names)
        rows = await self._session.rows(NameRow, "lookup_names", namespace, wanted)
        return {row.name: row for row in rows}

    async def referenced(self, digests: Sequence[str]) -> set[str]:
        if not digests:
            return set()
        rows = await self._session.fetch("referenced", self._session.texts(digests))
        return {row[0] for row in rows}

    async def uploads(self, namespace: str | None) -> list[UploadRow]:
        if namespace is None:
            return await self._session.rows(UploadRow, "all_uploads")
        return await self._session.rows(UploadRow, "uploads_of_namespace", namespace)

    async def put_upload(self, row: UploadRow) -> None:
        await self._session.execute("put_upload", *row)

    async def use_uploads(
        self, namespace: str, digests: Sequence[str], now: int
    ) -> dict[str, UploadRow]:
        if not digests:
            return {}
        wanted = self._session.texts(sorted(digests))
        rows = await self._session.rows(UploadRow, "use_uploads", namespace, wanted, now)
        return {row.sha256: row for row in rows}

    async def trim_uploads(self, used_before: int, count: int) -> int:
        return len(await self._session.fetch("trim_uploads", used_before, count))

    async def put_progress(self, row: Progress) -> None:
        await self._session.execute("put_progress", *row)

    async def progress(self, jobs: Sequence[int]) -> dict[int, Progress]:
        if not jobs:
            return {}
        rows = await self._session.rows(Progress, "progress_of_jobs", self._session.ids(jobs))
        return {row.job: row for row in rows}

    async def put_dynamic(self, rows: Sequence[Dynamic]) -> None:
        await self._session.many("put_dynamic", "iio", rows)

    async def dynamic(self, jobs: Sequence[int]) -> dict[int, Dynamic]:
        if not jobs:
            return {}
        rows = await self._session.rows(Dynamic, "dynamic_of_jobs", self._session.ids(jobs))
        return {row.job: row for row in rows}
