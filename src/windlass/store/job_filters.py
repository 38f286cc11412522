"""Filters of job lists, and how rows become views: the part without reads.

It also searches the texts of jobs for words and regular expressions.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from windlass.domain.job.kinds import StoredWork, command_of, decode_work
from windlass.domain.lifecycle.states import (
    COMPLETED,
    FAILED,
    QUEUED,
    TERMINAL_CODES,
)
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.files import Dynamic, LogRow, Progress
from windlass.domain.rows.records import JobRecord, Lease
from windlass.domain.rows.views import JobFilter, JobSort, newest_attempt
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import compile_pattern, looks_at_lines

MAX_CHARACTERS: Final = 10_000  # characters searched in a text
TOGETHER: Final = 50  # jobs searched at once for a pattern
BAD_CODES: Final = TERMINAL_CODES - {COMPLETED}


class JobText(NamedTuple):
    """The fields that filters by time, failure and text look at."""

    job: int
    created_at: int
    finished_at: int | None
    failure: int
    message: str | None
    reason: str | None
    spec: bytes


def searches(wanted: JobFilter) -> bool:
    """Returns True if the filter searches texts."""
    return wanted.text is not None or wanted.pattern is not None


def found_in(wanted: JobFilter, rows: Iterable[JobText]) -> list[int]:
    """Returns the jobs whose text matches the filter's words and pattern."""
    texts = [(row.job, _text_of(row)) for row in rows]
    if wanted.text is not None:
        sought = wanted.text.casefold()
        texts = [
            (job, text)
            for job, text in texts
            if sought in text.casefold() or str(job).startswith(sought)
        ]
    if wanted.pattern is None:
        return [job for job, _ in texts]
    find = compile_pattern(wanted.pattern)
    if not looks_at_lines(wanted.pattern):
        return [job for job, text in texts if find(text)]
    found: list[int] = []
    # One search of many texts takes little longer than one search of one.
    for start in range(0, len(texts), TOGETHER):
        some = texts[start : start + TOGETHER]
        if find("\n".join(text for _, text in some)):
            found += [job for job, text in some if find(text)]
    return found


def _text_of(row: JobText) -> str:
    """Returns the searched texts of a job, one per line."""
    work = decode_work(row.spec)
    parts = (work.name, work.task, _command_text(work), row.message, row.reason)
    return "\n".join([part[:MAX_CHARACTERS] for part in parts if part])


def _command_text(work: StoredWork) -> str:
    """Returns the command line, the function's name, or the arguments of another task."""
    command = command_of(work)
    if command.argv:
        return " ".join(command.argv)
    return command.function or bytes(work.args)[: 4 * MAX_CHARACTERS].decode(errors="ignore")


class Source(Enum):
    """Where a list takes its jobs from."""

    JOBS = "jobs"
    LEASES = "leases"
    WAITS = "waits"
    DUE = "due"
    BAD = "bad"  # ended without completing
    WORKFLOW = "workflow"


class Candidate(NamedTuple):
    """A job that a list may show; `ended` is its terminal state, if it has one."""

    job: int
    shape: int
    ended: int | None


class RowFilter(NamedTuple):
    """The part of a filter that the columns of a candidate decide; empty states and `shapes=None`
    match any.
    """

    states: frozenset[int]
    shapes: frozenset[int] | None

    @property
    def is_any(self) -> bool:
        """Returns whether all jobs pass."""
        return not self.states and self.shapes is None

    @property
    def ended(self) -> list[int]:
        """Returns the wanted terminal states."""
        return sorted(self.states & TERMINAL_CODES if self.states else TERMINAL_CODES)

    @property
    def is_open(self) -> bool:
        """Returns True if open jobs may pass; a candidate does not say which open state it is
        in.
        """
        return not self.states or not self.states <= TERMINAL_CODES

    def passing(self, rows: Sequence[Candidate]) -> Sequence[Candidate]:
        """Returns the candidates that pass."""
        states, shapes = self
        if shapes is not None:
            rows = [row for row in rows if row.shape in shapes]
        if not states:
            return rows
        if self.is_open:
            return [row for row in rows if not row.ended or row.ended in states]
        return [row for row in rows if row.ended in states]


class Standing(NamedTuple):
    """Where an open job waits: its state, and when it may start."""

    job: int
    state: int
    not_before: int | None


class _ListedFields(msgspec.Struct):
    """The fields of a stored spec that lists filter by."""

    name: str | None = None
    labels: dict[str, str] = {}
    submitted_by: str | None = None


_decode = msgspec.json.Decoder(_ListedFields).decode


_shape_decoder = msgspec.json.Decoder(Shape)


