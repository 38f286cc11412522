"""Rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`."""

from collections.abc import Sequence

from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, NameRow, Progress, UploadRow
from windlass.store.postgres.columns import ascending, integers
from windlass.store.postgres.session import Session


class PostgresFiles:
    """`FilesWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def log(self, job: int, attempt: int) -> LogRow | None:
        rows = await self._session.fetch("log", job, attempt)
        return LogRow._make(rows[0]) if rows else None

    async def put_log(self, row: LogRow) -> None:
        await self._session.execute("put_log", *row)

    async def logs(self, jobs: Sequence[int]) -> dict[int, list[LogRow]]:
        found: dict[int, list[LogRow]] = {}
        if jobs:
            for row in await self._session.fetch("logs_of_jobs", ascending(jobs)):
                found.setdefault(row[0], []).append(LogRow._make(row))
        return found

    async def streaming(self, after: int, count: int) -> list[LogRow]:
        rows = await self._session.fetch("streaming_logs", after, count)
        return list(map(LogRow._make, rows))

    async def lost_logs(self, count: int) -> list[LogRow]:
        return list(map(LogRow._make, await self._session.fetch("lost_logs", count)))

    async def add_artifacts(self, rows: Sequence[ArtifactRow]) -> None:
        if rows:
            jobs, attempts, names, digests, sizes, types = zip(*rows, strict=True)
            args = (integers(jobs), integers(attempts), names, digests, integers(sizes), types)
            await self._session.execute("put_artifacts", *args)

    async def artifacts(self, jobs: Sequence[int]) -> dict[int, list[ArtifactRow]]:
        found: dict[int, list[ArtifactRow]] = {}
        if jobs:
            for row in await self._session.fetch("artifacts_of_jobs", ascending(jobs)):
                found.setdefault(row[0], []).append(ArtifactRow._make(row))
        return found

    async def set_name(self, row: NameRow) -> None:
        await self._session.execute("put_name", *row)

    async def names(self, namespace: str | None) -> list[NameRow]:
        return list(map(NameRow._make, await self._session.fetch("names", namespace)))

    async def lookup(self, namespace: str, names: Sequence[str]) -> dict[str, NameRow]:
        if not names:
            return {}
        rows = await self._session.fetch("lookup_names", namespace, list(names))
        return {row[1]: NameRow._make(row) for row in rows}

    async def referenced(self, digests: Sequence[str]) -> set[str]:
        if not digests:
            return set()
        return {row[0] for row in await self._session.fetch("referenced", list(digests))}

    async def uploads(self, namespace: str | None) -> list[UploadRow]:
        return list(map(UploadRow._make, await self._session.fetch("uploads", namespace)))

    async def put_upload(self, row: UploadRow) -> None:
        await self._session.execute("put_upload", *row)

    async def use_uploads(
        self, namespace: str, digests: Sequence[str], now: int
    ) -> dict[str, UploadRow]:
        if not digests:
            return {}
        rows = await self._session.fetch("use_uploads", namespace, sorted(digests), now)
        return {row[1]: UploadRow._make(row) for row in rows}

    async def trim_uploads(self, used_before: int, count: int) -> int:
        return len(await self._session.fetch("trim_uploads", used_before, count))

    async def put_progress(self, row: Progress) -> None:
        await self._session.execute("put_progress", *row)

    async def progress(self, jobs: Sequence[int]) -> dict[int, Progress]:
        if not jobs:
            return {}
        rows = await self._session.fetch("progress_of_jobs", ascending(jobs))
        return {row[0]: Progress._make(row) for row in rows}

    async def put_dynamic(self, rows: Sequence[Dynamic]) -> None:
        if rows:
            jobs, attempts, bodies = zip(*rows, strict=True)
            await self._session.execute("put_dynamic", integers(jobs), integers(attempts), bodies)

    async def dynamic(self, jobs: Sequence[int]) -> dict[int, Dynamic]:
        if not jobs:
            return {}
        rows = await self._session.fetch("dynamic_of_jobs", ascending(jobs))
        return {row[0]: Dynamic._make(row) for row in rows}
