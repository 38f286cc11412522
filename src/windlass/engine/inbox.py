"""Turns committed submissions of users' transactions into jobs, each exactly once.

A row leaves `inbox` in the transaction that writes its jobs. Refused submissions become jobs too:
rejected ones, whose reason says why, so that nobody waits for a job that never comes. Errors
concern one row alone: the others continue. Who may submit what is decided by the `read` function
that `assembly` supplies.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from windlass.domain.job.dependency_graph import find_names, ids_in
from windlass.domain.job.job import DEFAULT_NAMESPACE, JobSpec, encode_spec
from windlass.domain.job.validation import ValidatedJob, Validator
from windlass.domain.lifecycle.rank import level, rank
from windlass.domain.lifecycle.states import REJECTED
from windlass.domain.rows.records import InboxRow, JobAlias, JobEnd
from windlass.domain.tasks.references import RESULT, job_of, references_in, replaced, with_job
from windlass.domain.values.errors import (
    InvalidInput,
    Overloaded,
    StoreUnavailable,
    WindlassError,
)
from windlass.domain.values.ids import AttemptNo, JobId, ShapeId
from windlass.domain.values.quantities import readable_duration
from windlass.engine.engine import Engine
from windlass.engine.fleet.capability import asks_at_once, reject_at_once
from windlass.engine.jobs.unique_keys import Duplicate
from windlass.engine.submit.submission import Submission, Submitted, WorkflowSpec, with_digest
from windlass.engine.submit.write_jobs import is_plain, submit
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.loop_time import DOING, give_way
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import News

AT_ONCE: Final = 500  # rows read at once, and plain ones written together
INBOX_PATIENCE_MS: Final = 60_000  # normally, rows wait less than a second
log = structlog.get_logger()
REFUSED: Final = "refused"  # the task of a job whose description cannot be shown
MAX_REASON: Final = 2_000


def late_inbox(waited_ms: int) -> str:
    """Returns the warning for a row that has waited too long."""
    return (
        f"submissions of users' transactions have waited {readable_duration(waited_ms)} to become "
        "jobs; the server's log says why (inbox_stuck, loop failed)"
    )


class InboxRequest(NamedTuple):
    """What a row submits, after every check of its submitter's rights."""

    jobs: Sequence[JobSpec]
    workflow: WorkflowSpec | None


Read = Callable[[InboxRow], Awaitable[InboxRequest]]


class _Checked(NamedTuple):
    """A row that can be written."""

    row: InboxRow
    submission: Submission


