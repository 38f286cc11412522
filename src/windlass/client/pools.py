"""Pools, as clients handle them."""

from collections.abc import Mapping

from windlass.client.transport import Transport
from windlass.wire.pools import CostList, Plan, PoolApplied, PoolInfo, PoolList
from windlass.wire.workers import Changed

PATH = "/api/v1/pools"


class HttpPools:
    """Applies, shows, plans and deletes pools over HTTP."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    async def all(self) -> list[PoolInfo]:
        """Every pool with its workers."""
        return (await self._call("GET", PATH, PoolList)).pools

    async def show(self, name: str) -> PoolInfo:
        """One pool."""
        return await self._call("GET", f"{PATH}/{name}", PoolInfo)

    async def apply(self, name: str, description: Mapping[str, object]) -> PoolApplied:
        """Make or change a pool."""
        return await self._call("PUT", f"{PATH}/{name}", PoolApplied, dict(description))

    async def delete(self, name: str) -> bool:
        """Let a pool drain and go; whether that was new."""
        return (await self._call("DELETE", f"{PATH}/{name}", Changed)).applied

    async def plan(self, workers: int | None = None, target: str | None = None) -> Plan:
        """What the pools would do now, or with so many workers, or another target latency."""
        query = {"workers": workers, "target": target}
        return await self._call("GET", f"{PATH}/plan", Plan, query=query)

    async def costs(self, month: str | None = None) -> CostList:
        """What a month such as 2026-11 has cost; without one, the present month."""
        return await self._call("GET", f"{PATH}/costs", CostList, query={"month": month})
