"""Jobs: what can be done with them, with the rights of the caller.

Also how to run a job again by hand, and the chain of jobs that superseded each other.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import replace

from windlass.domain.access.rights import Action, Identity, Role, sees
from windlass.domain.explain.equivalents import equivalents, quote
from windlass.domain.job.job import DEFAULT_NAMESPACE, JobSpec, decode_spec
from windlass.domain.lifecycle.states import COMPLETED, STATE_BY_CODE
from windlass.domain.matching.isolation import DEFAULT, MODES, WEAKEST, demanded, strongest
from windlass.domain.matching.matching import metadata_of
from windlass.domain.rows.records import InboxRow, JobFacts, JobRecord
from windlass.domain.rows.views import JobSort, newest_attempt
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound
from windlass.domain.values.ids import Id, shown_attempt
from windlass.domain.values.json_values import check_depth, too_deep
from windlass.domain.values.quantities import format_moment, shown_moment
from windlass.engine.engine import Engine
from windlass.engine.inbox import InboxRequest
from windlass.engine.jobs.end_waiters import Ended
from windlass.engine.submit.submission import WorkflowSpec
from windlass.messages.jobs import (
    CanceledJob,
    CancelReply,
    CancelRequest,
    ChainJob,
    DeleteReply,
    DeleteRequest,
    Job,
    JobChain,
    JobCount,
    JobList,
    PriorityReply,
    PriorityRequest,
    Reproduction,
    RetryReply,
    RetryRequest,
    SubmitReply,
    SubmitRequest,
    UnblockRequest,
    WaitReply,
    WaitRequest,
    Where,
)
from windlass.messages.system import EventList
from windlass.messages.workers import Changed
from windlass.operations.dispatch.binding import Body, Query
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.errors import Forbidden
from windlass.operations.dispatch.routes import COUNTED, Routes
from windlass.operations.parse import (
    check_count,
    job_filter,
    job_spec,
    parse_place,
    parse_sort,
    workflow_spec,
)
from windlass.operations.past import PastJobs
from windlass.operations.queries import PAGE_LIMIT, Queries
from windlass.operations.render import show_event
from windlass.operations.rights import Rights, counted_for, listed_for
from windlass.ports.loop_time import LongList, aside, give_way_if_long, pages
from windlass.store.sql.transaction import ReadTx

MAX_JOBS: Final = 100  # jobs of a chain, on each side of the one that was asked for
JOB_VARIABLES: Final = ("WINDLASS_JOB", "WINDLASS_ATTEMPT", "WINDLASS_WORKFLOW")


async def _visible(tx: ReadTx, job: int, who: Identity) -> tuple[JobRecord, JobSpec]:
    view = await tx.views.job(job)
    if view is None:
        raise NotFound("job", job)
    spec = decode_spec(view.spec)
    if not sees(who, spec.namespace or DEFAULT_NAMESPACE):
        raise NotFound("job", job)
    return view, spec


async def read_reproduction(tx: ReadTx, job: int, who: Identity) -> Reproduction:
    """Returns how to run a job again."""
    view, spec = await _visible(tx, job, who)
    # What it waited for, its key and its workflow are of its first life.
    again = replace(
        spec, after=(), after_any=(), run_if=None, workflow=None, key=None, not_before=None,
        start_before=None, finish_before=None, parent=None,
    )  # fmt: skip
    same = equivalents(again)
    args: dict[str, Any] = spec.args if isinstance(spec.args, dict) else {}
    argv = args.get("argv")
    number = shown_attempt(newest_attempt(view.facts, view.lease), view.facts.handed_back)
    own = dict(zip(JOB_VARIABLES, (job, number or 1, spec.workflow), strict=True))
    env = {name: str(value) for name, value in own.items() if value is not None}
    env |= {str(name): str(value) for name, value in (args.get("env") or {}).items()}
    return Reproduction(
        job=job, attempt=number, command=same.command, python=same.python, call=same.call,
        program=" ".join(map(quote, map(str, argv))) if isinstance(argv, list) else None,
        fetch=[_fetched(one) for one in args.get("inputs") or () if isinstance(one, dict)],
        env=env, secrets=list(spec.secrets), worker=view.worker,
        isolation=await _isolation(tx, view, spec),
    )  # fmt: skip


def _fetched(one: dict[str, Any]) -> str:
    """Returns the command that gets one input."""
    words = ["windlass", "artifacts", str(one.get("job")), str(one.get("artifact"))]
    return " ".join(map(quote, words))


async def _isolation(tx: ReadTx, view: JobRecord, spec: JobSpec) -> str | None:
    """Returns the mode that its worker chose for it, by what its queue demands now.

    None if the worker was restarted since: it may have been set up otherwise.
    """
    if view.worker is None:
        return None
    incarnation = view.facts.incarnation if view.lease is None else view.lease.incarnation
    queues = {row.name: row.isolation for row in await tx.catalog.queues()}
    row = await tx.workers.read_name(view.worker)
    if row is None or row.incarnation != incarnation:
        return None
    own = metadata_of(row.static, row.dynamic).get(DEFAULT, WEAKEST)
    mode = own if own in MODES else WEAKEST
    asked = demanded(spec.isolation, spec.network, spec.image)
    return strongest(mode, asked, queues.get(spec.queue))  # type: ignore[arg-type]


async def read_chain(tx: ReadTx, job: int, who: Identity) -> JobChain:
    """Returns a job with those before and after it."""
    first, _ = await _visible(tx, job, who)
    before, more = await _follow(tx, first, "supersedes")
    after, further = await _follow(tx, first, "superseded_by")
    found = [*reversed(before), first, *after]
    return JobChain([_shown(one) for one in found], more or further)


async def _follow(tx: ReadTx, view: JobRecord, link: str) -> tuple[list[JobRecord], bool]:
    found: list[JobRecord] = []
    while number := getattr(view.facts, link):
        if len(found) == MAX_JOBS:
            return found, True
        other = await tx.views.job(number)
        if other is None:
            return found, True  # Retention has removed it.
        found.append(other)
        view = other
    return found, False


def _shown(view: JobRecord) -> ChainJob:
    facts = view.facts
    return ChainJob(
        id=facts.id,
        state=str(STATE_BY_CODE[view.state]),
        attempts=shown_attempt(newest_attempt(facts, view.lease), facts.handed_back),
        created_at=format_moment(facts.created_at),
        finished_at=shown_moment(view.finished_at),
    )


PageSize = Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=60)]

SOME_LIMIT: Final = 200  # jobs that a page shows at once
WAIT_LIMIT: Final = 10_000  # jobs of one request
NAMED_JOBS: Final = 10  # jobs of one call that the audit log names


routes = Routes("/api/v1/jobs", "jobs")


@routes.post("", needs=Action.SUBMIT_JOBS, status=201, audit=COUNTED, bulk=True)
async def submit(call: Call, data: Body[SubmitRequest]) -> SubmitReply:
    """Submits jobs, all or none of them."""
    traced = call.services.submit_traced
    if traced is not None:
        return await traced(call, data)
    return await call.services.submissions.submit(data, call.who)


@routes.get("", needs=Action.READ_JOBS)
async def list_jobs(
    call: Call,
    where: Query[Where],
    key: str | None = None,
    sort: str = JobSort.NEWEST,
    after: str = "",
    limit: PageSize = 100,
    as_of: str | None = None,
    estimates: bool = False,
) -> JobList:
    """Returns a page of jobs, newest first unless `sort` says otherwise.

    `text` and `regex` (of RE2) are looked for in names, commands, functions and error messages.
    `as_of` shows jobs as they were at a time, without those that were deleted since. With
    `estimates` it also says when each is expected to start and end, and what such jobs took.
    """
    wanted = job_filter(call.who, where, key)
    order, place = parse_sort(sort), parse_place(after)
    if as_of is not None:
        found = await PastJobs(call.services.engine).jobs(wanted, place, limit, order, as_of)
    else:
        found = await call.services.queries.jobs(wanted, place, limit, order, estimates)
    return listed_for(call.who, found, limit)


@routes.get("/count", needs=Action.READ_JOBS)
async def count_jobs(call: Call, where: Query[Where], key: str | None = None) -> JobCount:
    """Returns how many jobs match: exactly if they are few, else at least or about how many."""
    wanted = job_filter(call.who, where, key)
    return counted_for(call.who, await call.services.queries.count_jobs(wanted))


@routes.get("/some", needs=Action.READ_JOBS)
async def some(call: Call, id: list[Id]) -> JobList:  # noqa: A002 - the name of the parameter
    """Returns these jobs, at most 200, as lists do, without those the caller may not see."""
    if len(id) > SOME_LIMIT:
        raise InvalidInput("id", f"at most {SOME_LIMIT} jobs", len(id))
    return JobList(await call.services.queries.some_jobs(id, call.who))


@routes.get("/{job:int}", needs=Action.READ_JOBS)
async def show(call: Call, job: Id, as_of: str | None = None) -> Job:
    """Returns one job with its attempts and transitions; with `as_of` as it was at a time."""
    if as_of is not None:
        return await PastJobs(call.services.engine).job(job, call.who, as_of)
    return await call.services.queries.job(job, call.who)


@routes.get("/{job:int}/wait", needs=Action.READ_JOBS)
async def wait(call: Call, job: Id, timeout: Seconds = 30) -> Job:
    """Returns the job when it has ended, or as it is when the time is up."""
    try:
        return await _wait(call, job, timeout)
    except NotFound:
        return await _wait(call, await call.services.queries.stands_for(job), timeout)


async def _wait(call: Call, job: int, seconds: float) -> Job:
    queries = call.services.queries
    await queries.check_visible([job], call.who)
    await call.services.engine.jobs.wait_ended(job, int(seconds * 1000))
    return await queries.job(job, call.who)


@routes.post("/wait", needs=Action.READ_JOBS)
async def wait_some(call: Call, data: Body[WaitRequest]) -> WaitReply:
    """Returns those of several jobs that have ended, once one or all of them have."""
    try:
        return await _wait_some(call, data)
    except NotFound:
        await call.services.queries.catch_up()
        return await _wait_some(call, data)


async def _wait_some(call: Call, request: WaitRequest) -> WaitReply:
    queries = call.services.queries
    ids = list(dict.fromkeys(request.ids))
    if not 1 <= len(ids) <= WAIT_LIMIT:
        raise InvalidInput("ids", f"1 to {WAIT_LIMIT} jobs", len(ids))
    await _check_given(call, request)
    await queries.check_visible(ids, call.who)
    most = len(ids)

    def enough(ended: Ended) -> bool:
        if request.until == "any":
            return bool(ended)
        failed = request.until == "failure" and any(map(_has_failed, ended.values()))
        return failed or len(ended) == most

    wait_ms = int(request.timeout * 1000)
    ended = await call.services.engine.jobs.wait_some_ended(ids, wait_ms, enough)
    missing = next((job for job, facts in ended.items() if facts is None), None)
    if missing is not None:
        raise NotFound("job", missing)
    first = [job for job in ids if job in ended]
    if request.until == "failure":  # those that did not complete must be among the first
        first.sort(key=lambda job: not _has_failed(ended[job]))
    shown = await queries.some_jobs(first[:PAGE_LIMIT], call.who)
    return WaitReply(shown, max(0, len(first) - PAGE_LIMIT))


@routes.get("/{job:int}/events", needs=Action.READ_JOBS)
async def events(call: Call, job: Id) -> EventList:
    """Returns all events of one job."""
    found = await call.services.queries.events(job, call.who)
    names = call.services.names
    await names.learn(found)
    return EventList([show_event(event, names.known) for event in found])


@routes.post("/cancel", needs=Action.CHANGE_JOBS)
async def cancel_many(call: Call, data: Body[CancelRequest]) -> CancelReply:
    """Cancels jobs. The caller must be allowed to change all of them."""
    call.about = _described(data.ids)
    engine = call.services.engine
    check_count("ids", data.ids, engine.config)
    await call.services.queries.catch_up()
    await _check_given(call, data)
    for ids in pages(data.ids):
        await _check_own(call, ids)
    return CancelReply(await engine.jobs.cancel(data.ids, data.reason, call.who.name))


@routes.post("/{job:int}/cancel", needs=Action.CHANGE_JOBS)
async def cancel(call: Call, job: Id, reason: str = "Canceled") -> CanceledJob:
    """Cancels one job."""
    await call.services.queries.catch_up()
    await _check_own(call, [job])
    (done,) = await call.services.engine.jobs.cancel([job], reason, call.who.name)
    if done.state is None:
        raise NotFound("job", job)
    return done


@routes.post("/delete", needs=Action.DELETE_JOBS)
async def delete_many(call: Call, data: Body[DeleteRequest]) -> DeleteReply:
    """Deletes ended jobs with their logs and artifacts; says for each whether, and why not."""
    call.about = _described(data.ids)
    await _check_given(call, data)
    return await _delete(call, data.ids)


@routes.delete("/{job:int}", needs=Action.DELETE_JOBS)
async def delete(call: Call, job: Id) -> Changed:
    """Deletes an ended job with its log and artifacts; refused while something needs it."""
    (done,) = (await _delete(call, [job])).jobs
    if done.refusal is not None:
        raise Conflict("not_deleted", f"job {job} cannot be deleted: {done.refusal}")
    if not done.applied:
        raise NotFound("job", job)
    return Changed(True)


async def _delete(call: Call, ids: list[int]) -> DeleteReply:
    engine = call.services.engine
    check_count("ids", ids, engine.config)
    for some in pages(ids):
        await call.services.queries.check_visible(some, call.who)
    return DeleteReply(await engine.jobs.delete(ids, call.who.name))


@routes.post("/{job:int}/retry", needs=Action.CHANGE_JOBS)
async def retry(call: Call, job: Id) -> RetryReply:
    """Replaces an ended job with a new one."""
    await _check_own(call, [job])
    return await call.services.engine.jobs.retry(job, call.who.name)


@routes.post("/{job:int}/retry-with", needs=Action.CHANGE_JOBS)
async def retry_with(call: Call, job: Id, data: Body[RetryRequest]) -> RetryReply:
    """Replaces an ended job with a new one that has other arguments."""
    await _check_own(call, [job])
    return await call.services.engine.jobs.retry_with(job, data.args, call.who.name)


@routes.get("/{job:int}/chain", needs=Action.READ_JOBS)
async def chain(call: Call, job: Id) -> JobChain:
    """Returns the job with those that it supersedes and those that supersede it."""
    return await call.services.engine.store.read(lambda tx: read_chain(tx, job, call.who))


@routes.get("/{job:int}/reproduce", needs=Action.READ_JOBS)
async def reproduce(call: Call, job: Id) -> Reproduction:
    """Returns how to run a job again: commands, environment, files."""
    return await call.services.engine.store.read(lambda tx: read_reproduction(tx, job, call.who))


@routes.post("/{job:int}/unblock", needs=Action.UNBLOCK_JOBS)
async def unblock(call: Call, job: Id, data: Body[UnblockRequest]) -> Changed:
    """Accepts or rejects a job that waits for an operator."""
    await call.services.queries.check_visible([job], call.who)
    jobs, actor = call.services.engine.jobs, call.who.name
    return Changed(await jobs.unblock(job, data.accept, data.reason, actor))


@routes.post("/{job:int}/priority", needs=Action.CHANGE_JOBS)
async def prioritize(call: Call, job: Id, data: Body[PriorityRequest]) -> PriorityReply:
    """Sets a job's priority adjustment; submitters may only lower that of their own jobs."""
    engine, rights = call.services.engine, call.services.rights
    shown = await call.services.queries.job(job, call.who)
    await rights.check_own([job], call.who)
    now = shown.priority
    why = rights.refuse_adjustment(now.base, now.adjustment, data.adjustment, call.who)
    if why is not None:
        raise Forbidden(why)
    applied = await engine.jobs.adjust_priority(job, data.adjustment, call.who.name)
    position = await engine.jobs.position(job)
    return PriorityReply(
        base=position.base,
        adjustment=position.adjustment,
        effective=position.base + position.adjustment,
        score=position.score,
        inherited=position.inherited,
        applied=applied,
    )


