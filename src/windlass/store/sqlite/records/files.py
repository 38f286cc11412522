"""Rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`."""

from collections.abc import Sequence

import apsw

from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, NameRow, Progress, UploadRow
from windlass.store.sqlite.bulk import BulkInsert
from windlass.store.sqlite.rows import (
    as_artifact,
    as_dynamic,
    as_log,
    as_name,
    as_progress,
    integers,
)
from windlass.store.sqlite.statements import QUERIES

_ARTIFACTS = BulkInsert(QUERIES["put_artifacts"])
_DYNAMIC = BulkInsert(QUERIES["put_dynamic"])


class SqliteFiles:
    """`FilesWrite` over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._executemany = connection.executemany

    async def log(self, job: int, attempt: int) -> LogRow | None:
        rows = self._execute(QUERIES["log"], (job, attempt)).fetchall()
        return as_log(rows[0]) if rows else None

    async def put_log(self, row: LogRow) -> None:
        self._execute(QUERIES["put_log"], row)

    async def logs(self, jobs: Sequence[int]) -> dict[int, list[LogRow]]:
        found: dict[int, list[LogRow]] = {}
        if jobs:
            for row in self._execute(QUERIES["logs_of_jobs"], (integers(sorted(set(jobs))),)):
                found.setdefault(row[0], []).append(as_log(row))
        return found

    async def streaming(self, after: int, count: int) -> list[LogRow]:
        return list(map(as_log, self._execute(QUERIES["streaming_logs"], (after, count))))

    async def lost_logs(self, count: int) -> list[LogRow]:
        return list(map(as_log, self._execute(QUERIES["lost_logs"], (count,))))

    async def add_artifacts(self, rows: Sequence[ArtifactRow]) -> None:
        _ARTIFACTS.run(self._connection, rows)

    async def artifacts(self, jobs: Sequence[int]) -> dict[int, list[ArtifactRow]]:
        found: dict[int, list[ArtifactRow]] = {}
        if jobs:
            wanted = integers(sorted(set(jobs)))
            for row in self._execute(QUERIES["artifacts_of_jobs"], (wanted,)):
                found.setdefault(row[0], []).append(as_artifact(row))
        return found

    async def set_name(self, row: NameRow) -> None:
        self._execute(QUERIES["put_name"], row)

    async def names(self, namespace: str | None) -> list[NameRow]:
        if namespace is None:
            return list(map(as_name, self._execute(QUERIES["all_names"])))
        return list(map(as_name, self._execute(QUERIES["names_of_namespace"], (namespace,))))

    async def lookup(self, namespace: str, names: Sequence[str]) -> dict[str, NameRow]:
        wanted = [(namespace, name) for name in names]
        found = map(as_name, self._executemany(QUERIES["name"], wanted))
        return {row.name: row for row in found}

    async def referenced(self, digests: Sequence[str]) -> set[str]:
        rows = self._executemany(QUERIES["referenced"], [(digest,) for digest in digests])
        return {str(row[0]) for row in rows}

    async def uploads(self, namespace: str | None) -> list[UploadRow]:
        if namespace is None:
            return list(map(UploadRow._make, self._execute(QUERIES["all_uploads"])))
        rows = self._execute(QUERIES["uploads_of_namespace"], (namespace,))
        return list(map(UploadRow._make, rows))

    async def put_upload(self, row: UploadRow) -> None:
        self._execute(QUERIES["put_upload"], row)

    async def use_uploads(
        self, namespace: str, digests: Sequence[str], now: int
    ) -> dict[str, UploadRow]:
        wanted = [(namespace, digest, now) for digest in digests]
        rows = map(UploadRow._make, self._executemany(QUERIES["use_upload"], wanted))
        return {row.sha256: row for row in rows}

    async def trim_uploads(self, used_before: int, count: int) -> int:
        return len(self._execute(QUERIES["trim_uploads"], (used_before, count)).fetchall())

    async def put_progress(self, row: Progress) -> None:
        self._execute(QUERIES["put_progress"], row)

    async def progress(self, jobs: Sequence[int]) -> dict[int, Progress]:
        if not jobs:
            return {}
        rows = self._execute(QUERIES["progress_of_jobs"], (integers(sorted(jobs)),))
        return {row[0]: as_progress(row) for row in rows}

    async def put_dynamic(self, rows: Sequence[Dynamic]) -> None:
        _DYNAMIC.run(self._connection, rows)

    async def dynamic(self, jobs: Sequence[int]) -> dict[int, Dynamic]:
        if not jobs:
            return {}
        rows = self._execute(QUERIES["dynamic_of_jobs"], (integers(sorted(jobs)),))
        return {row[0]: as_dynamic(row) for row in rows}