class Inbox:
    """Moves rows of `inbox`; safe on every server at once.

    `read` decodes a row and raises what a normal submit would raise.
    """

    def __init__(self, engine: Engine, read: Read) -> None:
        self._engine = engine
        self._read = read
        self._moving = False
        self._again = False
        self._stuck: set[int] = set()  # rows that cannot even be refused; named in the log
        self._stop: Callable[[], None] = lambda: None

    def listen(self) -> None:
        """Moves rows as soon as the store announces them, until `close`."""
        self._stop = self._engine.store.subscribe(self._hear)

    def close(self) -> None:
        """Stops listening."""
        self._stop()

    def _hear(self, news: News) -> None:
        if not news.inbox or self._engine.is_stopping:
            return
        if self._moving:
            self._again = True
        else:
            self._engine.background.start(self._move_quietly())

    async def _move_quietly(self) -> None:
        """Moves rows; the loop retries failures and reports them."""
        DOING.set("loop inbox")
        try:
            await self.move()
        except WindlassError:
            pass

    async def move(self) -> int:
        """Turns all waiting rows into jobs, and returns how many rows there were."""
        self._moving = True
        try:
            moved = 0
            while True:
                self._again = False
                moved += await self._move_all()
                if not self._again:
                    return moved
        finally:
            self._moving = False

    async def waiting_ms(self) -> int:
        """Returns how long the oldest row has waited; 0 without one."""

        async def read(tx: ReadTx) -> int:
            at = await tx.inbox.oldest()
            return 0 if at is None else max(0, tx.now - at)

        return await self._engine.store.read(read)

    async def job_for(self, job: int) -> int:
        """Returns the job for an id that was not among the jobs a moment ago."""
        await self.move()
        other = await self._engine.store.read(lambda tx: tx.inbox.alias(job))
        return job if other is None else other

    async def _move_all(self) -> int:
        moved = after = 0
        while rows := await self._engine.store.read(partial(_waiting, after=after)):
            after = rows[-1].id
            # All rows were committed before any of them is a job. So if two have the same key, it
            # is taken when the second one is moved, even if the first job has already run.
            together = frozenset(job for row in rows for job in row.jobs)
            checked = []
            for row in rows:
                one = await self._check(row, together)
                checked += [] if one is None else [one]
                await give_way()
            await self._enter_plain([one for one in checked if is_plain(one.submission)])
            for one in checked:
                if not is_plain(one.submission):
                    await self._enter_alone(one)
            await self._reject_at_once(checked)
            moved += len(rows)
        return moved

    async def _enter_plain(self, rows: Sequence[_Checked]) -> None:
        """Writes plain rows, many in one transaction; one by one if that fails."""
        for some in _in_batches(rows):
            try:
                await self._engine.run(partial(_enter, rows=some))
            except (StoreUnavailable, Overloaded):
                raise
            except Exception:
                for one in some:
                    await self._enter_alone(one)

    async def _check(self, row: InboxRow, together: frozenset[int]) -> _Checked | None:
        """Returns what the row submits; refuses it and returns None if that is invalid."""
        try:
            request = await self._read(row)
            if len(request.jobs) != len(row.jobs):
                raise InvalidInput("jobs", f"{len(row.jobs)} in number", len(request.jobs))
            jobs = self._engine.submissions.validate(self._engine.begin_trace(request.jobs), row.at)
            new = request.workflow
            workflow = None if new is None else with_digest(new, request.jobs)
        except (StoreUnavailable, Overloaded):
            raise
        except Exception as error:
            await self._refuse(row, (), error)
            return None
        return _Checked(row, Submission(jobs, workflow, ids=row.jobs, beside=together))

    async def _enter_alone(self, one: _Checked) -> None:
        """Writes one row; rows with references share no transaction, as that would lock in any
        order.
        """
        try:
            one = await self._follow_aliases(one)
            await self._engine.run(partial(_enter, rows=[one]))
        except (StoreUnavailable, Overloaded):
            raise
        except Duplicate as found:
            await self._answer_duplicate(one, found)
        except Exception as error:
            await self._refuse(one.row, one.submission.jobs, error)

    async def _follow_aliases(self, one: _Checked) -> _Checked:
        """Replaces references to jobs whose key was taken by the jobs that have it."""
        specs = [job.spec for job in one.submission.jobs]
        named = sorted({job for spec in specs for job in ids_named(spec)})
        if not named:
            return one
        others = await self._engine.store.read(partial(_aliases, jobs=named))
        if not others:
            return one
        jobs = self._engine.submissions.validate(
            [with_others(spec, others) for spec in specs], one.row.at
        )
        return one._replace(submission=one.submission._replace(jobs=jobs))

    async def _answer_duplicate(self, one: _Checked, found: Duplicate) -> None:
        """Uses the jobs of the open workflow with this key instead of the row's."""
        try:
            answer = await self._engine.submissions.answer_duplicate(found, one.submission)
        except (StoreUnavailable, Overloaded):
            raise
        except Exception as error:
            await self._refuse(one.row, one.submission.jobs, error)
        else:
            await self._engine.run(partial(_take_as, one=one, answer=answer))

    async def _refuse(self, row: InboxRow, jobs: Sequence[ValidatedJob], error: Exception) -> None:
        """Turns a row into rejected jobs. One that even this cannot read stays, and is logged."""
        why = str(error) if isinstance(error, WindlassError) else f"{type(error).__name__}: {error}"
        reason = f"refused after the commit of its transaction: {why}"
        if row.id in self._stuck:
            return
        # Anything but a user's error is a bug of ours: the log says where.
        where = None if isinstance(error, WindlassError) else error
        log.warning(
            "inbox_refused", submitted_by=row.submitted_by, jobs=row.jobs[:3], why=reason,
            exc_info=where,
        )  # fmt: skip
        for shown in (jobs, ()) if jobs else ((),):
            try:
                await self._engine.run(partial(write_refused, row=row, jobs=shown, reason=reason))
            except (StoreUnavailable, Overloaded):
                raise
            except Exception as failed:
                if not shown and row.id not in self._stuck:
                    self._stuck.add(row.id)
                    log.error("inbox_stuck", row=row.id, jobs=row.jobs[:3], exc_info=failed)
            else:
                return

    async def _reject_at_once(self, checked: Sequence[_Checked]) -> None:
        always = self._engine.config.capability_grace_ms == 0
        jobs = [
            job
            for row, submission in checked
            if always or asks_at_once(submission.jobs)
            for job in row.jobs
        ]
        if jobs:
            await self._engine.run(partial(reject_at_once, jobs=jobs))


def _in_batches(rows: Sequence[_Checked]) -> Iterator[list[_Checked]]:
    """Divides rows so that no transaction writes many jobs of several rows."""
    batch: list[_Checked] = []
    size = 0
    for row in rows:
        if batch and size + len(row.row.jobs) > AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += len(row.row.jobs)
    if batch:
        yield batch


async def _waiting(tx: ReadTx, after: int) -> list[InboxRow]:
    return await tx.inbox.waiting(after, AT_ONCE)


async def _aliases(tx: ReadTx, jobs: Sequence[int]) -> dict[int, int]:
    found = {job: await tx.inbox.alias(job) for job in jobs}
    return {job: other for job, other in found.items() if other is not None}


async def _enter(work: Work, rows: Sequence[_Checked]) -> None:
    """Writes the jobs of those rows that no other server has taken."""
    taken = set(await work.tx.inbox.take([one.row.id for one in rows]))
    mine = [one for one in rows if one.row.id in taken]
    if not mine:
        return
    for one, answer in zip(mine, await submit(work, [m.submission for m in mine]), strict=True):
        if isinstance(answer, WindlassError):
            raise answer
        await _note_aliases(work, one, answer)


async def _take_as(work: Work, one: _Checked, answer: Submitted) -> None:
    """Removes a row whose jobs already exist."""
    if await work.tx.inbox.take([one.row.id]):
        await _note_aliases(work, one, answer)


async def _note_aliases(work: Work, one: _Checked, answer: Submitted) -> None:
    """Records which jobs replace those whose key was taken."""
    if all(answer.applied):
        return
    promised = find_names([job.spec for job in one.submission.jobs], one.row.jobs).ids
    pairs = zip(promised, answer.ids, strict=True)
    await work.tx.inbox.add_aliases(
        [JobAlias(job, other, work.now) for job, other in pairs if job != other]
    )


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


def ids_named(spec: JobSpec) -> Iterator[int]:
    """Yields the ids of all jobs that this one names."""
    yield from ids_in(spec)
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
