"""Pools, as clients handle them."""

from collections.abc import Mapping

from windlass.client.calls import Calls
from windlass.messages.pools import CostList, Plan, PoolApplied, PoolInfo, PoolList
from windlass.messages.workers import Changed

PATH = "/api/v1/pools"


class AsyncPools:
    """Applies, shows, plans and deletes pools."""

    def __init__(self, transport: Calls) -> None:
        self._call = transport.call

    async def list(self) -> list[PoolInfo]:
        """Returns every pool with its workers."""
        return (await self._call("GET", PATH, PoolList)).pools

    async def show(self, name: str) -> PoolInfo:
        """Returns one pool."""
        return await self._call("GET", f"{PATH}/{name}", PoolInfo)

    async def apply(self, name: str, description: Mapping[str, object]) -> PoolApplied:
        """Creates or changes a pool."""
        return await self._call("PUT", f"{PATH}/{name}", PoolApplied, dict(description))

    async def delete(self, name: str) -> bool:
        """Deletes a pool once its workers have drained; returns whether that was new."""
        return (await self._call("DELETE", f"{PATH}/{name}", Changed)).applied

    async def plan(self, workers: int | None = None, target: str | None = None) -> Plan:
        """Returns what the pools would do now, or with other worker counts or target latencies."""
        query = {"workers": workers, "target": target}
        return await self._call("GET", f"{PATH}/plan", Plan, query=query)

    async def costs(self, month: str | None = None) -> CostList:
        """Returns what a month such as 2026-11 has cost; by default the current one."""
        return await self._call("GET", f"{PATH}/costs", CostList, query={"month": month})
