"""Everything the store holds, in the one order that all stores show it in."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import apsw

from windlass.domain.matching.workers import PastMetadata
from windlass.domain.rows.files import UploadRow
from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import JobAlias
from windlass.domain.rows.series import SeriesRow
from windlass.domain.rows.statistics import StatisticsRow, Usage
from windlass.ports.store import Snapshot
from windlass.store.spans import as_key
from windlass.store.sql.inbox import inbox_of
from windlass.store.sqlite.rows import (
    Row,
    as_about,
    as_artifact,
    as_attempt,
    as_baseline,
    as_cascade,
    as_code,
    as_cost,
    as_due,
    as_dynamic,
    as_lease,
    as_limit,
    as_log,
    as_name,
    as_pool,
    as_pool_worker,
    as_progress,
    as_queue,
    as_rate,
    as_reaction,
    as_record,
    as_reservation,
    as_run,
    as_schedule,
    as_shape,
    as_signal,
    as_step,
    as_template,
    as_ticket,
    as_token,
    as_wait,
    as_worker,
    as_workflow,
    unpack,
)
from windlass.store.sqlite.session import SqliteSession
from windlass.store.sqlite.statements import QUERIES

R = TypeVar("R")


def take_snapshot(session: SqliteSession) -> Snapshot:
    """Reads every table; the caller holds a transaction, so that they belong together."""

    connection = session.connection

    def whole(query: str, make: Callable[[Row], R]) -> tuple[R, ...]:
        return tuple(map(make, connection.execute(QUERIES[query])))

    return Snapshot(
        jobs=whole("all_jobs", as_record),
        waits=whole("all_waits", as_wait),
        due=whole("all_due", as_due),
        parked=whole("all_parked", as_ticket),
        ready=whole("all_ready", as_ticket),
        leases=whole("all_leases", as_lease),
        attempts=whole("all_attempts", as_attempt),
        dependents=tuple(_dependents(connection)),
        workers=whole("all_workers", as_worker),
        limits=whole("all_limits", as_limit),
        keys=whole("all_keys", as_key),
        workflows=whole("all_workflows", as_workflow),
        cascades=whole("all_cascades", as_cascade),
        shapes=tuple(map(as_shape, connection.execute(QUERIES["shapes_after"], (0,)))),
        queues=whole("queues", as_queue),
        meta=whole("meta", _pair),
        counters=tuple(pair for pair in whole("counters", _pair) if pair[1]),
        tokens=whole("all_tokens", as_token),
        codes=whole("all_codes", as_code),
        logs=whole("all_logs", as_log),
        artifacts=whole("all_artifacts", as_artifact),
        names=whole("all_names", as_name),
        uploads=whole("all_uploads", UploadRow._make),
        progress=whole("all_progress", as_progress),
        dynamic=whole("all_dynamic", as_dynamic),
        steps=whole("all_steps", as_step),
        signals=whole("all_signals", as_signal),
        baseline=whole("all_baseline", as_baseline),
        templates=whole("all_templates", as_template),
        schedules=whole("all_schedules", as_schedule),
        schedule_runs=whole("all_schedule_runs", as_run),
        reactions=whole("all_reactions", as_reaction),
        workflow_about=whole("all_workflow_about", as_about),
        workflow_keys=whole("all_workflow_keys", _named),
        rates=whole("all_rates", as_rate),
        reservations=whole("reservations", as_reservation),
        namespace_weights=whole("namespace_weights", _pair),
        statistics=whole("all_statistics", StatisticsRow._make),
        series=whole("all_series", SeriesRow._make),
        usage=whole("all_usage", Usage._make),
        deadlines=whole("all_deadlines", _times),
        past_workers=tuple(connection.execute(QUERIES["all_past_workers"])),
        past_metadata=tuple(
            map(PastMetadata._make, connection.execute(QUERIES["past_metadata"], (0,)))
        ),
        pools=whole("all_pools", as_pool),
        pool_workers=whole("all_pool_workers", as_pool_worker),
        pool_costs=whole("all_pool_costs", as_cost),
        inbox=tuple(inbox_of(session, connection.execute(QUERIES["all_inbox"]).fetchall())),
        job_aliases=whole("all_job_aliases", JobAlias._make),
        gaps=whole("gaps", Gap._make),
    )


def _dependents(connection: apsw.Connection) -> Iterator[tuple[int, tuple[int, ...]]]:
    edges: dict[int, tuple[int, ...]] = {}
    for job, packed in connection.execute(QUERIES["all_dependents"]):
        edges[job] = edges.get(job, ()) + unpack(packed)
    yield from edges.items()


def _named(row: Row) -> tuple[str, str, int]:
    namespace, key, workflow = row
    return namespace, key, workflow


def _times(row: Row) -> tuple[int, int]:
    at, job = row
    return at, job


def _pair(row: Row) -> tuple[str, int]:
    name, value = row
    return name, value
