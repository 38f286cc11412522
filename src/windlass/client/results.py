"""Reads the results of jobs: as annotated if this program knows the function, else as JSON."""

from typing import Any, Final

import msgspec

from windlass.client.service import Service
from windlass.domain.values.references import FILE
from windlass.tasks.task import known_task
from windlass.wire.jobs import Job

_decode: Final = msgspec.json.Decoder().decode


async def read_result(service: Service, job: Job) -> Any:
    """Returns the result of a completed job; fetches it if it is kept as an artifact."""
    result = job.result
    if isinstance(result, dict) and len(result) == 1 and FILE in result:
        chunks = [chunk async for chunk in service.artifact(job.id, result[FILE]["artifact"])]
        result = _decode(b"".join(chunks))
    task = known_task(job.task, job.args)
    return result if task is None else task.codec.decode_result(result)
