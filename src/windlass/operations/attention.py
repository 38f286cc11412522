"""Finds what a person should look at, of what a caller may see. Each look is bounded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlencode

from windlass.domain.access.rights import FLEET, Action, Identity, may, sees
from windlass.domain.job.job import ALLOW_FAILURE, QUARANTINED
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.timeouts import NEAR
from windlass.domain.lifecycle.workflow_state import WorkflowState, decode_details, may_be_stuck
from windlass.domain.matching.workers import LEAVING, STOPPED, WHILE_DRAINING, WorkerStatus
from windlass.domain.pools.pools import PoolState
from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import BY_OPERATOR, JobRecord, Lease, Worker, WorkflowRow
from windlass.domain.rows.series import (
    HOUR,
    TEN_MINUTES,
    Figures,
    SeriesKind,
    read_figures,
    slot_of,
)
from windlass.domain.rows.views import JobFilter, JobSort
from windlass.domain.schedules import MISSED, ReactionState, RunState
from windlass.domain.values.quantities import counted, format_moment, readable_duration
from windlass.engine.engine import Engine
from windlass.engine.fleet.capability import MISMATCH, Verdicts, impossible, read_fleet
from windlass.engine.fleet.epochs import describe, known_losses
from windlass.engine.inbox import INBOX_PATIENCE_MS, late_inbox
from windlass.engine.pools.pools import Pools, PoolView
from windlass.messages.overview import LOST_COMMITS, AttentionItem, AttentionList, Help, Look
from windlass.operations.failures import FailedJobs, group_failures, spikes
from windlass.operations.parse import namespace_of
from windlass.store.sql.transaction import ReadTx

LOOKED: Final = 500  # rows of each kind
MAX_WAITING: Final = 10_000  # ready jobs that are counted
RECENT_MS: Final = 86_400_000  # how long a failure or a lost log is told
LOSS_TOLD_MS: Final = 7 * 86_400_000
SETTLED_MS: Final = 60_000  # a younger workflow may be about to move
MAX_BLOCKED: Final = 100  # jobs of one workflow that are checked
MAX_GROUPS: Final = 50  # kinds of failures
MANY: Final = 10  # failures with one cause that are an error
ENDS: Final = 5_000  # ended runs of schedules that are looked at
RUNNING: Final = JobFilter(states=(State.RUNNING.code,))
SEVERITIES: Final = ("error", "warning", "info")

Shown = Callable[[str], bool]


class Attention:
    """Looks at what went wrong and what waits for somebody."""

    def __init__(self, engine: Engine, pools: Pools | None = None) -> None:
        self._engine = engine
        self._pools = pools

    async def show(self, who: Identity, namespace: str | None) -> AttentionList:
        """Returns what needs attention in one namespace, or in all that the caller sees."""
        only = None if namespace is None else namespace_of(namespace, who)

        def shown(name: str) -> bool:
            return only == name if only is not None else sees(who, name)

        async def read(tx: ReadTx) -> list[AttentionItem]:
            found = [
                *await self._failures(tx, shown, only),
                *await self._spikes(tx, shown),
                *await self._schedules(tx, shown),
                *await self._impossible(tx, shown),
                *await self._stalled(tx, shown),
                *await self._paused(tx, shown),
                *await self._near_timeouts(tx, shown),
                *await self._lost_logs(tx, shown),
                *await self._reactions(tx, shown),
                *await self._questions(tx, shown),
            ]
            if may(who, Action.READ_FLEET, FLEET):
                found += _lost(await known_losses(tx), tx.now)
                found += _unwell(await tx.workers.all())
                found += _late(await tx.inbox.oldest(), tx.now)
            return found

        items = await self._engine.store.read(read)
        if self._pools is not None and may(who, Action.READ_FLEET, FLEET):
            items += _poor(await self._pools.all())
        return AttentionList(sorted(items, key=lambda one: SEVERITIES.index(one.severity)))

    async def _failures(self, tx: ReadTx, shown: Shown, only: str | None) -> list[AttentionItem]:
        """Tells about failed workflows, quarantined jobs, and other failed jobs by their error."""
        rows = await tx.workflows.newest(2**62, LOOKED)
        recent = tx.now - RECENT_MS
        failed = [
            row
            for row in await _not_repeated(tx, rows)
            if row.state == WorkflowState.FAILED
            and shown(row.namespace)
            and (row.finished_at or 0) > recent
        ]
        records = await tx.views.failed_jobs(LOOKED)
        mine = await self._of_namespaces(tx, records, shown)
        bad = [record for record in mine if record.facts.flags & QUARANTINED]
        told = {row.id for row in failed}
        others = [
            record
            for record in mine
            if not record.facts.flags & QUARANTINED
            and not record.facts.flags & ALLOW_FAILURE
            and record.facts.workflow not in told
            and (record.finished_at or 0) > recent
        ]
        catalog = self._engine.catalog
        groups = group_failures(others, catalog.shapes)[:MAX_GROUPS]
        items = _quarantined(bad, only, exact=len(records) < LOOKED)
        items += [await self._failed_workflows(tx, rows) for rows in _by_name(failed)]
        items += [self._failed(group, exact=len(records) < LOOKED) for group in groups]
        return items

    def _failed(self, group: FailedJobs, *, exact: bool) -> AttentionItem:
        ids = [job.facts.id for job in group.jobs]
        ends = [job.finished_at or 0 for job in group.jobs]
        one = len(ids) == 1
        newest = group.newest.facts.id
        return AttentionItem(
            kind="rejected" if group.error.state == State.REJECTED.code else "failed",
            severity="error" if len(ids) >= MANY else "warning",
            title=group.title(self._engine.catalog.shapes),
            reason=group.reason,
            count=len(ids),
            exact=exact,
            link=f"jobs/{newest}" if one else _link("jobs", id=ids),
            key=" ".join(("failed", *map(str, group.error))),
            first_at=format_moment(min(ends)),
            last_at=format_moment(max(ends)),
            help=_help(
                "Retry it" if one else "Retry these", "/api/v1/jobs/bulk", Action.CHANGE_JOBS,
                {"action": "retry", "where": {"id": ids}},
            ),
            look=None if one else Look(label="Show the newest", link=f"jobs/{newest}"),
        )  # fmt: skip

    async def _failed_workflows(self, tx: ReadTx, rows: list[WorkflowRow]) -> AttentionItem:
        """Tells about failed workflows of one name, with what failed first in the newest."""
        newest = rows[0]
        name = newest.name or str(newest.id)
        one = len(rows) == 1
        wanted = JobFilter(
            states=(State.FAILED.code, State.REJECTED.code), workflow=newest.id, current=True
        )
        page = await tx.views.sorted_jobs(wanted, JobSort.OLDEST, None, MAX_BLOCKED)
        await self._engine.catalog.know(tx, {job.facts.shape for job in page.jobs})
        guilty = [job for job in page.jobs if not job.facts.flags & ALLOW_FAILURE]
        reason = "Its jobs were canceled or aborted."
        if guilty:
            first = min(guilty, key=lambda job: job.finished_at or 0)
            (group,) = group_failures([first], self._engine.catalog.shapes)
            reason = f"{group.title(self._engine.catalog.shapes)}: {group.reason}"
        ends = [row.finished_at or 0 for row in rows]
        link = f"workflows/{newest.id}"
        return AttentionItem(
            kind="failed_workflow",
            severity="error",
            title=f"Workflow {name} failed" if one else f"{len(rows):,} workflows {name} failed",
            reason=reason,
            count=len(rows),
            link=link if one else _link("workflows", state="failed", name=newest.name),
            key=f"failed_workflow {newest.namespace} {newest.name or newest.id}",
            first_at=format_moment(min(ends)),
            last_at=format_moment(max(ends)),
            help=_help(
                "Retry failed", f"/api/v1/workflows/{newest.id}/retry", Action.CHANGE_JOBS, {}
            ) if one else None,
            look=None if one else Look(label="Show the newest", link=link),
        )  # fmt: skip

    async def _spikes(self, tx: ReadTx, shown: Shown) -> list[AttentionItem]:
        """Tells about queues whose jobs fail more often than in the day before."""
        start = slot_of(tx.now, TEN_MINUTES) - HOUR
        now = await _by_queue(tx, shown, TEN_MINUTES, start, 2**62)
        if not any(figures.failed for figures in now.values()):
            return []
        before = await _by_queue(tx, shown, HOUR, slot_of(start, HOUR) - RECENT_MS, start)
        return [
            AttentionItem(
                kind="failure_rate",
                severity="error",
                title=f"Jobs in queue {spike.queue} fail more often than before",
                reason=spike.reason,
                count=spike.failed,
                link=_link("jobs", state="failed", queue=spike.queue, since="1h"),
                key=f"failure_rate {spike.queue}",
            )
            for spike in spikes(now, before)
        ]

    async def _schedules(self, tx: ReadTx, shown: Shown) -> list[AttentionItem]:
        """Tells about schedules that missed slots, or could not start a run."""
        ended = await tx.schedules.unstarted(tx.now - RECENT_MS, ENDS)
        runs = [run for run in ended if run.state == RunState.FAILED or run.reason == MISSED]
        if not runs:
            return []
        schedules = {row.id: row for row in await tx.schedules.all(None) if shown(row.namespace)}
        items: list[AttentionItem] = []
        for schedule in dict.fromkeys(run.schedule for run in runs if run.schedule in schedules):
            row = schedules[schedule]
            mine = [run for run in runs if run.schedule == schedule]
            if any(run.state == RunState.FAILED for run in mine):
                what, mine = "could not start", [r for r in mine if r.state == RunState.FAILED]
            else:
                what = "missed"
            times = [run.slot or run.created_at for run in mine]
            place = _link("schedules", **{"show": row.name, "in": row.namespace})
            items.append(
                AttentionItem(
                    kind="schedule",
                    severity="warning",
                    title=f"Schedule {row.name} {what} {counted(len(mine), 'run')}",
                    reason=mine[0].reason or "It gave no reason.",
                    count=len(mine),
                    link=place,
                    key=f"schedule {row.namespace} {row.name}",
                    first_at=format_moment(min(times)),
                    last_at=format_moment(max(times)),
                    look=Look(label="Show the schedule", link=place),
                )
            )
        return items

    async def _impossible(self, tx: ReadTx, shown: Shown) -> list[AttentionItem]:
        """Tells about jobs that no worker could run, each kind with the clause that fails."""
        heads = await tx.places.heads()
        catalog = self._engine.catalog
        await catalog.know(tx, {head.shape for head in heads})
        shapes = [(head.shape, catalog.shapes[head.shape]) for head in heads]
        mine = [(number, shape) for number, shape in shapes if shown(shape.namespace)][:LOOKED]
        found = impossible(mine, Verdicts(await read_fleet(tx)), {}, tx.now) if mine else {}
        first = {head.shape: head.job for head in heads}
        items: dict[tuple[str, str], tuple[str, int, int]] = {}
        for number, why in found.items():
            shape = catalog.shapes[number]
            waiting = await tx.views.ready_before([number], 2**62, 0, MAX_WAITING)
            _, before, _ = items.get((shape.queue, why.reason), ("", 0, 0))
            items[shape.queue, why.reason] = shape.task, before + waiting, first[number]
        return [
            AttentionItem(
                kind="impossible",
                severity="error",
                title=f"{counted(count, 'job')} in queue {queue} that no worker can run",
                reason=reason.removeprefix(f"{MISMATCH}: "),
                count=count,
                exact=count < MAX_WAITING,
                link=_link("jobs", state="queued", queue=queue, task=task)
                if count > 1
                else f"jobs/{job}",
                look=Look(label="See why", link=f"jobs/{job}?tab=waiting"),
            )
            for (queue, reason), (task, count, job) in items.items()
        ]

    async def _stalled(self, tx: ReadTx, shown: Shown) -> list[AttentionItem]:
        rows = await tx.workflows.unfinished(0, LOOKED)
        stuck = [row for row in rows if shown(row.namespace) and may_be_stuck(row.counts)]
        old = [row for row in stuck if tx.now - row.created_at > SETTLED_MS]
        return [await _still(tx, row.id, row.name or str(row.id)) for row in old[:20]]

    async def _paused(self, tx: ReadTx, shown: Shown) -> list[AttentionItem]:
        paused = [row.name for row in await tx.catalog.queues() if row.paused]
        if not paused:
            return []
        depths = await tx.views.queue_depths()
        heads = await tx.places.heads()
        catalog = self._engine.catalog
        await catalog.know(tx, {head.shape for head in heads})
        shapes = (catalog.shapes[head.shape] for head in heads)
        mine = {shape.queue for shape in shapes if shown(shape.namespace)}
        return [
            AttentionItem(
                kind="paused",
                severity="warning",
                title=f"Queue {name} is paused",
                reason=_waiting(depths[name]),
                count=depths[name],
                link=_link("jobs", state="queued", queue=name),
                help=_help(
                    "Resume it", f"/api/v1/queues/{quote(name, safe='')}/resume",
                    Action.MANAGE_QUEUES,
                ),
            )
            for name in paused
            if name in mine and depths.get(name, 0) > 0
        ]  # fmt: skip

    async def _near_timeouts(self, tx: ReadTx, shown: Shown) -> list[AttentionItem]:
        """Tells about jobs that will soon be stopped, among those that have run longest."""
        page = await tx.views.sorted_jobs(RUNNING, JobSort.RUNNING, None, LOOKED)
        near = [one for one in page.jobs if one.lease and _is_near(one.lease, tx.now)]
        mine = await self._of_namespaces(tx, near, shown)
        if not mine:
            return []
        first = min(mine, key=_stopped_at).facts.id
        return [
            AttentionItem(
                kind="timeout",
                severity="info",
                title=f"{counted(len(mine), 'job')} close to the timeout",
                reason=f"{NEAR:.0%} of it has passed; at its end the job is stopped and fails."
                " Change it with --timeout of the job, or of its queue.",
                count=len(mine),
                exact=page.next is None,
                link=_link("jobs", state="running", sort="running")
                if len(mine) > 1
                else f"jobs/{first}",
                look=Look(label="Show the next to be stopped", link=f"jobs/{first}"),
            )
        ]

    async def _lost_logs(self, tx: ReadTx, shown: Shown) -> list[AttentionItem]:
        rows = await tx.files.lost_logs(LOOKED)
        jobs = sorted({row.job for row in rows})
        views = await tx.views.some(jobs)
        recent = [view for view in views if (view.finished_at or tx.now) > tx.now - RECENT_MS]
        mine = await self._of_namespaces(tx, recent, shown)
        if not mine:
            return []
        newest = max(record.facts.id for record in mine)
        return [
            AttentionItem(
                kind="lost_log",
                severity="info",
                title=f"{counted(len(mine), 'job')} of the last day lost the end of the log",
                reason="Their workers were lost, or could not send the rest.",
                count=len(mine),
                exact=len(rows) < LOOKED,
                link=f"jobs/{newest}",
                look=Look(label="Show the newest", link=f"jobs/{newest}?tab=log"),
            )
        ]

    async def _reactions(self, tx: ReadTx, shown: Shown) -> list[AttentionItem]:
        rows = await tx.reactions.ended(tx.now - RECENT_MS, LOOKED)
        failed = [row for row in rows if row.state == ReactionState.FAILED]
        workflows = await tx.workflows.read(sorted({row.workflow for row in failed}))
        mine = [
            row
            for row in failed
            if row.workflow in workflows and shown(workflows[row.workflow].namespace)
        ]
        if not mine:
            return []
        return [
            AttentionItem(
                kind="reaction",
                severity="warning",
                title=f"{counted(len(mine), 'workflow reaction')} failed",
                reason=mine[0].message or "Windlass stopped trying in the last day.",
                count=len(mine),
                exact=len(rows) < LOOKED,
                link=f"workflows/{mine[0].workflow}",
                look=Look(
                    label="Show the workflow", link=f"workflows/{mine[0].workflow}?tab=reactions"
                ),
            )
        ]

    async def _questions(self, tx: ReadTx, shown: Shown) -> list[AttentionItem]:
        rows = await tx.steps.questions(0, LOOKED)
        mine = [row for row in rows if shown(row.namespace)]
        if not mine:
            return []
        return [
            AttentionItem(
                kind="question",
                severity="info",
                title=f"{counted(len(mine), 'question')} without an answer",
                reason="Jobs wait for a person.",
                count=len(mine),
                exact=len(rows) < LOOKED,
                link="questions",
                look=Look(label="Answer", link="questions"),
            )
        ]

    async def _of_namespaces(
        self, tx: ReadTx, records: Iterable[JobRecord], shown: Shown
    ) -> list[JobRecord]:
        found = list(records)
        catalog = self._engine.catalog
        await catalog.know(tx, {record.facts.shape for record in found})
        return [r for r in found if shown(catalog.shapes[r.facts.shape].namespace)]


def _quarantined(bad: Sequence[JobRecord], only: str | None, *, exact: bool) -> list[AttentionItem]:
    if not bad:
        return []
    where = {"dead": True} if only is None else {"dead": True, "namespace": only}
    body = {"action": "retry", "where": where}
    return [
        AttentionItem(
            kind="quarantined",
            severity="error",
            title=counted(len(bad), "quarantined job"),
            reason="They may have killed their workers repeatedly. They do not run again on their"
            " own.",
            count=len(bad),
            exact=exact,
            link=_link("jobs", dead="true", **({} if only is None else {"namespace": only})),
            help=_help("Retry all dead jobs", "/api/v1/jobs/bulk", Action.CHANGE_JOBS, body),
        )
    ]


async def _not_repeated(tx: ReadTx, rows: Sequence[WorkflowRow]) -> list[WorkflowRow]:
    """Returns workflows that no newer one repeats."""
    if not any(row.state == WorkflowState.FAILED for row in rows):
        return []
    about = await tx.workflows.about([row.id for row in rows])
    repeated = {decode_details(one.body).supersedes for one in about.values()}
    return [row for row in rows if row.id not in repeated]


def _by_name(rows: Iterable[WorkflowRow]) -> list[list[WorkflowRow]]:
    """Returns workflows of one name together, and those without one by themselves."""
    groups: dict[tuple[str, str | int], list[WorkflowRow]] = {}
    for row in rows:
        groups.setdefault((row.namespace, row.name or row.id), []).append(row)
    return list(groups.values())[:MAX_GROUPS]


async def _by_queue(
    tx: ReadTx, shown: Shown, step: int, start: int, end: int
) -> dict[str, Figures]:
    """Returns what happened in each queue in a range."""
    found: dict[str, Figures] = {}
    for row in await tx.series.between((SeriesKind.WORK,), step, start, end):
        if shown(row.namespace):
            found.setdefault(row.name, Figures()).merge(read_figures(row))
    return found


def _is_near(lease: Lease, now: int) -> bool:
    if lease.started_at is None or lease.timeout_ms is None:
        return False
    return now - lease.started_at >= NEAR * lease.timeout_ms


def _stopped_at(record: JobRecord) -> int:
    lease = record.lease
    return 0 if lease is None else (lease.started_at or 0) + (lease.timeout_ms or 0)


def _lost(gaps: Iterable[Gap], now: int) -> list[AttentionItem]:
    """Returns the newest failover or restore that lost commits, for a week after it."""
    return [
        AttentionItem(
            kind=LOST_COMMITS,
            severity="error",
            title="Acknowledged commits were lost",
            reason=f"{describe(gap)}. Submit lost jobs again.",
            count=1,
            link="events",
        )
        for gap in gaps
        if gap.at > now - LOSS_TOLD_MS
    ][:1]


async def _still(tx: ReadTx, workflow: int, name: str) -> AttentionItem:
    """Tells about a workflow with only blocked jobs: it may be a person it waits for."""
    blocked = JobFilter(states=(State.BLOCKED.code,), workflow=workflow)
    # The first of them waits for none of the others, so it says what they all wait for.
    page = await tx.views.sorted_jobs(blocked, JobSort.OLDEST, None, MAX_BLOCKED)
    ids = sorted(record.facts.id for record in page.jobs)
    for moment in await tx.views.moments(ids):
        if moment.manual == BY_OPERATOR and moment.unmet == 1:
            return AttentionItem(
                kind="approval",
                severity="warning",
                title=f"Workflow {name} waits for approval",
                reason=f"Job {moment.job} continues once somebody accepts it.",
                count=1,
                link=f"workflows/{workflow}",
                help=_help(
                    f"Approve job {moment.job}",
                    f"/api/v1/jobs/{moment.job}/unblock",
                    Action.UNBLOCK_JOBS,
                    {"accept": True},
                ),
            )
    outside = "" if page.next else ": they wait for jobs outside it"
    return AttentionItem(
        kind="stalled",
        severity="warning",
        title=f"Workflow {name} does not move",
        reason=f"Only blocked jobs are left in it{outside}.",
        count=1,
        link=f"workflows/{workflow}",
        help=_help("Cancel it", f"/api/v1/workflows/{workflow}/cancel", Action.CHANGE_JOBS, {}),
    )


_UNWELL: Final = {
    WorkerStatus.PENDING_APPROVAL: (
        "info", ("waits for approval", "wait for approval"), "approve", "Approve"
    ),
    WorkerStatus.DISABLED: ("info", ("is disabled", "are disabled"), "enable", "Enable"),
    WorkerStatus.OFFLINE: ("warning", ("is offline", "are offline"), None, None),
    WorkerStatus.UNHEALTHY: ("warning", ("missed a heartbeat",) * 2, None, None),
    WorkerStatus.PROBATION: (
        "warning", ("is on probation", "are on probation"), "enable", "End probation"
    ),
    WorkerStatus.DRAINING: (
        "warning", ("takes no more jobs", "take no more jobs"), "enable", "Enable"
    ),
}  # fmt: skip


def _left(worker: Worker) -> bool:
    """Returns True if it stops by itself, or was drained and then did, as idle ones of pools do."""
    drained = worker.status == WorkerStatus.OFFLINE and worker.reason == STOPPED + WHILE_DRAINING
    return drained or worker.reason == LEAVING


def _late(submitted: int | None, now: int) -> list[AttentionItem]:
    """Returns an item if submissions of users' transactions do not become jobs."""
    waited = 0 if submitted is None else now - submitted
    if waited <= INBOX_PATIENCE_MS:
        return []
    return [
        AttentionItem(
            kind="inbox",
            severity="error",
            title="Submissions from users' transactions are waiting",
            reason=f"{late_inbox(waited)}.",
            count=1,
            exact=False,
            link="jobs",
        )
    ]


