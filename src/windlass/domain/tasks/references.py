"""References in arguments: values that stand for something else, such as the result of a job.

Each is an object with one key. `{"$literal": VALUE}` is VALUE as it is, so that any value can be
written; references inside VALUE still count.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from windlass.domain.values.errors import InvalidInput

# {"$result": JOB}: the result of a job, by id or name; {"$result": {"job": JOB, "output": NAME}}:
# one of its values.
RESULT: Final = "$result"
TEXT: Final = "$text"  # {"$text": [PART, …]}: texts and results of jobs, joined
LOOKUP: Final = "$lookup"  # {"$lookup": NAME}: an artifact by its name
FILE: Final = "$file"  # {"$file": …}: a file that was uploaded, or that a job produced
LITERAL: Final = "$literal"
RESERVED: Final = frozenset({RESULT, TEXT, LOOKUP, FILE, LITERAL})

DIGEST: Final = "sha256"  # inside a file reference: an upload
MAX_JOB_ID: Final = 2**62  # the highest id of a job
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


def refers(value: object) -> bool:
    """Returns True if a JSON value contains a reference of any kind."""
    return any(True for kind in (RESULT, TEXT, LOOKUP, FILE) for _ in references_in(value, kind))


def results_in(value: object, field: str) -> Iterator[int | str]:
    """Yields the jobs whose results a JSON value refers to; raises `InvalidInput`."""
    for reference in references_in(value, RESULT):
        job = job_of(reference)
        if not (isinstance(job, str) and job) and not (type(job) is int and 1 <= job <= MAX_JOB_ID):
            expected = f'{{"{RESULT}": JOB}}, with the id or the name of a job'
            raise InvalidInput(field, expected, reference)
        yield job


def job_of(reference: Any) -> Any:
    """Returns the job that a reference to a result names; None for anything else."""
    if not isinstance(reference, dict):
        return reference
    fits = set(reference) == {"job", "output"} and isinstance(reference["output"], str)
    return reference["job"] if fits else None


def with_job(reference: Any, job: int | str) -> dict[str, Any]:
    """Returns the same reference for another job."""
    return {RESULT: {**reference, "job": job} if isinstance(reference, dict) else job}


def output_of(result: Any, name: str) -> Any:
    """Returns one value of a result; None if it has no such value."""
    return result.get(name) if isinstance(result, dict) else None


def joined(parts: Any, resolve: Replace) -> str:
    """Returns the text of a `$text`; `resolve` returns the result behind a reference."""
    texts: list[str] = []
    for part in parts if isinstance(parts, list) else [parts]:
        refers = isinstance(part, dict) and len(part) == 1 and RESULT in part
        texts.append(as_text(resolve(part[RESULT]) if refers else part))
    return "".join(texts)


def as_text(value: Any) -> str:
    """Returns a value as an argument of a program: texts as they are, all others as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


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
