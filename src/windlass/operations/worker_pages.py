"""Pages of very many workers, and the load of namespaces."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from windlass.domain.access.rights import FLEET, Action, Identity, may
from windlass.domain.matching.clauses import Clause, parse_clause
from windlass.domain.matching.matching import ALLOWLIST, DENYLIST, first_mismatch, merge_metadata
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.pools.pools import POOL_KEY
from windlass.domain.rows.views import FleetRow
from windlass.domain.values.errors import UnknownName
from windlass.engine.engine import Engine
from windlass.messages.fleet.namespaces import NamespaceLoads
from windlass.messages.fleet.workers import FleetPage, FleetWorker
from windlass.messages.workers import WorkerInfo
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.queries import PAGE_LIMIT, visible_metadata

PageSize = Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)]

routes = Routes("/api/v1/fleet", "fleet")
namespace_routes = Routes("/api/v1/namespaces", "fleet")


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
    wanted = FleetFilter(state or (), name, pool, kind, requires or ())
    return await call.services.pages.page(wanted, after, limit, call.who)


@routes.get("/{name:str}", needs=Action.READ_FLEET)
async def show(call: Call, name: str) -> WorkerInfo:
    """Returns one worker by its name."""
    return await call.services.queries.worker(name, call.who)


@namespace_routes.get("/loads", needs=Action.READ_JOBS)
async def namespace_loads(call: Call) -> NamespaceLoads:
    """Returns the namespaces with how many of their jobs run and are ready."""
    return await call.services.loads.loads(call.who)


STATUSES: Final = ("idle", "busy", *(status.name.lower() for status in list(WorkerStatus)[1:]))
MAX_CLAUSES: Final = 20
MAX_REMEMBERED: Final = 20_000  # workers whose metadata need not be read again

_decode = msgspec.json.decode


class FleetFilter(NamedTuple):
    """Which workers to show; empty fields do not filter."""

    statuses: Sequence[str] = ()
    name: str | None = None
    pool: str | None = None
    kind: str | None = None
    requires: Sequence[str] = ()


class _Place(NamedTuple):
    """Where a worker belongs, and the metadata that says so."""

    static: str
    dynamic: str
    kind: str
    pool: str | None


class FleetPages:
    """Reads pages of workers. Kinds are remembered while metadata stays the same."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._places: dict[int, _Place] = {}

    async def page(
        self, wanted: FleetFilter, after: str | None, limit: int, who: Identity
    ) -> FleetPage:
        """Returns the next workers by name, with counts of all that the filters take."""
        for status in wanted.statuses:
            if status not in STATUSES:
                raise UnknownName("state", status, f"one of {', '.join(STATUSES)}")
        clauses = [parse_clause(text) for text in wanted.requires[:MAX_CLAUSES]]
        rows = await self._engine.store.read(lambda tx: tx.views.fleet())
        if len(self._places) > MAX_REMEMBERED:
            self._places.clear()
        taken = [
            self._show(row)
            for row in rows
            if (wanted.name is None or wanted.name.lower() in row[1].lower())
            and (not clauses or _meets(row, clauses, who))
        ]
        taken = [one for one in taken if wanted.pool in (None, one.pool)]
        of_kind = [one for one in taken if wanted.kind in (None, one.kind)]
        both = [one for one in of_kind if _has_status(one, wanted)]
        rest = [one for one in both if after is None or one.name > after]
        page = rest[:limit]
        return FleetPage(
            workers=page,
            total=len(both),
            statuses=_counts(one.status for one in of_kind),
            kinds=_by_kind(taken),
            next=page[-1].name if len(rest) > limit else None,
        )

    def _show(self, row: FleetRow) -> FleetWorker:
        number, name, status, slots, held, reason, static, dynamic = row
        place = self._places.get(number)
        if place is None or place.static != static or place.dynamic != dynamic:
            place = self._places[number] = _place(static, dynamic)
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


def _has_status(worker: FleetWorker, wanted: FleetFilter) -> bool:
    return not wanted.statuses or worker.status in wanted.statuses


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _by_kind(workers: Iterable[FleetWorker]) -> dict[str, dict[str, int]]:
    kinds: dict[str, list[str]] = {}
    for one in workers:
        kinds.setdefault(one.kind, []).append(one.status)
    return {kind: _counts(statuses) for kind, statuses in sorted(kinds.items())}


def _place(static: str, dynamic: str) -> _Place:
    metadata = merge_metadata(_decode(dynamic), _decode(static))
    pool = metadata.get(POOL_KEY)
    if isinstance(pool, str):
        return _Place(static, dynamic, pool, pool)
    return _Place(static, dynamic, _system(metadata), None)


def _system(metadata: Mapping[str, Any]) -> str:
    """Returns the system of a worker without a pool: linux/amd64."""
    listed = metadata.get("system:architectures")
    first = listed[0] if isinstance(listed, list) and listed else listed
    parts = [one for one in (metadata.get("system:os"), first) if isinstance(one, str) and one]
    return "/".join(parts) or "unknown"


def _meets(row: FleetRow, clauses: Sequence[Clause], who: Identity) -> bool:
    """Returns whether a worker meets clauses, by what the caller may see of its metadata."""
    metadata = merge_metadata(_decode(row[7]), _decode(row[6]))
    if not may(who, Action.READ_FLEET, FLEET):
        metadata = visible_metadata(metadata, who)
    for listed in (DENYLIST, ALLOWLIST):  # They are about tasks.
        metadata.pop(listed, None)
    return first_mismatch("", clauses, (), metadata) is None
