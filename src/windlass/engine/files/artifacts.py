"""Artifacts: files under their own SHA-256, which we verify before anyone can read one.

A running attempt may read those that its job declares or waits for. A worker is trusted with the
jobs it holds and nothing else, and a job never reads beyond its namespace, whatever its arguments
name.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from windlass.domain.rows.files import UPLOADED, ArtifactRow
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.engine.attempts.writes import held_lease
from windlass.ports.blobs import Blobs
from windlass.ports.gateway import Holder
from windlass.store.sql.transaction import ReadTx

FOLDER: Final = "artifacts"
UPLOADS: Final = "uploads"
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_JOB: Final = "job"
_decode = msgspec.json.Decoder().decode
CHUNK: Final = 256 * 1024


def check_digest(sha256: str, field: str = "sha256") -> str:
    """Returns the digest if it is valid."""
    if not isinstance(sha256, str) or not _DIGEST.match(sha256):
        raise InvalidInput(field, "a SHA-256 as 64 lower-case hexadecimal digits", sha256)
    return sha256


def artifact_key(sha256: str) -> str:
    """Returns the blob key of a file with this digest."""
    return f"{FOLDER}/{check_digest(sha256)[:2]}/{sha256}"


def digest_of(key: str) -> str:
    """Returns the digest of a local file."""
    return key.rpartition("/")[2]


def upload_key(job: int, attempt: int, name: str) -> str:
    """Returns the blob key to which a worker may upload a file directly."""
    named = hashlib.sha256(name.encode()).hexdigest()
    return f"{UPLOADS}/{job}/{attempt}/{named}"


async def put_artifact(
    blobs: Blobs, chunks: AsyncIterator[bytes], sha256: str, size: int | None = None
) -> int:
    """Stores a file under its digest and returns its size; refuses a file with another digest."""
    return await blobs.put_stream(artifact_key(sha256), proved(chunks, sha256, size))


async def adopt_upload(blobs: Blobs, key: str, sha256: str, size: int | None = None) -> int:
    """Stores a file that a worker uploaded directly under `key`.

    We read it once and store what we read, so nobody can exchange it in between.
    """
    kept = await put_artifact(blobs, blobs.stream(key), sha256, size)
    await blobs.delete([key])
    return kept


async def proved(
    chunks: AsyncIterator[bytes], sha256: str, size: int | None
) -> AsyncIterator[bytes]:
    """Yields the same chunks; raises at the end unless they match the declared file."""
    digest = hashlib.sha256()
    seen = 0
    async for chunk in chunks:
        digest.update(chunk)
        seen += len(chunk)
        if size is not None and seen > size:
            raise InvalidInput("size", f"the declared {size} bytes", "more")
        yield chunk
    if size is not None and seen != size:
        raise InvalidInput("size", f"the declared {size} bytes", seen)
    if digest.hexdigest() != sha256:
        raise InvalidInput("sha256", "the digest of the bytes that were sent", sha256)


async def check_input(tx: ReadTx, holder: Holder, job: int) -> None:
    """Refuses artifacts of `job` unless the attempt is held and uses them.

    An artifact it may not read looks as if it did not exist.
    """
    await held_lease(tx, holder)
    bodies = await tx.jobs.specs(sorted({holder.job, job}))
    if holder.job not in bodies or job not in bodies:
        raise NotFound("job", job)
    spec, other = _decode(bodies[holder.job]), _decode(bodies[job])
    if _namespace(spec) != _namespace(other):
        raise NotFound("job", job)
    if job in _declared(spec):
        return
    row = (await tx.files.dynamic([holder.job])).get(holder.job)
    found = set() if row is None or row.attempt != holder.attempt else _jobs_in(_decode(row.body))
    if job not in found:
        raise NotFound("job", job)


async def own_upload(tx: ReadTx, holder: Holder, digest: str) -> ArtifactRow:
    """Returns a file that was uploaded for the job of an attempt that is held."""
    await held_lease(tx, holder)
    rows = (await tx.files.artifacts([holder.job])).get(holder.job, [])
    for row in rows:
        if (row.attempt, row.name) == (UPLOADED, digest):
            return row
    raise NotFound("upload", digest)


def _namespace(spec: dict[str, Any]) -> str:
    return str(spec.get("namespace", "default"))


def _declared(spec: dict[str, Any]) -> set[int]:
    """Returns the jobs that a spec waits for or names in its arguments."""
    waited = {*spec.get("after", ()), *spec.get("after_any", ())}
    return {job for job in waited if isinstance(job, int)} | _jobs_in(spec.get("args"))


def _jobs_in(value: object) -> set[int]:
    return set(_walk(value))


def _walk(value: object) -> Iterator[int]:
    if isinstance(value, dict):
        job = value.get(_JOB)
        if isinstance(job, int):
            yield job
        for item in value.values():
            yield from _walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)


async def read_file(path: Path) -> AsyncIterator[bytes]:
    """Yields the bytes of a file."""
    run = asyncio.get_running_loop().run_in_executor
    file = await run(None, lambda: path.open("rb"))
    try:
        while chunk := await run(None, file.read, CHUNK):
            yield chunk
    finally:
        file.close()


async def write_file(path: Path, chunks: AsyncIterator[bytes]) -> None:
    """Writes a file; removes it again if it was not written completely."""
    run = asyncio.get_running_loop().run_in_executor
    file = await run(None, lambda: path.open("wb"))
    try:
        async for chunk in chunks:
            await run(None, file.write, chunk)
        file.close()
    except BaseException:
        file.close()
        await run(None, partial(path.unlink, missing_ok=True))
        raise


async def size_of(path: Path) -> int:
    """Returns the size of a file in bytes."""
    facts = await asyncio.get_running_loop().run_in_executor(None, path.stat)
    return facts.st_size
