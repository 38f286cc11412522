"""Writes refused submissions as rejected jobs, whose reason everybody can read."""

from collections.abc import Sequence
from typing import Final

import msgspec

from windlass.domain.job.job import DEFAULT_NAMESPACE, JobSpec, encode_spec
from windlass.domain.job.validation import ValidatedJob, Validator
from windlass.domain.lifecycle.rank import level, rank
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import InboxRow, JobEnd
from windlass.domain.values.ids import AttemptNo, JobId, ShapeId
from windlass.engine.transaction.unit_of_work import Work

REFUSED: Final = "refused"  # the task of a job whose description cannot be shown
REJECTED: Final = State.REJECTED.code
MAX_REASON: Final = 2_000


async def write_refused(
    work: Work, row: InboxRow, jobs: Sequence[ValidatedJob], reason: str
) -> None:
    """Writes the jobs of a row as rejected, unless another server has taken the row.

    `jobs` is given for a valid row. They are stored as described, so that a manual retry checks
    them again. Without it, they become jobs of the task `refused`.
    """
    if not await work.tx.inbox.take([row.id]):
        return
    if not row.jobs:
        return
    shown = list(jobs) or [_unreadable(work, row)] * len(row.jobs)
    shapes = await work.intern(shown)
    base = level(work.catalog.weight(shown[0].shape.queue), 0, 0)
    place = rank(work.now, base, work.catalog.interval_ms)
    rows, ends = [], []
    for number, job in zip(row.jobs, shown, strict=True):
        job_id, shape = JobId(number), ShapeId(shapes[job.template.digest])
        body = encode_spec(job.spec)
        rows.append(
            (job_id, shape, None, 0, place, 0, 0, work.now, work.now, None, None, None, None, body)
        )
        ends.append(
            JobEnd(job_id, REJECTED, 0, AttemptNo(0), 0, 0, None, None, None, None, work.now, 0,
                   None, None, reason[:MAX_REASON], None)
        )  # fmt: skip
        work.move(
            job_id, shape, None, AttemptNo(0), 0, REJECTED, reason[:MAX_REASON],
            actor=row.submitted_by,
        )  # fmt: skip
    await work.tx.jobs.insert(rows)
    await work.tx.jobs.end(ends)
    work.effects.ended += [end.job for end in ends]


def _unreadable(work: Work, row: InboxRow) -> ValidatedJob:
    """Returns a job that names its submitter, in a namespace that the submitter sees."""
    own = row.namespaces[0] if row.namespaces else DEFAULT_NAMESPACE
    namespace = None if DEFAULT_NAMESPACE in (own, *row.namespaces) else own
    spec = JobSpec(task=REFUSED, namespace=namespace, submitted_by=row.submitted_by)
    task = _task_of(row.body)
    return Validator(work.config).validate(
        spec if task is None else msgspec.structs.replace(spec, labels={"task": task})
    )


class _Task(msgspec.Struct):
    task: str = ""


class _Tasks(msgspec.Struct):
    jobs: list[_Task] = []


def _task_of(body: bytes) -> str | None:
    """Returns the task of the first job, if it can be read and shown."""
    try:
        tasks = msgspec.json.decode(body, type=_Tasks).jobs
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    found = tasks[0].task[:100] if tasks else ""
    return found if found.isprintable() and found else None
