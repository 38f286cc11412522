"""The jobs that a job names by id: in `after`, `after_any`, `parent` and as results."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.tasks.references import RESULT, job_of, references_in, replaced, with_job


def ids_named(spec: JobSpec) -> Iterator[int]:
    """Yields the ids of all jobs that this one names."""
    yield from (job for job in (*spec.after, *spec.after_any) if isinstance(job, int))
    yield from (
        job for job in map(job_of, references_in(spec.args, RESULT)) if isinstance(job, int)
    )
    if spec.parent is not None:
        yield spec.parent


def with_others(spec: JobSpec, others: Mapping[int, int]) -> JobSpec:
    """Returns the job with some ids replaced."""

    def of(job: Any) -> Any:
        return others.get(job, job) if isinstance(job, int) else job

    return msgspec.structs.replace(
        spec,
        after=tuple(map(of, spec.after)),
        after_any=tuple(map(of, spec.after_any)),
        parent=of(spec.parent),
        args=replaced(spec.args, RESULT, lambda ref: with_job(ref, of(job_of(ref)))),
    )
