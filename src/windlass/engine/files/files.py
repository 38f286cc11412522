"""Logs, artifacts, names and progress: commands about files, beside those of the engine.

Bytes are written to the blobs first and recorded in the store afterwards, so everything the store
refers to exists. A crash between the two leaves an orphan, which retention finds.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec

from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.files import ArtifactRow, NameRow, Progress, UploadRow
from windlass.domain.rows.records import Lease
from windlass.domain.rows.views import accepted_attempt
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound, existing
from windlass.domain.values.names import check_name
from windlass.engine.attempts.writes import (
    Measured,
    Write,
    check_holder,
    held_lease,
    lease_lost,
    measure_all,
)
from windlass.engine.engine import Engine
from windlass.engine.files.artifacts import (
    adopt_upload,
    artifact_key,
    check_digest,
    check_input,
    own_upload,
    put_artifact,
    read_file,
    size_of,
    upload_key,
    write_file,
)
from windlass.engine.files.logs import LogFiles
from windlass.engine.files.stacks import Stacks
from windlass.engine.transaction.arguments import check_id, json_value
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.blobs import Blobs
from windlass.ports.gateway import Holder
from windlass.store.sql.transaction import ReadTx

PROGRESS_LIMIT: Final = 4 * 1024
UPLOAD_TTL_MS: Final = 3_600_000

_shape = msgspec.json.Decoder(Shape).decode


class Files(LogFiles):
    """Writes and reads what jobs produce besides their outcomes."""

    def __init__(self, engine: Engine, blobs: Blobs) -> None:
        super().__init__(engine, blobs)
        self._blobs = blobs
        self._measure = engine.lane(measure_all)
        self.stacks = Stacks(engine, blobs)
        self.stack = self.stacks.answer

    # Progress

    async def progress(self, holder: Holder, value: Any) -> None:
        """Records the progress of the attempt, as any small JSON value."""
        check_holder(holder)
        body = json_value("progress", value, PROGRESS_LIMIT)

        async def apply(work: Work, holder: Holder, lease: Lease | None) -> None:
            if lease is None:
                raise lease_lost(holder)
            row = Progress(holder.job, holder.attempt, body, work.now)
            await work.tx.files.put_progress(row)

        await self._write(Write(holder, apply))

    async def measured(self, holder: Holder, duration_ms: int) -> int | None:
        """Sets the duration of the attempt's media; returns its new time limit."""
        check_holder(holder)
        check_id("duration", duration_ms)
        return await self._measure(Measured(holder, duration_ms))

    # Artifacts

    async def put_artifact(
        self, holder: Holder, name: str, path: Path, sha256: str, content_type: str
    ) -> None:
        """Stores a local file."""
        size = await size_of(path)
        await self.store_artifact(holder, name, read_file(path), sha256, size, content_type)

    async def store_artifact(
        self,
        holder: Holder,
        name: str,
        chunks: AsyncIterator[bytes],
        sha256: str,
        size: int | None,
        content_type: str,
    ) -> ArtifactRow:
        """Stores what `chunks` yields; refuses it unless it matches the declaration."""
        await self._may_add(holder, name, sha256, content_type)
        stored = await put_artifact(self._blobs, chunks, sha256, size)
        return await self._record(holder, name, sha256, stored, content_type)

    async def presign_artifact(self, holder: Holder, name: str) -> str | None:
        """Returns an address to which the worker may upload the file directly, if there is one."""
        await self._may_add(holder, name, "0" * 64, "")
        key = upload_key(holder.job, holder.attempt, name)
        return await self._blobs.presign("PUT", key, UPLOAD_TTL_MS)

    async def adopt_artifact(
        self, holder: Holder, name: str, sha256: str, size: int | None, content_type: str
    ) -> ArtifactRow:
        """Stores what the worker uploaded to such an address; refuses it unless it matches."""
        await self._may_add(holder, name, sha256, content_type)
        key = upload_key(holder.job, holder.attempt, name)
        stored = await adopt_upload(self._blobs, key, sha256, size)
        return await self._record(holder, name, sha256, stored, content_type)

    async def artifacts(self, job: int) -> list[ArtifactRow]:
        """Returns the artifacts of the accepted attempt, by name; empty if there is none yet."""
        check_id("job", job)
        return await self._engine.store.read(lambda tx: visible_artifacts(tx, job))

    async def open_artifact(self, job: int, name: str) -> tuple[ArtifactRow, AsyncIterator[bytes]]:
        """Returns one of them, with its bytes."""
        for row in await self.artifacts(job):
            if row.name == name:
                return row, self._blobs.stream(artifact_key(row.sha256))
        raise NotFound("artifact", name)

    async def open_input(
        self, holder: Holder, job: int, name: str
    ) -> tuple[ArtifactRow, AsyncIterator[bytes]]:
        """Opens an artifact of `job` for a running attempt that declares or waits for it.

        An attempt may also read the files that were uploaded for its own job, by digest.
        """
        check_holder(holder)
        check_id("job", job)
        if job == holder.job:
            row = await self._engine.store.read(lambda tx: own_upload(tx, holder, name))
            return row, self._blobs.stream(artifact_key(row.sha256))
        await self._engine.store.read(lambda tx: check_input(tx, holder, job))
        return await self.open_artifact(job, name)

    async def store_upload(self, upload: UploadRow, chunks: AsyncIterator[bytes]) -> UploadRow:
        """Stores a file that jobs of a namespace may use; refuses it unless it matches."""
        check_digest(upload.sha256)
        config = self._engine.config
        if upload.size > config.upload_limit:
            raise InvalidInput("size", f"at most {config.upload_limit} bytes", upload.size)
        known = await self._engine.store.read(lambda tx: tx.files.uploads(upload.namespace))
        used = sum(row.size for row in known if row.sha256 != upload.sha256)
        if used + upload.size > config.upload_quota:
            raise Conflict(
                "quota",
                f"the uploads of namespace {upload.namespace} have {used} of "
                f"{config.upload_quota} bytes: there is no room for {upload.size}",
            )
        await put_artifact(self._blobs, chunks, upload.sha256, upload.size)
        kind = upload.content_type or "application/octet-stream"
        check_name("content_type", kind)

        async def step(work: Work) -> UploadRow:
            row = upload._replace(content_type=kind, used_at=work.now)
            await work.tx.files.put_upload(row)
            return row

        return await self._engine.run(step)

    async def get_artifact(self, holder: Holder, job: int, name: str, path: Path) -> None:
        """Writes an input of a running attempt to a local file."""
        _, chunks = await self.open_input(holder, job, name)
        await write_file(path, chunks)

    # Names

    async def set_name(self, name: str, job: int, artifact: str) -> NameRow:
        """Points a name, in the job's namespace, to one of its artifacts."""
        check_name("name", name)
        check_id("job", job)

        async def step(work: Work) -> NameRow:
            tx = work.tx
            facts = existing("job", job, (await tx.jobs.share([job])).get(job))
            for row in await visible_artifacts(tx, job):
                if row.name == artifact:
                    namespace = await _namespace(tx, facts.shape)
                    named = NameRow(namespace, name, job, artifact, row.sha256, work.now)
                    await tx.files.set_name(named)
                    return named
            raise NotFound("artifact", artifact)

        return await self._engine.run(step)

    async def _may_add(self, holder: Holder, name: str, sha256: str, content_type: str) -> None:
        check_holder(holder)
        check_name("name", name)
        if not {"", ".", ".."}.isdisjoint(name.split("/")):
            raise InvalidInput("name", "a path below the folder of the artifacts", name)
        check_digest(sha256)
        if content_type:
            check_name("content_type", content_type)
        await self._engine.store.read(lambda tx: held_lease(tx, holder))

    async def _record(
        self, holder: Holder, name: str, sha256: str, size: int, content_type: str
    ) -> ArtifactRow:
        kind = content_type or "application/octet-stream"
        row = ArtifactRow(holder.job, holder.attempt, name, sha256, size, kind)

        async def apply(work: Work, holder: Holder, lease: Lease | None) -> None:
            if lease is None:
                raise lease_lost(holder)
            await work.tx.files.add_artifacts([row])

        await self._write(Write(holder, apply))
        return row


async def visible_artifacts(tx: ReadTx, job: int) -> list[ArtifactRow]:
    """Returns the artifacts of a job's accepted attempt, sorted by name."""
    facts = existing("job", job, (await tx.jobs.read([job])).get(job))
    accepted = accepted_attempt(facts)
    rows = (await tx.files.artifacts([job])).get(job, [])
    return [row for row in rows if row.attempt == accepted]


async def _namespace(tx: ReadTx, shape: int) -> str:
    rows = await tx.catalog.shapes_after(shape - 1)
    return next(_shape(row.body).namespace for row in rows if row.id == shape)