def states_of(wanted: JobFilter) -> frozenset[int]:
    """Returns the wanted states; none means any."""
    states = frozenset(wanted.states)
    if wanted.failures:
        states = (states & BAD_CODES if states else BAD_CODES) or frozenset({0})
    elif wanted.finished_from is not None or wanted.finished_to is not None:
        states = (states & TERMINAL_CODES if states else TERMINAL_CODES) or frozenset({0})
    if wanted.dead:
        # A filter for dead jobs in another state finds nothing: no job has state 0.
        return (states & {FAILED}) or frozenset({0}) if states else frozenset({FAILED})
    return states


def allows(wanted: JobFilter, body: bytes) -> bool:
    shape = decode_shape(body)
    return (
        (wanted.namespaces is None or shape.namespace in wanted.namespaces)
        and wanted.queue in (None, shape.queue)
        and wanted.task in (None, shape.task)
    )


@lru_cache(maxsize=50_000)
def decode_shape(body: bytes) -> Shape:
    return _shape_decoder.decode(body)


def tells(wanted: JobFilter, spec: bytes) -> bool:
    fields = _decode(spec)
    return (
        wanted.name in (None, fields.name)
        and wanted.submitted_by in (None, fields.submitted_by)
        and all(fields.labels.get(name) == value for name, value in wanted.labels)
    )


def asks_spec(wanted: JobFilter) -> bool:
    """Returns True if the filter needs the spec of a job."""
    return wanted.name is not None or bool(wanted.labels) or wanted.submitted_by is not None


def asks_record(wanted: JobFilter) -> bool:
    """Returns True if the filter needs the whole record of a job."""
    times = wanted.created_from, wanted.created_to, wanted.finished_from, wanted.finished_to
    return any(at is not None for at in times) or bool(wanted.failures) or searches(wanted)


def fitting(wanted: JobFilter, rows: Iterable[JobText]) -> list[int]:
    """Returns the jobs that pass the filters by time, failure and text."""
    if wanted.created_from is not None or wanted.created_to is not None:
        start, end = wanted.created_from, wanted.created_to
        rows = [row for row in rows if _within(row.created_at, start, end)]
    if wanted.finished_from is not None or wanted.finished_to is not None:
        start, end = wanted.finished_from, wanted.finished_to
        rows = [row for row in rows if _within(row.finished_at, start, end)]
    if wanted.failures:
        rows = [row for row in rows if row.failure in wanted.failures]
    return found_in(wanted, rows) if searches(wanted) else [row.job for row in rows]


def text_of(record: JobRecord) -> JobText:
    """Returns the fields that these filters look at, from a whole row."""
    return JobText(
        record.facts.id, record.facts.created_at, record.finished_at, record.failure,
        record.message, record.reason, record.spec,
    )  # fmt: skip


def _within(at: int | None, start: int | None, end: int | None) -> bool:
    return at is not None and (start is None or start <= at) and (end is None or at < end)


def make_view(
    record: JobRecord,
    lease: Lease | None,
    place: Standing | None,
    names: Mapping[int, str],
    logs: Sequence[LogRow],
    progress: Progress | None,
    dynamic: Dynamic | None,
) -> JobRecord:
    facts = record.facts
    newest = newest_attempt(facts, lease)
    state = QUEUED
    not_before: int | None = None
    if facts.state is not None:
        state = facts.state
    elif lease is not None:
        state = lease.state
    elif place is not None:
        state, not_before = place.state, place.not_before
    worker = facts.worker if lease is None else lease.worker
    return record._replace(
        state=state,
        not_before=not_before,
        lease=lease,
        worker=None if worker is None else names.get(worker),
        log=next((row for row in logs if row.attempt == newest), None),
        progress=progress if progress is not None and progress.attempt == newest else None,
        dynamic=dynamic if dynamic is not None and dynamic.attempt == newest else None,
    )


def tells_state(wanted: JobFilter) -> bool:
    """Returns True if candidates decide the filter's states: all of them are states of ended
    jobs.
    """
    states = states_of(wanted)
    return not (wanted.dead or wanted.current) and (not states or states <= TERMINAL_CODES)


def check_states(wanted: JobFilter, sort: JobSort, can: frozenset[int]) -> None:
    """Raises `InvalidInput` if an order cannot show jobs of the wanted states."""
    states = states_of(wanted)
    if states and not states <= can:
        names = {
            JobSort.RUNNING: "running jobs",
            JobSort.PRIORITY: "queued jobs",
            JobSort.FINISHED: "jobs that have ended",
        }
        raise InvalidInput(
            "sort", "newest or oldest, for these states", sort, f"it is for {names[sort]}"
        )
