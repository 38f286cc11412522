"""Rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`."""

from collections.abc import Sequence

from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, NameRow, Progress, UploadRow
from windlass.store.sql.session import Role


class FilesRead(Role):
    """Reads rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`.

    Nothing here takes locks: the engine holds the lease of the attempt it writes about.
    """

    __slots__ = ()

    async def log(self, job: int, attempt: int) -> LogRow | None:
        return await self._session.row(LogRow, "log", job, attempt)

    async def logs(self, jobs: Sequence[int]) -> dict[int, list[LogRow]]:
        """Returns the logs of each job that has any, ascending by attempt."""
        found: dict[int, list[LogRow]] = {}
        if jobs:
            for row in await self._session.rows(LogRow, "logs_of_jobs", self._session.ids(jobs)):
                found.setdefault(row.job, []).append(row)
        return found

    async def streaming(self, after: int, count: int) -> list[LogRow]:
        """Returns logs that have not ended, of jobs after id `after`, ascending."""
        return await self._session.rows(LogRow, "streaming_logs", after, count)

    async def lost_logs(self, count: int) -> list[LogRow]:
        """Returns logs that nobody will complete, newest jobs first."""
        return await self._session.rows(LogRow, "lost_logs", count)

    async def artifacts(self, jobs: Sequence[int]) -> dict[int, list[ArtifactRow]]:
        """Returns the artifacts of all attempts of each job, ascending by attempt and name."""
        found: dict[int, list[ArtifactRow]] = {}
        if jobs:
            wanted = self._session.ids(jobs)
            for row in await self._session.rows(ArtifactRow, "artifacts_of_jobs", wanted):
                found.setdefault(row.job, []).append(row)
        return found

    async def names(self, namespace: str | None) -> list[NameRow]:
        """Returns all names, or those of one namespace, ascending."""
        if namespace is None:
            return await self._session.rows(NameRow, "all_names")
        return await self._session.rows(NameRow, "names_of_namespace", namespace)

    async def lookup(self, namespace: str, names: Sequence[str]) -> dict[str, NameRow]:
        """Returns the rows of these names; unset names are absent."""
        if not names:
            return {}
        wanted = self._session.texts(names)
        rows = await self._session.rows(NameRow, "lookup_names", namespace, wanted)
        return {row.name: row for row in rows}

    async def referenced(self, digests: Sequence[str]) -> set[str]:
        """Returns the digests (SHA-256) that an artifact, name or upload refers to."""
        if not digests:
            return set()
        rows = await self._session.fetch("referenced", self._session.texts(digests))
        return {row[0] for row in rows}

    async def uploads(self, namespace: str | None) -> list[UploadRow]:
        """Returns all uploads, or those of one namespace, ascending."""
        if namespace is None:
            return await self._session.rows(UploadRow, "all_uploads")
        return await self._session.rows(UploadRow, "uploads_of_namespace", namespace)

    async def progress(self, jobs: Sequence[int]) -> dict[int, Progress]:
        if not jobs:
            return {}
        rows = await self._session.rows(Progress, "progress_of_jobs", self._session.ids(jobs))
        return {row.job: row for row in rows}

    async def dynamic(self, jobs: Sequence[int]) -> dict[int, Dynamic]:
        if not jobs:
            return {}
        rows = await self._session.rows(Dynamic, "dynamic_of_jobs", self._session.ids(jobs))
        return {row.job: row for row in rows}


class Files(FilesRead):
    """Reads and writes rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`.

    Nothing here takes locks: the engine holds the lease of the attempt it writes about.
    """

    __slots__ = ()

    async def put_log(self, row: LogRow) -> None:
        """Writes a log's row, new or changed."""
        await self._session.execute("put_log", *row)

    async def add_artifacts(self, rows: Sequence[ArtifactRow]) -> None:
        """Adds artifacts; replaces those whose names the attempt has used before."""
        await self._session.many("put_artifacts", "iiooio", rows)

    async def set_name(self, row: NameRow) -> None:
        await self._session.execute("put_name", *row)

    async def put_upload(self, row: UploadRow) -> None:
        """Records an upload, new or again."""
        await self._session.execute("put_upload", *row)

    async def use_uploads(
        self, namespace: str, digests: Sequence[str], now: int
    ) -> dict[str, UploadRow]:
        """Records that these are used now; returns those that exist in the namespace."""
        if not digests:
            return {}
        wanted = self._session.texts(sorted(digests))
        rows = await self._session.rows(UploadRow, "use_uploads", namespace, wanted, now)
        return {row.sha256: row for row in rows}

    async def trim_uploads(self, used_before: int, count: int) -> int:
        """Removes uploads that no job uses and that were last used before a time; returns how
        many.
        """
        return len(await self._session.fetch("trim_uploads", used_before, count))

    async def put_progress(self, row: Progress) -> None:
        """Stores a job's progress; only the newest is kept."""
        await self._session.execute("put_progress", *row)

    async def put_dynamic(self, rows: Sequence[Dynamic]) -> None:
        """Stores an attempt's dynamic data; only that of the newest attempt is kept."""
        await self._session.many("put_dynamic", "iio", rows)
