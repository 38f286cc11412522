"""Which tasks lists in workers' metadata may name: those that come with Windlass, that a worker or
an operator has named, and those of jobs."""

from collections.abc import Mapping

import msgspec

from windlass.domain.matching.matching import ALLOWLIST, DENYLIST
from windlass.domain.pools.pools import decode_pool
from windlass.domain.tasks.worker_lists import BUILT_IN, check_tasks, names_in
from windlass.engine.transaction.unit_of_work import Work


async def expect_known_tasks(work: Work, metadata: Mapping[str, object]) -> None:
    """Raises `InvalidInput` if the lists in this metadata name tasks that nobody knows."""
    if DENYLIST not in metadata and ALLOWLIST not in metadata:
        return
    await work.catalog.refresh(work.tx)
    known = {*BUILT_IN, *(shape.task for shape in work.catalog.shapes.values())}
    for worker in await work.tx.workers.all():
        known |= _named(msgspec.json.decode(worker.dynamic))
        known |= _named(msgspec.json.decode(worker.static))
    for pool in await work.tx.pools.all():
        known |= _named(decode_pool(pool.body).metadata)
    check_tasks(metadata, known, "metadata")


def _named(metadata: Mapping[str, object]) -> set[str]:
    return {*names_in(metadata, DENYLIST), *names_in(metadata, ALLOWLIST)}
