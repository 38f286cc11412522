"""Between result rows and records, with as little Python for each row as can be."""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from struct import Struct
from typing import Any, TypeVar

import apsw
import msgspec

from windlass.domain.access.tokens import Code, Token
from windlass.domain.pools.pools import CostRow, PoolRow, PoolWorkerRow
from windlass.domain.rows.events import BaselineRow, Event
from windlass.domain.rows.files import ArtifactRow, Dynamic, LogRow, NameRow, Progress
from windlass.domain.rows.records import (
    Attempt,
    Cascade,
    Due,
    JobFacts,
    JobRecord,
    Lease,
    LimitRow,
    QueueRow,
    RateRow,
    Reservation,
    ShapeRow,
    Ticket,
    Wait,
    Waited,
    Worker,
    WorkflowAbout,
    WorkflowRow,
)
from windlass.domain.rows.steps import SignalRow, StepRow
from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow
from windlass.ports.store import Head, Marked

R = TypeVar("R", bound=tuple[object, ...])
Row = tuple[Any, ...]
FACTS = len(JobFacts._fields)
COUNT_BITS = 18  # a job may name 100,000 others in each of two ways; also in statements


def maker(kind: type[R]) -> Callable[[Row], R]:
    """Returns `kind._make` without its Python frame; the statement selects the fields in order."""
    make: Callable[[Row], R] = partial(tuple.__new__, kind)
    return make


as_artifact = maker(ArtifactRow)
as_attempt = maker(Attempt)
as_baseline = maker(BaselineRow)
as_cascade = maker(Cascade)
as_code = maker(Code)
as_cost = maker(CostRow)
as_dynamic = maker(Dynamic)
as_event = maker(Event)
as_facts = maker(JobFacts)
as_head = maker(Head)
as_lease = maker(Lease)
as_limit = maker(LimitRow)
as_log = maker(LogRow)
as_marked = maker(Marked)
as_name = maker(NameRow)
as_pool = maker(PoolRow)
as_pool_worker = maker(PoolWorkerRow)
as_progress = maker(Progress)
as_queue = maker(QueueRow)
as_rate = maker(RateRow)
as_reaction = maker(ReactionRow)
as_reservation = maker(Reservation)
as_run = maker(RunRow)
as_schedule = maker(ScheduleRow)
as_shape = maker(ShapeRow)
as_signal = maker(SignalRow)
as_step = maker(StepRow)
as_template = maker(TemplateRow)
as_ticket = maker(Ticket)
as_worker = maker(Worker)


def as_wait(row: Row) -> Wait:
    """Builds it from a row that ends with the ticket's columns, without its job."""
    job, unmet, manual, not_before, age_from, shape, rank, *rest = row
    ticket = Ticket(shape, rank, job, *rest)
    return Wait(job, unmet, manual, not_before, age_from, ticket)


def wait_row(wait: Wait) -> Row:
    shape, rank, _, *rest = wait.ticket
    return (*wait[:5], shape, rank, *rest)


def as_due(row: Row) -> Due:
    """Builds it from a row that ends with the ticket's columns, without its job."""
    at, job, state, shape, rank, *rest = row
    return Due(at, job, state, Ticket(shape, rank, job, *rest))


def due_row(due: Due) -> Row:
    shape, rank, _, *rest = due.ticket
    return (*due[:3], shape, rank, *rest)


def as_record(row: Row) -> JobRecord:
    """Builds it from a row that holds the facts and then the rest."""
    return JobRecord(as_facts(row[:FACTS]), *row[FACTS:])


def as_token(row: Row) -> Token:
    before, namespaces, after = row[:4], row[4], row[5:]
    decoded = msgspec.json.decode(namespaces, type=tuple[str, ...])
    return Token._make((*before, decoded, *after))


def as_about(row: Row) -> WorkflowAbout:
    return WorkflowAbout._make(row)


def as_waited(row: Row) -> Waited:
    return Waited._make(row)


def as_workflow(row: Row) -> WorkflowRow:
    *columns, counts = row
    return WorkflowRow._make((*columns, msgspec.json.decode(counts, type=tuple[int, ...])))


def counts_text(counts: Iterable[int]) -> str:
    return msgspec.json.encode(tuple(counts)).decode()


@cache
def _packed(count: int) -> Struct:
    """Returns the packer for this length, built once: a third of the time that an array takes."""
    return Struct(f"{count}q")


def pack(edges: Sequence[int]) -> bytes:
    """Packs edges, eight bytes each, in the machine's byte order."""
    return _packed(len(edges)).pack(*edges)


def unpack(packed: bytes) -> tuple[int, ...]:
    return _packed(len(packed) // 8).unpack(packed)


def counted(counts: Mapping[int, int]) -> Any:
    """Returns an array of jobs, ascending, each with a number in its lowest `COUNT_BITS`."""
    return integers([job << COUNT_BITS | number for job, number in sorted(counts.items())])


def integers(values: Iterable[int]) -> Any:  # apsw does not export the binding's type
    """Returns an array for `carray(?)`, which must not be empty."""
    return apsw.carray(array("q", values))
