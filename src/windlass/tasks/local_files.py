"""Local files in arguments and results."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.tasks.references import DIGEST
from windlass.domain.values.errors import InvalidInput

MADE: Final = itertools.count()  # how many were made so far, so that most jobs are not searched


class LocalFile:
    """A file among encoded values: a client uploads it, a worker stores it as an artifact.

    `more` is added to its reference.
    """

    def __init__(self, path: Path, more: Mapping[str, str] | None = None) -> None:
        next(MADE)
        self.path = path
        self.more = more or {}


class UploadedFile(msgspec.Struct, frozen=True):
    """A file that was uploaded: an argument for a `Path`, or an input of a command."""

    sha256: str
    name: str
    size: int

    @property
    def as_path(self) -> Path:
        """This file as an argument for a `Path`, for type checkers."""
        return cast("Path", self)

    def __windlass_file__(self) -> dict[str, str]:
        """Returns its reference in the arguments of jobs."""
        return {DIGEST: self.sha256, "name": self.name}


class FilesJob(JobSpec, frozen=True):
    """A job with local files in its arguments, which a client must upload first."""


def with_files(job: JobSpec) -> FilesJob:
    """Returns the job as one whose local files must be uploaded."""
    return FilesJob(**msgspec.structs.asdict(job))


INSIDE_A_JOB: Final = "without local files inside a job; return them, and pass the job that did"


def refuse_files(jobs: Iterable[JobSpec], expected: str = INSIDE_A_JOB) -> None:
    """Raises `InvalidInput` for local files that no client can upload, as inside jobs."""
    if any(isinstance(job, FilesJob) for job in jobs):
        raise InvalidInput("args", expected, "a Path")


def placed(value: Any, replace: Callable[[LocalFile], Any]) -> Any:
    """Returns arguments with local files replaced."""
    if isinstance(value, LocalFile):
        return replace(value)
    if isinstance(value, dict):
        return {key: placed(item, replace) for key, item in value.items()}
    if isinstance(value, list):
        return [placed(item, replace) for item in value]
    return value
