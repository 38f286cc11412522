"""Rows to write in tests: plausible in every column, changed where a test says so.

No two columns of a row hold the same value where they can differ, so that a store that
mixes up two of them is found out.
"""

from typing import Any

from windlass.domain.access.audit import AuditRow
from windlass.domain.access.tokens import Code, Token
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import COUNTS
from windlass.domain.matching.claim_planning import Demand
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.files import ArtifactRow, LogRow, LogState, NameRow, UploadRow
from windlass.domain.rows.records import (
    Attempt,
    Cascade,
    CascadeKind,
    Due,
    InboxRow,
    JobEnd,
    JobFacts,
    NewJob,
    Ticket,
    Wait,
    Worker,
    WorkflowAbout,
    WorkflowRow,
)
from windlass.domain.rows.steps import SignalRow, StepRow
from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow
from windlass.domain.values.ids import AttemptNo, JobId, ShapeId, WorkerId, WorkflowId
from windlass.messages.sync import Finished

QUEUED = State.QUEUED.code
ASSIGNED = State.ASSIGNED.code
RUNNING = State.RUNNING.code
CANCELING = State.CANCELING.code
TIMED_OUT = State.TIMED_OUT.code
RETRYING = State.RETRYING.code
COMPLETED = State.COMPLETED.code
FAILED = State.FAILED.code


def ticket(job: int, **changes: Any) -> Ticket:
    row = Ticket(
        shape=ShapeId(1),
        rank=1_000 + job,
        job=JobId(job),
        attempt=AttemptNo(0),
        workflow=None,
        limit=None,
        excluded=None,
    )
    return row._replace(**changes)


def wait(job: int, unmet: int = 1, **changes: Any) -> Wait:
    row = Wait(JobId(job), unmet, manual=0, not_before=None, age_from=70 + job, ticket=ticket(job))
    return row._replace(**changes)


def due(job: int, at: int, state: int = QUEUED, **changes: Any) -> Due:
    return Due(at, JobId(job), state, ticket(job))._replace(**changes)


def new_job(job: int, **changes: Any) -> NewJob:
    row = NewJob(
        id=JobId(job),
        shape=ShapeId(1),
        workflow=WorkflowId(2),
        flags=3,
        rank=1_000 + job,
        base=4,
        adjustment=-5,
        age_from=600 + job,
        created_at=500 + job,
        limit=7,
        timeout_ms=8_000,
        idle_ms=None,
        supersedes=None,
        spec=b'{"task":"build \xe2\x86\x92 ship"}',
    )
    return row._replace(**changes)


def facts(row: NewJob, **changes: Any) -> JobFacts:
    """What a store tells of a job of which nothing but the submit is known."""
    fresh = JobFacts(
        id=row.id,
        shape=row.shape,
        workflow=row.workflow,
        state=None,
        flags=row.flags,
        rank=row.rank,
        base=row.base,
        adjustment=row.adjustment,
        age_from=row.age_from,
        created_at=row.created_at,
        limit=row.limit,
        timeout_ms=row.timeout_ms,
        idle_ms=row.idle_ms,
        supersedes=row.supersedes,
        superseded_by=None,
        attempt=AttemptNo(0),
        failed=0,
        lost=0,
        returned=0,
        handed_back=0,
        worker=None,
        incarnation=None,
        excluded=None,
    )
    return fresh._replace(**changes)


def facts_at(place: Ticket) -> JobFacts:
    """The facts by which a job is looked for in `ready` and `parked`."""
    row = new_job(place.job, shape=place.shape, rank=place.rank, limit=place.limit)
    return facts(row)


def job_end(job: int, **changes: Any) -> JobEnd:
    row = JobEnd(
        job=JobId(job),
        state=FAILED,
        flags=9,
        attempt=AttemptNo(4),
        failed=3,
        lost=2,
        worker=WorkerId(11),
        incarnation=12,
        assigned_at=2_001,
        started_at=2_002,
        finished_at=2_003,
        failure=1,
        exit_code=-7,
        message="it said “no”",
        reason="exit code -7",
        result=b'{"parts":[1,2]}',
    )
    return row._replace(**changes)


def attempt(job: int, number: int, **changes: Any) -> Attempt:
    row = Attempt(
        job=JobId(job),
        number=AttemptNo(number),
        worker=WorkerId(21),
        incarnation=22,
        state=FAILED,
        failure=2,
        exit_code=None,
        message=None,
        assigned_at=3_001,
        started_at=3_002,
        finished_at=3_003,
    )
    return row._replace(**changes)


def grant(
    place: Ticket, worker: int = 1, incarnation: int = 1, number: int = 1
) -> tuple[Ticket, Demand]:
    """Gives a job to a worker as this attempt."""
    return place._replace(attempt=AttemptNo(number - 1)), Demand(worker, incarnation, 1, _runs_all)


def completion(
    job: int,
    attempt: int = 5,
    worker: int = 3,
    incarnation: int = 4,
    exit_code: int | None = None,
    result: bytes | None = None,
) -> tuple[Worker, Finished]:
    """Lets a worker report that an attempt completed."""
    item = Finished(job, attempt, exit_code=exit_code, result=result)
    holder = WORKER._replace(id=WorkerId(worker), incarnation=incarnation)
    return holder, item


def _runs_all(shape: int) -> bool:
    return True