async def _check_given(call: Call, data: CancelRequest | DeleteRequest | WaitRequest) -> None:
    """Raises `Lost` for ids that were given to other jobs since."""
    if not data.given_at:
        return
    if len(data.given_at) != len(data.ids):
        expected = f"a time for each of the {len(data.ids)} ids, or none"
        raise InvalidInput("given_at", expected, len(data.given_at))
    for page in pages(list(zip(data.ids, data.given_at, strict=True))):
        await call.services.queries.check_given("job", dict(page), call.who)


async def _check_own(call: Call, jobs: Sequence[int]) -> None:
    """Raises `NotFound` for jobs the caller may not see, `Forbidden` for those of others."""
    await call.services.queries.check_visible(jobs, call.who)
    await call.services.rights.check_own(jobs, call.who)


def _described(ids: Sequence[int]) -> str:
    """Returns which jobs a call is about, in words for the audit log."""
    named = ", ".join(map(str, ids[:NAMED_JOBS]))
    more = f" and {len(ids) - NAMED_JOBS} more" if len(ids) > NAMED_JOBS else ""
    return f"{'job' if len(ids) == 1 else 'jobs'} {named}{more}" if ids else ""


def _has_failed(facts: JobFacts | None) -> bool:
    return facts is not None and facts.final_state != COMPLETED