def _unwell(workers: Iterable[Worker]) -> list[AttentionItem]:
    """Returns the workers that take no jobs, or few, grouped by state and reason."""
    groups: dict[tuple[int, str], list[Worker]] = {}
    for worker in workers:
        if WorkerStatus(worker.status) in _UNWELL and not _left(worker):
            groups.setdefault((worker.status, worker.reason or ""), []).append(worker)
    items: list[AttentionItem] = []
    for (status, reason), some in list(groups.items())[:50]:
        severity, what, action, label = _UNWELL[WorkerStatus(status)]
        path = f"/api/v1/workers/{some[0].id}/{action}"
        one = len(some) == 1
        name = some[0].name
        state = WorkerStatus(status).name.lower()
        link = f"workers/{quote(name, safe='')}" if one else _link("workers", state=state)
        look = Look(label="Show it" if one else "Show them", link=link)
        items.append(
            AttentionItem(
                kind="worker",
                severity=severity,  # type: ignore[arg-type]
                title=f"Worker {name} {what[0]}" if one else f"{len(some):,} workers {what[1]}",
                reason=_in_words(status, reason, one),
                count=len(some),
                link=link,
                help=_help(label or "", path, Action.MANAGE_WORKERS) if one and action else None,
                look=look,
            )
        )
    return items


