"""Rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`."""

from collections.abc import Sequence

from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, NameRow, Progress, UploadRow
from windlass.store.sql.session import Role, of_ids, query


class Files(Role):
    """Reads and writes rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`.

    Nothing here takes locks: the engine holds the lease of the attempt it writes about.
    """

    __slots__ = ()

    log = query("log", int, int).row(LogRow)
    """Returns the log of a job's attempt."""

    logs = of_ids("logs_of_jobs").lists(LogRow)
    """Returns the logs of each job that has any, ascending by attempt."""

    streaming = query("streaming_logs", int, int).rows(LogRow)
    """Returns logs that have not ended, of jobs above an id, ascending, up to a number."""

    lost_logs = query("lost_logs", int).rows(LogRow)
    """Returns up to a number of logs that nobody will complete, newest jobs first."""

    artifacts = of_ids("artifacts_of_jobs").lists(ArtifactRow)
    """Returns the artifacts of all attempts of each job, ascending by attempt and name."""

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

    progress = of_ids("progress_of_jobs").by_id(Progress)
    dynamic = of_ids("dynamic_of_jobs").by_id(Dynamic)

    put_log = query("put_log").record(LogRow)
    """Writes a log's row, new or changed."""

    add_artifacts = query("put_artifacts").many("iiooio", ArtifactRow)
    """Adds artifacts; replaces those whose names the attempt has used before."""

    set_name = query("put_name").record(NameRow)

    put_upload = query("put_upload").record(UploadRow)
    """Records an upload, new or again."""

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

    put_progress = query("put_progress").record(Progress)
    """Stores a job's progress; only the newest is kept."""

    put_dynamic = query("put_dynamic").many("iio", Dynamic)
    """Stores an attempt's dynamic data; only that of the newest attempt is kept."""
