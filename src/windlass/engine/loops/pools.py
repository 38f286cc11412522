"""The pools loop: lists machines, starts missing ones, and ends those not needed.

One server at a time does this: it takes a turn in the store. Should two overlap, they decide under
the pools' locks, and providers accept each token once.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec
import structlog

from windlass.domain.access.tokens import Code
from windlass.domain.pools.pools import Pool, PoolRow, PoolWorkerRow, decode_pool
from windlass.domain.pools.sizing import Verdict
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.engine.access import CODE_PREFIX, digest_of
from windlass.engine.pools.pools import Pools
from windlass.engine.pools.reconcile import ProviderListing, ProviderRequests, reconcile
from windlass.engine.pools.steps import (
    decide,
    note_ended,
    note_fault,
    note_launch,
    note_refusal,
)
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.loop_time import all_of
from windlass.ports.provider import (
    KnowsLastWords,
    Machine,
    Order,
    Owner,
    Provider,
    ProviderFault,
)

TURN_UNTIL: Final = "pools_turn_until"
TURN_OWNER: Final = "pools_turn_owner"
TURN_MS: Final = 15_000
CALL_MS: Final = 60_000  # a provider that takes longer counts as unresponsive
AT_ONCE: Final = 10  # concurrent launches
MAX_STARTED: Final = 100  # in one round

T = TypeVar("T")

log = structlog.get_logger("windlass.pools")


class PoolsReport(msgspec.Struct, frozen=True):
    """What one round did; it is idle if another server has the turn."""

    pools: int = 0
    wanted: int = 0
    launched: int = 0
    refused: int = 0
    terminated: int = 0
    leaks: int = 0


class PoolsLoop:
    """Runs pools. Safe on every server at once; only one does the work."""

    name = "pools"

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._engine = pools.engine
        self._me = int(pools.fresh_name(12), 16)
        self._made: dict[int, tuple[bytes, Provider]] = {}
        self.interval_ms = self._engine.config.pools_interval_ms

    async def run_once(self, now: int) -> PoolsReport:
        """Runs one round: list, reconcile, decide, act."""
        self._engine.counters.wanted = {}
        if not await self._engine.store.read(lambda tx: tx.pools.all()):
            self._engine.counters.ran(self.name, now)
            return PoolsReport()
        installation = await self._pools.installation()
        if not await self._engine.run(self._take_turn):
            return await self.tend(installation, turn=False)
        before = await self.tend(installation)
        verdicts = await self.decide()
        after = await self.tend(installation) if any(v.start for v in verdicts) else PoolsReport()
        self._engine.counters.wanted = {verdict.pool: verdict.size for verdict in verdicts}
        self._engine.counters.ran(self.name, now)
        wanted = sum(verdict.wanted for verdict in verdicts)
        return _added([before, after], pools=len(verdicts), wanted=wanted)

    async def _take_turn(self, work: Work) -> bool:
        if work.inline:
            return True  # nobody else runs loops on this store
        meta = await work.tx.catalog.meta()
        taken = work.now < meta.get(TURN_UNTIL, 0) <= work.now + TURN_MS
        if taken and meta.get(TURN_OWNER) != self._me:
            return False
        await work.tx.catalog.set_meta(TURN_UNTIL, work.now + TURN_MS)
        await work.tx.catalog.set_meta(TURN_OWNER, self._me)
        return True

    async def decide(self) -> Sequence[Verdict]:
        """Decides what each pool starts and ends, without calling providers."""
        survey = await self._pools.survey()
        tokens = [self._pools.fresh_name() for _ in range(MAX_STARTED)]
        return await self._engine.run(partial(decide, survey=survey, tokens=tokens))

    async def tend(self, installation: str, turn: bool = True) -> PoolsReport:
        """Compares all pools with their providers, and carries out launches and terminations.

        Without the turn it covers only machines that no other server can see.
        """
        rows = await self._engine.store.read(lambda tx: tx.pools.all())
        reports = await all_of(self._tend_pool(row, installation, turn) for row in rows)
        return _added(reports, pools=len(rows) if turn else 0)

    async def _tend_pool(self, row: PoolRow, installation: str, turn: bool) -> PoolsReport:
        """Compares one pool with its provider's list, and requests the difference."""
        pool, owner = decode_pool(row.body), Owner(installation, row.name)
        try:
            provider = self._provider(row, pool)
            if not turn and not provider.host:
                return PoolsReport()
            machines = await _in_time(provider.find(owner))
        except (ProviderFault, InvalidInput) as fault:
            await self._complain(row, str(fault))
            return PoolsReport()
        retry = 0 if self._engine.store.inline else CALL_MS
        listed = None if machines is None else {m.token: m for m in machines}
        found = ProviderListing(listed, provider.settle_ms, retry, provider.host, turn)
        if isinstance(provider, KnowsLastWords):
            found = found._replace(last_words=partial(provider.last_words, owner))
        requests: ProviderRequests = await self._engine.run(
            partial(reconcile, pool_id=row.id, found=found)
        )
        launched = await self._launch_all(provider, pool, owner, requests.launch)
        if requests.terminate:
            await self._terminate(row, provider, requests.terminate, machines is None)
        return PoolsReport(
            launched=launched,
            refused=len(requests.launch) - launched,
            terminated=len(requests.terminate),
            leaks=requests.leaks,
        )

    async def _launch_all(
        self, provider: Provider, pool: Pool, owner: Owner, members: Sequence[PoolWorkerRow]
    ) -> int:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(member: PoolWorkerRow) -> bool:
            async with gate:
                return await self._launch(provider, pool, owner, member)

        return sum(await all_of(map(one, members)))

    async def _launch(
        self, provider: Provider, pool: Pool, owner: Owner, member: PoolWorkerRow
    ) -> bool:
        code = CODE_PREFIX + self._pools.secrets.secret()
        await self._engine.run(
            partial(_add_code, code=code, member=member, ttl_ms=pool.start_timeout_ms)
        )
        server = pool.server or self._pools.address
        order = Order(
            owner, member.token, server, code, pool.slots, pool.resources, bool(member.spot)
        )
        try:
            machine = await _in_time(provider.launch(order))
        except ProviderFault as fault:
            log.warning("launch_failed", pool=pool.name, token=member.token, error=str(fault))
            await self._engine.run(partial(note_refusal, member=member, why=str(fault)))
            return False
        await self._engine.run(partial(note_launch, member=member, machine=machine))
        return True

    async def _terminate(
        self, row: PoolRow, provider: Provider, machines: Sequence[Machine], unlisted: bool
    ) -> None:
        try:
            await _in_time(provider.terminate(machines))
            if unlisted:
                tokens = [machine.token for machine in machines]
                await self._engine.run(partial(note_ended, pool_id=row.id, tokens=tokens))
        except ProviderFault as fault:
            await self._complain(row, str(fault))

    async def _complain(self, row: PoolRow, why: str) -> None:
        log.warning("provider_fault", pool=row.name, error=why)
        await self._engine.run(partial(note_fault, pool_id=row.id, why=why))

    def _provider(self, row: PoolRow, pool: Pool) -> Provider:
        """Returns the provider of a pool; makes a new one after the pool was changed."""
        made = self._made.get(row.id)
        if made is None or made[0] != row.body:
            made = self._made[row.id] = row.body, self._pools.providers(pool)
        return made[1]


def _added(reports: Sequence[PoolsReport], pools: int, wanted: int = 0) -> PoolsReport:
    """Returns what several parts of a round did together."""
    return PoolsReport(
        pools=pools,
        wanted=wanted,
        launched=sum(report.launched for report in reports),
        refused=sum(report.refused for report in reports),
        terminated=sum(report.terminated for report in reports),
        leaks=sum(report.leaks for report in reports),
    )


async def _add_code(work: Work, code: str, member: PoolWorkerRow, ttl_ms: int) -> None:
    """Adds a code for this worker only, valid for as long as its machine may take to start."""
    row = Code(digest_of(code), work.now, work.now + ttl_ms, 0, worker=member.token)
    await work.tx.access.add_code(row)


async def _in_time(asking: Awaitable[T]) -> T:
    """Returns a provider's answer, or raises if it takes too long."""
    try:
        async with asyncio.timeout(CALL_MS / 1000):
            return await asking
    except WindlassError:
        raise
    except TimeoutError:
        raise ProviderFault(f"the provider did not answer within {CALL_MS // 1000} s") from None
    except Exception as error:
        # Whatever a provider's library raises must not end the loop.
        raise ProviderFault(f"{type(error).__name__}: {error}") from error
