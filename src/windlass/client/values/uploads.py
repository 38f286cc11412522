"""Files of this machine on their way to jobs."""

import asyncio
import hashlib
import mimetypes
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.tasks.references import FILE
from windlass.domain.values.errors import InvalidInput
from windlass.tasks.local_files import FilesJob, LocalFile, UploadedFile, placed

if TYPE_CHECKING:
    from windlass.client.service import Service

CHUNK: Final = 1 << 20


class Description(NamedTuple):
    """What a server is told of a file before it comes."""

    sha256: str
    size: int
    content_type: str


async def described(path: Path) -> Description:
    """Reads a file once, beside the loop; raises `InvalidInput` if it cannot be read."""
    return await asyncio.get_running_loop().run_in_executor(None, describe, path)


def describe(path: Path) -> Description:
    """Reads a file once; raises `InvalidInput` if it cannot be read."""
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return Description(digest, file.tell(), kind)
    except OSError as error:
        raise InvalidInput("file", "one that can be read", f"{path}: {error.strerror}") from None


async def read(path: Path) -> AsyncIterator[bytes]:
    """Yields the bytes of a file."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


async def upload(
    service: "Service", path: Path, name: str | None = None, namespace: str | None = None
) -> UploadedFile:
    """Uploads a file for jobs of a namespace."""
    done = await service.upload(path, namespace)
    return UploadedFile(done.sha256, name or path.name, done.size)


async def with_uploads(service: "Service", jobs: Sequence[JobSpec]) -> list[JobSpec]:
    """Returns jobs with their local files uploaded, each file once."""
    if not any(isinstance(job, FilesJob) for job in jobs):
        return list(jobs)
    sent: dict[tuple[Path, str | None], UploadedFile] = {}
    return [
        await _uploaded(service, job, sent) if isinstance(job, FilesJob) else job for job in jobs
    ]


async def _uploaded(
    service: "Service", job: FilesJob, sent: dict[tuple[Path, str | None], UploadedFile]
) -> JobSpec:
    found: list[LocalFile] = []
    placed(job.args, found.append)
    for file in found:
        key = file.path.absolute(), job.namespace
        if key not in sent:
            sent[key] = await upload(service, file.path, None, job.namespace)

    def reference(file: LocalFile) -> dict[str, Any]:
        done = sent[file.path.absolute(), job.namespace]
        return {FILE: {**done.__windlass_file__(), **file.more}}

    fields = msgspec.structs.asdict(job)
    return JobSpec(**{**fields, "args": placed(job.args, reference)})
