"""The role of a transaction that keeps what is known of logs, artifacts and names."""

from collections.abc import Sequence
from typing import Protocol

from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, NameRow, Progress, UploadRow


class FilesRead(Protocol):
    """Reads rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`.

    Nothing here takes locks: the engine holds the lease of the attempt it writes about.
    """

    async def log(self, job: int, attempt: int) -> LogRow | None: ...

    async def logs(self, jobs: Sequence[int]) -> dict[int, list[LogRow]]:
        """Returns the logs of each job that has any, ascending by attempt."""
        ...

    async def streaming(self, after: int, count: int) -> list[LogRow]:
        """Logs that have not ended, of jobs behind id `after`, ascending."""
        ...

    async def lost_logs(self, count: int) -> list[LogRow]:
        """Returns logs that nobody will complete, those of the newest jobs first."""
        ...

    async def artifacts(self, jobs: Sequence[int]) -> dict[int, list[ArtifactRow]]:
        """Returns those of all attempts of each job, ascending by attempt and name."""
        ...

    async def names(self, namespace: str | None) -> list[NameRow]:
        """Returns all names, or those of one namespace, ascending."""
        ...

    async def lookup(self, namespace: str, names: Sequence[str]) -> dict[str, NameRow]:
        """Returns what stands for these names; those not set are absent."""
        ...

    async def referenced(self, digests: Sequence[str]) -> set[str]:
        """Returns those of these SHA-256 digests that an artifact, name or upload refers to."""
        ...

    async def uploads(self, namespace: str | None) -> list[UploadRow]:
        """Returns all uploads, or those of one namespace, ascending."""
        ...

    async def progress(self, jobs: Sequence[int]) -> dict[int, Progress]: ...

    async def dynamic(self, jobs: Sequence[int]) -> dict[int, Dynamic]: ...


class FilesWrite(FilesRead, Protocol):
    """Reads and writes rows of `logs`, `artifacts`, `names`, `progress` and `dynamic`.

    Nothing here takes locks: the engine holds the lease of the attempt it writes about.
    """

    async def put_log(self, row: LogRow) -> None:
        """Writes a log's row, new or changed."""
        ...

    async def add_artifacts(self, rows: Sequence[ArtifactRow]) -> None:
        """Adds artifacts; a name that the attempt has used before is replaced."""
        ...

    async def set_name(self, row: NameRow) -> None: ...

    async def put_upload(self, row: UploadRow) -> None:
        """Records an upload, new or again."""
        ...

    async def use_uploads(
        self, namespace: str, digests: Sequence[str], now: int
    ) -> dict[str, UploadRow]:
        """Notes that these are used now; returns those that exist in the namespace."""
        ...

    async def trim_uploads(self, used_before: int, count: int) -> int:
        """Removes uploads that no job has and that were last used before; returns how many."""
        ...

    async def put_progress(self, row: Progress) -> None:
        """Stores a job's progress; only the newest is kept."""
        ...

    async def put_dynamic(self, rows: Sequence[Dynamic]) -> None:
        """Stores an attempt's dynamic data; only that of the newest attempt is kept."""
        ...
