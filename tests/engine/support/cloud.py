"""A cloud for tests: it keeps machines, and fails in the ways that clouds do."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.engine.support.agent import Agent
from tests.engine.support.rig import Rig
from windlass.domain.pools.pools import Lifecycle, Pool, PoolWorkerRow
from windlass.engine.engine import Engine
from windlass.engine.loops.pools import PoolsLoop, PoolsReport
from windlass.engine.pools.pools import Pools
from windlass.ports.provider import Machine, Order, Owner, ProviderFault


class ServerKilledError(BaseException):
    """The server ends here, as by kill −9: nothing of it handles this."""


class Cloud:
    """Machines by token. `refuses` launches fail; `kills` says where the server dies."""

    def __init__(self, settle_ms: int = 0, lists: bool = True, host: str = "") -> None:
        self.settle_ms = settle_ms
        self.host = host
        self.orders: dict[str, Order] = {}
        self.machines: dict[str, Machine] = {}
        self.launches: list[str] = []
        self.ended: list[str] = []
        self.refuses = 0
        self.kills = ""  # "before", "after" a launch
        self.out_of_reach = False
        self.stubborn = False  # machines do not end when told
        self._lists = lists

    async def launch(self, order: Order) -> Machine:
        if self.kills == "before":
            self.kills = ""
            raise ServerKilledError
        self.launches.append(order.token)
        if self.refuses:
            self.refuses -= 1
            raise ProviderFault("no capacity in this zone")
        self.orders[order.token] = order
        name = f"i-{len(self.orders)}"
        machine = Machine(order.token, f"{self.host}:{name}" if self.host else name)
        self.machines.setdefault(order.token, machine)
        if self.kills == "after":
            self.kills = ""
            raise ServerKilledError
        return self.machines[order.token]

    async def find(self, owner: Owner) -> Sequence[Machine] | None:
        if self.out_of_reach:
            raise ProviderFault("the cloud cannot be reached")
        return list(self.machines.values()) if self._lists else None

    async def terminate(self, machines: Sequence[Machine]) -> None:
        for machine in machines:
            self.ended.append(machine.token)
            if not self.stubborn:
                self.machines.pop(machine.token, None)


class Names:
    """Secrets that are numbered, so that a test can be repeated."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._count = 0

    def secret(self) -> str:
        self._count += 1
        return f"{self._word}-{self._count}"


class Sky:
    """A pool on a cloud, over the engine of a rig."""

    def __init__(self, rig: Rig, cloud: Cloud | None = None, engine: Engine | None = None) -> None:
        self.rig = rig
        self.cloud = cloud or Cloud()
        self._names = Names("other" if engine else "secret")
        self._start(engine or rig.engine)

    async def restart(self) -> None:
        """The server is killed, and another started."""
        await self.rig.restart()
        self._start(self.rig.engine)

    def _start(self, engine: Engine) -> None:
        self.pools = Pools(engine, self._names, self._provide, address="http://127.0.0.1:1")
        self.loop = PoolsLoop(self.pools)

    def _provide(self, pool: Pool) -> Cloud:
        return self.cloud

    async def apply(self, **given: Any) -> None:
        """A pool with short times, changed by what is given."""
        least = {
            "name": "p", "target_latency_seconds": 5, "max_idle_seconds": 60, "max_workers": 100,
            "expected_seconds": 1,
        }  # fmt: skip
        await self.pools.apply({**least, **given}, "tests")

    async def round(self) -> PoolsReport:
        """One round of the loop."""
        return await self.loop.run_once(self.rig.now)

    async def rows(self) -> tuple[PoolWorkerRow, ...]:
        """All rows, of those that are gone as well."""
        return (await self.rig.snapshot()).pool_workers

    async def states(self) -> list[str]:
        """The states of those that are not gone."""
        rows = await self.rig.store.read(lambda tx: tx.pools.living())
        return [Lifecycle(row.state).name.lower() for row in rows]

    async def boot(
        self, *tokens: str, slots: int = 1, metadata: Mapping[str, object] | None = None
    ) -> list[Agent]:
        """Let machines come online: all that were launched, or those named."""
        agents = []
        for token in tokens or tuple(self.cloud.machines):
            agent = Agent(self.rig.engine, token)
            await agent.enrol(slots=slots, metadata=metadata or {})
            agents.append(agent)
        return agents

    async def online(self, count: int, **fields: Any) -> list[Agent]:
        """A pool with so many workers, all of them online and idle."""
        await self.apply(min_workers=count, **fields)
        await self.round()
        agents = await self.boot()
        await self.round()
        assert await self.states() == ["online"] * count
        return agents
