"""Forms in arguments that stand for something else, such as the result of a job.

Each is an object with one key. `{"$literal": VALUE}` is VALUE as it is, so that every value can be
written; what is inside VALUE is looked at again.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from windlass.domain.values.errors import InvalidInput

RESULT: Final = "$result"  # {"$result": JOB}: the result of a job, by id or name
LOOKUP: Final = "$lookup"  # {"$lookup": NAME}: an artifact by its name
FILE: Final = "$file"  # {"$file": …}: a file that was uploaded, or that a job has left
LITERAL: Final = "$literal"
RESERVED: Final = frozenset({RESULT, LOOKUP, FILE, LITERAL})

DIGEST: Final = "sha256"  # in a file: an upload
MOST: Final = 2**62  # the highest id of a job
Replace = Callable[[Any], Any]


def references_in(value: object, kind: str) -> Iterator[Any]:
    """Yields what the references of one kind name, in a JSON value."""
    if isinstance(value, dict):
        if len(value) == 1:
            ((key, inner),) = value.items()
            if key == kind:
                yield inner
                return
            if key == LITERAL and isinstance(inner, dict):
                value = inner
        for item in value.values():
            yield from references_in(item, kind)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from references_in(item, kind)


def results_in(value: object, field: str) -> Iterator[int | str]:
    """Yields the jobs whose results a JSON value names; raises `InvalidInput` for none."""
    for job in references_in(value, RESULT):
        if not (isinstance(job, str) and job) and not (type(job) is int and 1 <= job <= MOST):
            expected = f'{{"{RESULT}": JOB}}, with the id or the name of a job'
            raise InvalidInput(field, expected, job)
        yield job


def uploads_in(value: object) -> Iterator[str]:
    """Yields the digests of the uploads that a JSON value names."""
    for file in references_in(value, FILE):
        digest = file.get(DIGEST) if isinstance(file, dict) else None
        if isinstance(digest, str):
            yield digest


def replaced(value: Any, kind: str, replace: Replace) -> Any:
    """Returns a JSON value with the references of one kind replaced."""
    if isinstance(value, dict):
        if len(value) == 1:
            ((key, inner),) = value.items()
            if key == kind:
                return replace(inner)
            if key == LITERAL and isinstance(inner, dict):
                return {LITERAL: {k: replaced(v, kind, replace) for k, v in inner.items()}}
        return {key: replaced(item, kind, replace) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(item, kind, replace) for item in value]
    return value
