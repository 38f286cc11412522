"""Pages of very many workers, and the load of namespaces."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from windlass.domain.access.rights import FLEET, Action, Identity, may, sees
from windlass.domain.matching.clauses import Clause, parse_clause
from windlass.domain.matching.matching import ALLOWLIST, DENYLIST, first_mismatch, metadata_of
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.pools.pools import POOL_KEY
from windlass.domain.rows.views import FleetRow
from windlass.domain.values.errors import UnknownName
from windlass.messages.workers import (
    FleetPage,
    FleetWorker,
    NamespaceLoad,
    NamespaceLoads,
    WorkerInfo,
)
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.queries import PAGE_LIMIT
from windlass.operations.workers import show as show_worker
from windlass.operations.workers import visible_metadata
from windlass.store.sql.transaction import ReadTx

PageSize = Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)]

routes = Routes("/api/v1/fleet", "fleet")
namespace_routes = Routes("/api/v1/namespaces", "fleet")

STATUSES: Final = ("idle", "busy", *(status.name.lower() for status in list(WorkerStatus)[1:]))
MAX_CLAUSES: Final = 20
MAX_REMEMBERED: Final = 20_000  # workers whose metadata need not be read again
MAX_COUNTED: Final = 10_000  # ready jobs of each shape


@routes.get("", needs=Action.READ_FLEET)
async def list_fleet(
    call: Call,
    state: list[str] | None = None,
    name: str | None = None,
    pool: str | None = None,
    kind: str | None = None,
    requires: list[str] | None = None,
    after: str | None = None,
    limit: PageSize = 200,
) -> FleetPage:
    """Returns a page of workers by name, with counts by state and kind.

    `name` is a part of the name, `requires` are clauses as jobs have them (memory>=4GiB).
    """
    for status in state or ():
        if status not in STATUSES:
            raise UnknownName("state", status, f"one of {', '.join(STATUSES)}")
    clauses = [parse_clause(text) for text in (requires or ())[:MAX_CLAUSES]]
    rows = await call.services.engine.store.read(lambda tx: tx.views.fleet())
    taken = [
        _show(row)
        for row in rows
        if (name is None or name.lower() in row[1].lower())
        and (not clauses or _meets(row, clauses, call.who))
    ]
    taken = [one for one in taken if pool in (None, one.pool)]
    of_kind = [one for one in taken if kind in (None, one.kind)]
    both = [one for one in of_kind if not state or one.status in state]
    rest = [one for one in both if after is None or one.name > after]
    page = rest[:limit]
    return FleetPage(
        workers=page,
        total=len(both),
        statuses=_counts(one.status for one in of_kind),
        kinds=_by_kind(taken),
        next=page[-1].name if len(rest) > limit else None,
    )


@routes.get("/{name:str}", needs=Action.READ_FLEET)
async def show(call: Call, name: str) -> WorkerInfo:
    """Returns one worker by its name."""
    return await show_worker(call, name)


@namespace_routes.get("/loads", needs=Action.READ_JOBS)
async def namespace_loads(call: Call) -> NamespaceLoads:
    """Returns the namespaces with how many of their jobs run and are ready."""
    manages = may(call.who, Action.MANAGE_QUEUES)

    async def read(tx: ReadTx) -> list[NamespaceLoad]:
        load = await tx.pools.load(MAX_COUNTED)
        weights = await tx.placement.namespace_weights()
        known = [row.id for row in await tx.catalog.shapes_after(0)]
        shapes = await call.services.engine.catalog.know(tx, known)
        running: Counter[str] = Counter()
        ready: Counter[str] = Counter()
        more: set[str] = set()
        for held in load.leases:
            running[shapes[held.shape].namespace] += 1
        for shape, count in load.ready:
            name = shapes[shape].namespace
            ready[name] += count
            if count >= MAX_COUNTED:
                more.add(name)
        return [
            NamespaceLoad(
                name=name,
                running=running[name],
                ready=ready[name],
                more=name in more,
                weight=weights.get(name, 1) if manages else None,
            )
            for name in sorted({shapes[shape].namespace for shape in known} | set(weights))
            if sees(call.who, name)
        ]

    return NamespaceLoads(await call.services.engine.store.read(read))


class _Place(NamedTuple):
    """What kind of worker it is, and its pool."""

    kind: str
    pool: str | None


def _show(row: FleetRow) -> FleetWorker:
    number, name, status, slots, held, reason, static, dynamic = row
    place = _place(static, dynamic)
    return FleetWorker(
        id=number,
        name=name,
        status=_status(status, held),
        kind=place.kind,
        pool=place.pool,
        slots=slots,
        held=held,
        reason=reason,
    )


def _status(status: int, held: int) -> str:
    if status == WorkerStatus.ONLINE:
        return "busy" if held else "idle"
    return WorkerStatus(status).name.lower()


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _by_kind(workers: Iterable[FleetWorker]) -> dict[str, dict[str, int]]:
    kinds: dict[str, list[str]] = {}
    for one in workers:
        kinds.setdefault(one.kind, []).append(one.status)
    return {kind: _counts(statuses) for kind, statuses in sorted(kinds.items())}


@lru_cache(MAX_REMEMBERED)
def _place(static: str, dynamic: str) -> _Place:
    metadata = metadata_of(static, dynamic)
    pool = metadata.get(POOL_KEY)
    return _Place(pool, pool) if isinstance(pool, str) else _Place(_system(metadata), None)


def _system(metadata: Mapping[str, Any]) -> str:
    """Returns the system of a worker without a pool: linux/amd64."""
    listed = metadata.get("system:architectures")
    first = listed[0] if isinstance(listed, list) and listed else listed
    parts = [one for one in (metadata.get("system:os"), first) if isinstance(one, str) and one]
    return "/".join(parts) or "unknown"


def _meets(row: FleetRow, clauses: Sequence[Clause], who: Identity) -> bool:
    """Returns whether a worker meets clauses, by what the caller may see of its metadata."""
    metadata = metadata_of(*row[6:])
    if not may(who, Action.READ_FLEET, FLEET):
        metadata = visible_metadata(metadata, who)
    for listed in (DENYLIST, ALLOWLIST):  # They are about tasks.
        metadata.pop(listed, None)
    return first_mismatch("", clauses, (), metadata) is None
