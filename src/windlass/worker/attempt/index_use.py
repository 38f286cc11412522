"""Which attempt uses which index on this worker.

The server gives out indices with leases. But a lease may end before the processes of its attempt
have: then the next attempt with the same index waits here until they are gone.
"""

import asyncio
from collections.abc import Mapping

from windlass.domain.matching.indices import variables
from windlass.domain.matching.resources import CPUS
from windlass.ports.executor import Granted
from windlass.worker.core.ports import Key

Names = Mapping[str, tuple[str, ...]]


class IndexUse:
    """The indices in use on one machine, whatever the incarnation; `pins` as in the options."""

    def __init__(self, pins: bool = False) -> None:
        self._pins = pins
        self._users: dict[tuple[str, str], Key] = {}
        self._freed = asyncio.Event()
        self.vendor: object = None  # of the GPUs

    def grant(self, indices: Names) -> Granted:
        """Returns what these indices mean to a job."""
        cpus = indices.get(CPUS, ()) if self._pins else ()
        return Granted(variables(indices, self.vendor), tuple(map(int, cpus)))

    async def take(self, key: Key, indices: Names) -> None:
        """Waits until no other attempt uses any of these, and marks them as used."""
        wanted = [(resource, name) for resource, names in indices.items() for name in names]
        while any(self._users.get(one, key) != key for one in wanted):
            self._freed.clear()
            await self._freed.wait()
        self._users.update(dict.fromkeys(wanted, key))

    def free(self, key: Key) -> None:
        """Frees what this attempt used: its processes have ended."""
        self._users = {one: user for one, user in self._users.items() if user != key}
        self._freed.set()
