"""Files of this machine, and arguments that are too large for a job, on their way to jobs."""

import asyncio
import hashlib
import mimetypes
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.tasks.references import FILE, RESERVED, refers
from windlass.domain.values.errors import InvalidInput
from windlass.ports.loop_time import to_loop
from windlass.tasks.local_files import FilesJob, LocalFile, UploadedFile, placed
from windlass.tasks.task import PYTHON, known_task

if TYPE_CHECKING:
    from windlass.client.service import Service

CHUNK: Final = 1 << 20
# Bytes of arguments that a job carries itself. Servers accept jobs of up to `payload_limit`, 1 MiB,
# all options included.
CARRIED: Final = 960 * 1024
MAX_SPILLED: Final = 64  # uploaded values per job

Where: TypeAlias = tuple[int | str, ...]  # keys and positions that lead to a value

_encode: Final = msgspec.json.Encoder().encode


class Description(NamedTuple):
    """What the server learns about a file before its content is sent."""

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
    """Returns jobs with their local files and large arguments uploaded, each once."""
    ready = list(jobs)
    if any(isinstance(job, FilesJob) for job in jobs):
        await to_loop()
        files: dict[tuple[Path, str | None], UploadedFile] = {}
        ready = [
            await _uploaded(service, job, files) if isinstance(job, FilesJob) else job
            for job in jobs
        ]
    values: dict[tuple[bytes, str | None], UploadedFile] = {}
    for place, job in enumerate(ready):
        if large := _large_values(job):
            await to_loop()
            ready[place] = await _spilled(service, job, large, values)
    return ready


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


def _large_values(job: JobSpec) -> list[Where]:
    """Returns the arguments to upload; none if the job can carry all of them."""
    if not isinstance(job.args, dict):
        return []
    try:
        excess = len(_encode(job.args)) - CARRIED
        if excess <= 0 or (job.task != PYTHON and known_task(job.task, job.args) is None):
            return []
        values = sorted(_values_of(job), key=lambda value: -value[0])
    except (TypeError, ValueError, RecursionError, OverflowError):
        return []  # Those who check the job say what is wrong.
    chosen: list[Where] = []
    for size, where in values[:MAX_SPILLED]:
        if excess > 0:
            chosen.append(where)
            excess -= size
    return chosen if excess <= 0 else []


def _values_of(job: JobSpec) -> Iterator[tuple[int, Where]]:
    """Yields the arguments of a call, with their sizes."""
    if job.task != PYTHON:
        yield from _values_in(job.args, ())
        return
    for part in ("args", "kwargs"):
        yield from _values_in(job.args.get(part), (part,))


def _values_in(value: Any, where: Where) -> Iterator[tuple[int, Where]]:
    """Yields the parts of a value without references, which must stay with the job."""
    for key, item in _items(value):
        if not refers(item):
            yield len(_encode(item)), (*where, key)
        elif not (isinstance(item, dict) and len(item) == 1 and RESERVED & item.keys()):
            yield from _values_in(item, (*where, key))


def _items(value: Any) -> Iterator[tuple[int | str, Any]]:
    if isinstance(value, dict):
        return iter(value.items())
    return enumerate(value) if isinstance(value, list | tuple) else iter(())


async def _spilled(
    service: "Service",
    job: JobSpec,
    large: Sequence[Where],
    sent: dict[tuple[bytes, str | None], UploadedFile],
) -> JobSpec:
    """Returns the job with references to its large arguments, which it uploads."""
    references: dict[Where, Any] = {}
    for number, where in enumerate(large, 1):
        body = _encode(_at(job.args, where))
        key = hashlib.sha256(body).digest(), job.namespace
        if key not in sent:
            sent[key] = await _upload_value(service, body, job.namespace)
        file = sent[key].__windlass_file__() | {"name": f"argument {number}.json"}
        references[where] = {FILE: {**file, "json": True, "size": len(body)}}
    return msgspec.structs.replace(job, args=_with(job.args, references, ()))


async def _upload_value(service: "Service", body: bytes, namespace: str | None) -> UploadedFile:
    with TemporaryDirectory(prefix="windlass-") as folder:
        path = Path(folder, "argument.json")
        await asyncio.get_running_loop().run_in_executor(None, path.write_bytes, body)
        return await upload(service, path, None, namespace)


def _at(value: Any, where: Where) -> Any:
    for key in where:
        value = value[key]
    return value


def _with(value: Any, references: Mapping[Where, Any], where: Where) -> Any:
    """Returns a copy of a value with what `references` has in place of its parts."""
    if where in references:
        return references[where]
    if not any(place[: len(where)] == where for place in references):
        return value
    if isinstance(value, dict):
        return {key: _with(item, references, (*where, key)) for key, item in value.items()}
    return [_with(item, references, (*where, place)) for place, item in enumerate(value)]
