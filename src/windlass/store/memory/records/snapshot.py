"""Everything the store holds, in the one order that all stores show it in."""

from windlass.ports.store import Snapshot
from windlass.store.memory.core.log import sum_counters
from windlass.store.memory.tables import Tables


def take_snapshot(tables: Tables) -> Snapshot:
    """Returns each table ascending by its key; places in the order they are served in."""
    return Snapshot(
        jobs=tuple(sorted(tables.jobs, key=lambda row: row.facts.id)),
        waits=tuple(sorted(tables.waits, key=lambda row: row.job)),
        due=tuple(tables.due.between((), None)),
        parked=tuple(tables.parked.between((), None)),
        ready=tuple(tables.ready.between((), None)),
        leases=tuple(sorted(tables.leases, key=lambda row: row.job)),
        attempts=tuple(tables.attempts.between((), None)),
        dependents=_dependents(tables),
        workers=tuple(sorted(tables.workers, key=lambda row: row.id)),
        limits=tuple(sorted(tables.limits, key=lambda row: row.id)),
        keys=tuple(sorted(tables.keys)),
        workflows=tuple(sorted(tables.workflows, key=lambda row: row.id)),
        cascades=tuple(tables.cascades.between((), None)),
        shapes=tuple(tables.shapes.between((), None)),
        queues=tuple(sorted(tables.queues)),
        meta=tuple(sorted(tables.meta)),
        counters=tuple(pair for pair in sum_counters(tables).items() if pair[1]),
        tokens=tuple(sorted(tables.tokens)),
        codes=tuple(sorted(tables.codes)),
        logs=tuple(tables.logs.between((), None)),
        artifacts=tuple(sorted(row for rows in tables.artifacts for row in rows.values())),
        names=tuple(sorted(tables.names)),
        uploads=tuple(sorted(tables.uploads)),
        progress=tuple(sorted(tables.progress)),
        dynamic=tuple(sorted(tables.dynamic)),
        steps=tuple(
            sorted(
                (row for rows in tables.steps for row in rows.values()),
                key=lambda row: (row.job, row.key),
            )
        ),
        signals=tuple(tables.signals.between((), None)),
        baseline=tuple(tables.baseline.between((), None)),
        templates=tuple(sorted(tables.templates)),
        schedules=tuple(sorted(tables.schedules, key=lambda row: row.id)),
        schedule_runs=tuple(tables.schedule_runs.between((), None)),
        reactions=tuple(tables.reactions.between((), None)),
        workflow_about=tuple(sorted(tables.workflow_about, key=lambda row: row.workflow)),
        workflow_keys=tuple(sorted(tables.workflow_keys)),
        rates=tuple(sorted(tables.rates)),
        reservations=tuple(sorted(tables.reservations)),
        namespace_weights=tuple(sorted(tables.namespace_weights)),
        statistics=tuple(sorted(tables.statistics)),
        series=tuple(sorted(tables.series)),
        usage=tuple(sorted(tables.usage)),
        deadlines=tuple(tables.deadlines.between((), None)),
        past_metadata=tuple(sorted(tables.past_metadata)),
        past_workers=tuple(sorted(tables.past_workers)),
        pools=tuple(sorted(tables.pools, key=lambda row: row.id)),
        pool_workers=tuple(tables.pool_workers.between((), None)),
        pool_costs=tuple(sorted(tables.pool_costs)),
        inbox=tuple(tables.inbox.between((), None)),
        job_aliases=tuple(tables.job_aliases.between((), None)),
        gaps=tuple(tables.gaps.between((), None)),
    )


def _dependents(tables: Tables) -> tuple[tuple[int, tuple[int, ...]], ...]:
    edges: dict[int, list[int]] = {}
    for chunk in tables.dependents.between((), None):
        edges.setdefault(chunk.job, []).extend(chunk.edges)
    return tuple((job, tuple(its)) for job, its in edges.items())
