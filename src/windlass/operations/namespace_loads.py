"""The namespaces with what runs and waits in each, counted by shape."""

from collections import Counter
from typing import Final

from windlass.domain.access.rights import Action, Identity, may, sees
from windlass.engine.engine import Engine
from windlass.messages.fleet.namespaces import NamespaceLoad, NamespaceLoads
from windlass.operations.queries import Shapes
from windlass.store.sql.transaction import ReadTx

MAX_COUNTED: Final = 10_000  # ready jobs of each shape


class Namespaces:
    """Counts jobs by namespace: those that run exactly, those that wait up to a bound."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._shapes = Shapes()

    async def loads(self, who: Identity) -> NamespaceLoads:
        """Returns the namespaces that the caller may see; weights only to those who set them."""

        async def read(tx: ReadTx) -> list[NamespaceLoad]:
            load = await tx.pools.load(MAX_COUNTED)
            weights = await tx.placement.namespace_weights()
            known = [row.id for row in await tx.catalog.shapes_after(0)]
            await self._shapes.know(tx, known)
            names = {self._shapes[shape].namespace for shape in known} | set(weights)
            running: Counter[str] = Counter()
            ready: Counter[str] = Counter()
            more: set[str] = set()
            for held in load.leases:
                running[self._shapes[held.shape].namespace] += 1
            for shape, count in load.ready:
                name = self._shapes[shape].namespace
                ready[name] += count
                if count >= MAX_COUNTED:
                    more.add(name)
            manages = may(who, Action.MANAGE_QUEUES)
            return [
                NamespaceLoad(
                    name=name,
                    running=running[name],
                    ready=ready[name],
                    more=name in more,
                    weight=weights.get(name, 1) if manages else None,
                )
                for name in sorted(names)
                if sees(who, name)
            ]

        return NamespaceLoads(await self._engine.store.read(read))