def _in_words(status: int, reason: str, one: bool) -> str:
    """Returns why workers take no jobs, as a sentence where the reason is only a word."""
    if reason == "lost":
        return "No heartbeat came in time."
    name = WorkerStatus(status).name.lower().replace("_", " ")
    return reason or f"{'It is' if one else 'They are'} {name}."


def _poor(pools: Iterable[PoolView]) -> list[AttentionItem]:
    """Tells of pools that have used up their budget, or cannot start machines."""
    items: list[AttentionItem] = []
    for row, pool, _, costs in pools:
        link = f"pools/{quote(row.name, safe='')}"
        used = sum(cost.ms for cost in costs)
        limit = pool.max_ms_per_month
        if limit and used >= limit * 9 // 10:
            is_spent = used >= limit
            state = "used up" if is_spent else "almost used up"
            told = f"{readable_duration(used)} of {readable_duration(limit)} are used this month."
            items.append(
                AttentionItem(
                    kind="budget",
                    severity="error" if is_spent else "warning",
                    title=f"The budget of pool {row.name} is {state}",
                    reason=told,
                    count=1,
                    link=link,
                    look=Look(label="Show the pool", link=link),
                )
            )
        if row.failures and row.state == PoolState.ACTIVE:
            items.append(
                AttentionItem(
                    kind="pool",
                    severity="error",
                    title=f"Pool {row.name} cannot start workers",
                    reason=row.message or "Its provider failed.",
                    count=row.failures,
                    link=link,
                    look=Look(label="Show the pool", link=link),
                )
            )
    return items


def _help(label: str, path: str, needs: Action, body: Mapping[str, object] | None = None) -> Help:
    given = None if body is None else dict(body)
    return Help(label=label, method="POST", path=path, needs=needs.value, body=given)


def _link(view: str, **query: str | Sequence[int]) -> str:
    return f"{view}?{urlencode(query, doseq=True)}"


def _waiting(count: int) -> str:
    return "1 job waits in it." if count == 1 else f"{count:,} jobs wait in it."
