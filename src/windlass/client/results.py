"""Reads the results of jobs: as annotated if this program knows the function, else as JSON."""

from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from windlass.client.service import Service
from windlass.domain.tasks.references import FILE, references_in, replaced
from windlass.messages.jobs import Job
from windlass.tasks.task import known_task

_decode: Final = msgspec.json.Decoder().decode


class _Downloads:
    """Where this program keeps files that are results, until it ends."""

    folder: "TemporaryDirectory[str] | None" = None
    count = 0

    @classmethod
    def place(cls, name: str) -> Path:
        if cls.folder is None:
            cls.folder = TemporaryDirectory(prefix="windlass-results-")
        cls.count += 1
        place = Path(cls.folder.name, str(cls.count), PurePosixPath(name).name)
        place.parent.mkdir()
        return place


async def read_result(service: Service, job: Job) -> Any:
    """Returns the result of a completed job; fetches what is kept as artifacts."""
    result, task = job.result, known_task(job.task, job.args)
    if _is_file(result) and result[FILE].get("json"):
        name = result[FILE]["artifact"]
        result = _decode(b"".join([chunk async for chunk in service.artifact(job.id, name)]))
    if task is None:
        return result
    files = [await _download(service, job.id, file) for file in references_in(result, FILE)]
    if files:
        paths = iter(files)
        result = replaced(result, FILE, lambda _: next(paths))
    return task.codec.decode_result(result)


def _is_file(result: Any) -> bool:
    return isinstance(result, dict) and len(result) == 1 and isinstance(result.get(FILE), dict)


async def _download(service: Service, job: int, file: Any) -> str:
    path = _Downloads.place(file["artifact"])
    with path.open("wb") as opened:
        async for chunk in service.artifact(job, file["artifact"]):
            opened.write(chunk)
    return str(path)