def worker(name: str, **changes: Any) -> Worker:
    row = Worker(
        id=WorkerId(999),
        name=name,
        incarnation=1,
        seq=2,
        status=1,
        last_seen=4_000,
        last_lease=5,
        slots=6,
        static='{"site":"Zürich"}',
        dynamic='{"cpus":8}',
        troubles=None,
        reason=None,
        enrolled_at=3_999,
    )
    return row._replace(**changes)


def workflow(number: int, **changes: Any) -> WorkflowRow:
    row = WorkflowRow(
        id=WorkflowId(number),
        namespace="team",
        name="nightly",
        state=1,
        run=2,
        flags=3,
        created_at=4_000,
        finished_at=None,
        counts=(0,) * COUNTS,
    )
    return row._replace(**changes)


def about(number: int, **changes: Any) -> WorkflowAbout:
    row = WorkflowAbout(number, base=-7, key="nightly", reason=None, body=b'{"labels":{"a":"b"}}')
    return row._replace(**changes)


def cascade(job: int, **changes: Any) -> Cascade:
    return Cascade(0, JobId(job), None, kind=1, cursor=0, reason=None)._replace(**changes)


def workflow_cascade(workflow: int) -> Cascade:
    return Cascade.of_workflow(WorkflowId(workflow), CascadeKind.CANCEL, "why")


def event(job: int, **changes: Any) -> Event:
    row = Event(
        seq=0,
        at=5_000 + job,
        kind=EventKind.JOB,
        job=job,
        attempt=0,
        worker=0,
        incarnation=0,
        source=0,
        to=QUEUED,
        reason=None,
        actor=None,
        data=None,
    )
    return row._replace(**changes)


def token(name: str, **changes: Any) -> Token:
    row = Token(
        id=999,
        name=name,
        digest=f"digest of {name}",
        role="submitter",
        namespaces=("team", "Zürich"),
        worker=0,
        created_at=6_001,
        expires_at=6_002,
        revoked_at=0,
        incarnation=3,
    )
    return row._replace(**changes)


def inbox_row(*jobs: int, **changes: Any) -> InboxRow:
    """Returns what a user's transaction submitted."""
    return InboxRow(0, 5, jobs, "role:app", (), b'{"jobs":[]}')._replace(**changes)


def audit_row(at: int, **changes: Any) -> AuditRow:
    row = AuditRow(
        id=999, at=at, calls=2, status=403, token=4, actor="Jürgen", role="viewer",
        address="10.0.0.1", action="POST /x", resource="/x/1", namespace="team",
        code="forbidden", request="a-1", about="queue `ä`",
    )  # fmt: skip
    return row._replace(**changes)


def code(digest: str, **changes: Any) -> Code:
    row = Code(digest, 7_001, expires_at=7_100, used_at=0, takeover=1, worker="w ä")
    return row._replace(**changes)


def log_row(job: int, attempt: int = 1, **changes: Any) -> LogRow:
    row = LogRow(job, attempt, int(LogState.STREAMING), bytes=80, gap_from=30, gap_to=40)
    return row._replace(**changes)


def artifact(job: int, name: str, **changes: Any) -> ArtifactRow:
    row = ArtifactRow(job, 1, name, f"sha of {name}", size=90, content_type="text/plain")
    return row._replace(**changes)


def name_row(name: str, **changes: Any) -> NameRow:
    return NameRow("team", name, 1, "image.tar", f"sha of {name}", set_at=8_000)._replace(**changes)


def upload(name: str, **changes: Any) -> UploadRow:
    return UploadRow("team", f"sha of {name}", 91, "text/plain", "ada", 8_001)._replace(**changes)


def template(name: str, version: int = 1, **changes: Any) -> TemplateRow:
    row = TemplateRow("team", name, version, b'{"a":1}', "digest", 801, "ada", None)
    return row._replace(**changes)


def schedule(name: str, **changes: Any) -> ScheduleRow:
    row = ScheduleRow(
        id=0, namespace="team", name=name, cron="0 * * * *", every_ms=None, zone="UTC",
        overlap="skip", catch_up="last", catch_up_limit=811, paused=0, next_at=812, last_slot=813,
        body=b"{}", created_at=814, created_by="ada", updated_at=815,
    )  # fmt: skip
    return row._replace(**changes)


def schedule_run(schedule: int, slot: int | None, **changes: Any) -> RunRow:
    row = RunRow(
        id=0, schedule=schedule, slot=slot, state=1, workflow=None, created_at=821, changed_at=822,
        reason=None, actor="eve",
    )  # fmt: skip
    return row._replace(**changes)


def reaction(workflow: int, **changes: Any) -> ReactionRow:
    row = ReactionRow(
        id=0, workflow=workflow, run=1, trigger=3, place=0, kind=2, state=1, tries=4, next_at=831,
        created_at=832, finished_at=None, outcome=5, result=833, message="later",
    )  # fmt: skip
    return row._replace(**changes)


WORKER = worker("reporter")


def step_row(job: int, key: str = "k", **changes: object) -> StepRow:
    return StepRow(job, key, 1, 2, 1, 5, None, 6, value=b"1")._replace(**changes)  # type: ignore[arg-type]


def signal_row(name: str, **changes: object) -> SignalRow:
    row = SignalRow(0, "team", name, f"key {name}", 10, 1, None, b"null")
    return row._replace(**changes)  # type: ignore[arg-type]