class Submissions:
    """Submits jobs of requests, and those of users' own transactions, with their rights."""

    def __init__(self, engine: Engine, queries: Queries) -> None:
        self._engine = engine
        self._queries = queries
        self._rights = Rights(engine)

    async def submit(self, request: SubmitRequest, who: Identity) -> SubmitReply:
        """Submits all jobs of a request, or none."""
        specs, workflow = await self.prepare(request, who)
        done = await self._engine.submit(specs, workflow, request.key, request.reopen)
        return SubmitReply(list(done.ids), list(done.applied), done.workflow, done.at)

    async def prepare(
        self, request: SubmitRequest, who: Identity
    ) -> tuple[list[JobSpec], WorkflowSpec | None]:
        """Returns what a request submits; raises if the caller may not submit it."""
        check_count("jobs", request.jobs, self._engine.config)
        numbered = enumerate(request.jobs)
        specs = await aside(
            len(request.jobs),
            lambda: LongList(job_spec(job, who, f"jobs[{n}]") for n, job in numbered),
        )
        await self._queries.check_visible([job.parent for job in request.jobs if job.parent], who)
        await give_way_if_long()
        joined = [job.workflow for job in request.jobs if job.workflow]
        await self._queries.check_workflows(joined, who)
        await give_way_if_long()
        await self._rights.check_priorities(request.jobs, request.workflow, who)
        return specs, workflow_spec(request.workflow, who)

    async def read_inbox(self, row: InboxRow) -> InboxRequest:
        """Returns what a user submitted in a transaction of its own; raises as `submit` does.

        A row has the rights of a submitter in its namespaces.
        """
        try:
            decoded = msgspec.json.decode(row.body)
        except msgspec.DecodeError as error:
            raise InvalidInput("submission", "JSON", str(error)) from None
        except RecursionError:
            raise too_deep("submission") from None
        check_depth(decoded, "submission", row.body)
        request = convert(decoded, SubmitRequest, "submission")
        who = Identity(0, row.submitted_by, Role.SUBMITTER, row.namespaces)
        return InboxRequest(*await self.prepare(request, who))
