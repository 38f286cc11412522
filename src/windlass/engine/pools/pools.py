"""The commands about pools: apply, show, plan, delete."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from windlass.domain.pools.pools import (
    CostRow,
    Pool,
    PoolRow,
    PoolState,
    PoolWorkerRow,
    check_reach,
    decode_pool,
    parse_pool,
)
from windlass.domain.pools.sizing import Fleet, Verdict, size, what_if
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import Conflict, existing
from windlass.domain.values.quantities import month_of
from windlass.engine.engine import Engine
from windlass.engine.fleet.workers import expect_known_tasks
from windlass.engine.pools.snapshot import (
    HELD_AT_ONCE,
    MAX_COUNTED,
    MAX_SURVEYED,
    KnownPool,
    Survey,
    survey_running,
    survey_waiting,
    take_snapshot,
)
from windlass.engine.transaction.arguments import check_metadata
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.clock import Secrets
from windlass.ports.provider import Providers
from windlass.store.sql.pools import Span
from windlass.store.sql.transaction import ReadTx

INSTALLATION: Final = "installation"
LOWEST_RANK: Final = -(2**63)

_encode = msgspec.json.Encoder(order="deterministic").encode


class PoolView(NamedTuple):
    """A pool with its workers and its cost this month."""

    row: PoolRow
    pool: Pool
    workers: Sequence[PoolWorkerRow]
    costs: Sequence[CostRow]


class PlannedPools(NamedTuple):
    """What pools would do now, and the fleet it is based on."""

    fleet: Fleet
    verdicts: Sequence[Verdict]
    useless: Sequence[str]  # pools that none of the waiting jobs could use


class Pools:
    """The pools of one engine."""

    def __init__(
        self,
        engine: Engine,
        secrets: Secrets,
        providers: Providers,
        address: str = "",
    ) -> None:
        self.engine = engine
        self.secrets = secrets
        self.providers = providers
        self._installation = ""
        self.address = address  # where workers find the server, unless a pool sets its own

    async def apply(self, given: Mapping[str, object], actor: str) -> tuple[PoolRow, bool]:
        """Creates or changes a pool; returns the row, and whether anything changed."""
        pool = parse_pool(given)
        check_metadata(pool.template())
        check_reach(pool, self.address)
        self.providers(pool)  # refuses options that cannot work
        body = _encode(pool)

        async def step(work: Work) -> tuple[PoolRow, bool]:
            await expect_known_tasks(work, pool.metadata)
            return await _put(work, pool.name, body, actor)

        return await self.engine.run(step)

    async def delete(self, name: str, actor: str) -> bool:
        """Drains a pool and deletes it after its last worker; returns whether that was new."""

        async def step(work: Work) -> bool:
            row = existing("pool", name, await work.tx.pools.lock_name(name))
            if row.state == PoolState.DELETING:
                return False
            state = int(PoolState.DELETING)
            await work.tx.pools.update(row._replace(state=state, updated_at=work.now))
            _say(work, name, "is deleted when its workers are gone", actor)
            return True

        return await self.engine.run(step)

    async def all(self) -> list[PoolView]:
        """Returns every pool with its workers and costs."""

        async def read(tx: ReadTx) -> list[PoolView]:
            living = await tx.pools.living()
            costs = await tx.pools.costs(month_of(tx.now))
            return [_view(row, living, costs) for row in await tx.pools.all()]

        return await self.engine.store.read(read)

    async def one(self, name: str) -> PoolView:
        """Returns one pool with its workers and costs."""

        async def read(tx: ReadTx) -> PoolView:
            rows = {row.name: row for row in await tx.pools.all()}
            row = existing("pool", name, rows.get(name))
            living = await tx.pools.living(row.id)
            return _view(row, living, await tx.pools.costs(month_of(tx.now), name))

        return await self.engine.store.read(read)

    async def costs(self, month: int) -> list[CostRow]:
        """Returns the costs of a month, including those of deleted pools."""
        return await self.engine.store.read(lambda tx: tx.pools.costs(month))

    async def plan(self, workers: int | None = None, target_ms: int | None = None) -> PlannedPools:
        """Returns what the pools would do now, or under other conditions."""
        survey = await self.survey()
        seen = await self.engine.run(lambda work: take_snapshot(work, survey))
        fleet = what_if(seen.fleet, workers, target_ms)
        waits = any(target.queued for target in fleet.targets)
        wanted = [known for known in seen.pools if known.wanted and waits]
        useless = [known.pool.name for known in wanted if _is_useless(known, fleet)]
        return PlannedPools(fleet, size(fleet), useless)

    async def survey(self) -> Survey:
        """Returns the expected run times of waiting and running jobs, and counts of long queues."""
        load = await self.engine.run(lambda work: work.tx.pools.load(MAX_COUNTED))
        read, catalog = self.engine.store.read, self.engine.catalog
        waiting = {
            shape: await read(partial(survey_waiting, catalog=catalog, shape=shape))
            for shape, _ in load.ready
        }
        running: dict[int, int] = {}
        for start in range(0, len(load.leases), HELD_AT_ONCE):
            part = load.leases[start : start + HELD_AT_ONCE]
            running |= await read(partial(survey_running, catalog=catalog, held=part))
        many = [shape for shape, count in load.ready if count == MAX_COUNTED]
        return Survey(waiting, running, {shape: await self._depth(shape) for shape in many})

    async def _depth(self, shape: int) -> int:
        """Counts ready jobs of a shape in chunks, so that other transactions run in between."""
        counted, last = 0, Span(0, LOWEST_RANK, 0)
        while counted < MAX_SURVEYED:
            step = partial(_next_span, shape=shape, after=last)
            last = await self.engine.run(step)
            counted += last.jobs
            if last.jobs < MAX_COUNTED:
                break
        return counted

    async def installation(self) -> str:
        """Returns the name of this installation, with which its machines are tagged; makes it
        once.
        """

        async def step(work: Work) -> int:
            known = (await work.tx.catalog.meta()).get(INSTALLATION)
            if known is None:
                known = int(self.fresh_name(12), 16)
                await work.tx.catalog.set_meta(INSTALLATION, known)
            return known

        if not self._installation:
            self._installation = f"{await self.engine.run(step):012x}"
        return self._installation

    def fresh_name(self, length: int = 10) -> str:
        """Returns unique hexadecimal digits."""
        return hashlib.sha256(self.secrets.secret().encode()).hexdigest()[:length]


def _view(row: PoolRow, living: Sequence[PoolWorkerRow], costs: Sequence[CostRow]) -> PoolView:
    members = [member for member in living if member.pool == row.id]
    return PoolView(
        row, decode_pool(row.body), members, [cost for cost in costs if cost.pool == row.name]
    )


async def _next_span(work: Work, shape: int, after: Span) -> Span:
    return await work.tx.pools.span(shape, after.rank, after.job, MAX_COUNTED)


def _is_useless(known: KnownPool, fleet: Fleet) -> bool:
    name = known.pool.name
    return not any(name in t.pools or name in t.guesses for t in fleet.targets if t.queued)


async def _put(work: Work, name: str, body: bytes, actor: str) -> tuple[PoolRow, bool]:
    known = await work.tx.pools.lock_name(name)
    if known is None:
        row = PoolRow(
            0, name, int(PoolState.ACTIVE), 0, 0, 0, None, None, body, work.now, actor, work.now
        )
        number = await work.tx.pools.insert(row)
        if not number:
            raise Conflict("busy", f"pool {name} is being changed by another request", 1_000)
        _say(work, name, "was created", actor)
        return row._replace(id=number), True
    if known.body == body and known.state == PoolState.ACTIVE:
        return known, False
    # The change may have fixed an earlier failure, so we may try again at once. New workers may
    # also have other metadata, so we learn it again.
    before, after = decode_pool(known.body), decode_pool(body)
    alike = (before.provider, before.options) == (after.provider, after.options)
    row = known._replace(
        state=int(PoolState.ACTIVE), body=body, failures=0, next_at=0, message=None,
        learned=known.learned if alike else None, updated_at=work.now,
    )  # fmt: skip
    await work.tx.pools.update(row)
    _say(work, name, "was changed", actor)
    return row, True


def _say(work: Work, name: str, what: str, actor: str) -> None:
    work.say(EventKind.POOL, f"Pool {name} {what}", actor=actor, data={"pool": name})
