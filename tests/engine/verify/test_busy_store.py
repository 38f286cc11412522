"""`verify` while others write: log and state come from one moment."""

from typing import Any

from tests.engine.support.rig import Rig
from windlass.engine.verify import verify


class BusyStore:
    """Passes everything on; a job is submitted before and after each reading."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rig.store, name)

    async def _busy(self, name: str, *args: Any) -> Any:
        await self._rig.submit()
        found = await getattr(self._rig.store, name)(*args)
        await self._rig.submit()
        return found

    async def read(self, *args: Any) -> Any:
        return await self._busy("read", *args)

    async def snapshot(self) -> Any:
        return await self._busy("snapshot")

    async def read_beside(self, *args: Any) -> Any:
        return await self._busy("read_beside", *args)


async def test_a_store_to_which_others_write_is_verified(rig: Rig) -> None:
    await rig.submit()
    store: Any = BusyStore(rig)
    assert await verify(store, rig.engine.config) == []


async def test_a_snapshot_does_not_show_what_is_committed_beside_it(rig: Rig) -> None:
    if rig.store.inline:
        return  # nothing can be committed meanwhile

    async def look(tx: Any, snapshot: Any) -> tuple[int, int, int]:
        before = len(await tx.log.read(0, 10))
        await rig.submit()
        return before, len(await tx.log.read(0, 10)), len(snapshot.jobs)

    assert await rig.store.read_beside(look) == (0, 0, 0)
