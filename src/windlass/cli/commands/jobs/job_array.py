"""Job arrays: many jobs from one description that differ in a number."""

from typing import Any, Final

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput

MAX_JOBS: Final = 100_000
INDEX: Final = "{index}"


def array_of(request: JobSpec, count: int) -> list[JobSpec]:
    """Returns `count` jobs, each with its number in place of `{index}`."""
    if not 1 <= count <= MAX_JOBS:
        raise InvalidInput("--count", f"from 1 to {MAX_JOBS:,}", count)
    if request.key is not None and INDEX not in request.key:
        raise InvalidInput("--key", f"different for each job: put {INDEX} in it", request.key)
    return [_numbered(request, index) for index in range(count)]


def _numbered(request: JobSpec, index: int) -> JobSpec:
    number = str(index)
    name, key = request.name, request.key
    if name is not None:
        name = name.replace(INDEX, number) if INDEX in name else f"{name}[{number}]"
    return msgspec.structs.replace(
        request,
        args=_filled(request.args, number),
        name=name,
        key=None if key is None else key.replace(INDEX, number),
    )


def _filled(value: Any, number: str) -> Any:
    if isinstance(value, str):
        return value.replace(INDEX, number)
    if isinstance(value, list):
        return [_filled(item, number) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, number) for key, item in value.items()}
    return value
