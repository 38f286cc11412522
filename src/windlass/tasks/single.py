"""Errors about a job that was submitted alone: they say which task, not which job of a list."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput, WindlassError

FIRST: Final = "jobs[0]"  # as servers name a job in the list of a request
ALONE: Final = "the job"


@contextmanager
def about_one(job: JobSpec) -> Iterator[None]:
    """Says `args.argv of shell` in errors, where the server says `jobs[0].args.argv`."""
    try:
        yield
    except InvalidInput as error:
        if error.field.startswith(FIRST):
            error.field = _without_place(error.field)
            error.of = "" if error.field == ALONE else _name_of(job)
        raise
    except WindlassError as error:
        parts = (_without_place(part) if isinstance(part, str) else part for part in error.args)
        error.args = tuple(parts)
        raise


def _without_place(text: str) -> str:
    return text.replace(f"{FIRST}.", "", 1).replace(FIRST, ALONE, 1)


def _name_of(job: JobSpec) -> str:
    """Returns the name of its function, else of its task."""
    path = job.args.get("function") if isinstance(job.args, dict) else None
    return path.partition(":")[2] if job.task == "python" and isinstance(path, str) else job.task
