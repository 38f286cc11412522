"""The capability loop: rejects jobs that no worker could ever run, after a grace period."""

from functools import partial

import msgspec

from windlass.domain.rows.records import Ticket
from windlass.engine.engine import Engine
from windlass.engine.fleet.capability import (
    Fleet,
    Impossible,
    Verdicts,
    impossible,
    read_fleet,
    reject_late,
)
from windlass.store.sql.places import Probe
from windlass.store.sql.transaction import ReadTx

FIRST = -(2**62)  # below every rank


class CapabilityReport(msgspec.Struct, frozen=True):
    """How many shapes no worker can run, and how many jobs one round rejected."""

    shapes: int
    rejected: int


class CapabilityLoop:
    """Rejects hopeless jobs. Safe to run on every server at once.

    Each server tracks by itself since when a shape is hopeless, so a restart begins the grace
    period again.
    """

    name = "capability"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._verdicts = Verdicts(Fleet((), 0))
        self._since: dict[int, int] = {}
        self.interval_ms = engine.config.cleanup_interval_ms

    async def run_once(self, now: int) -> CapabilityReport:
        """Checks the fleet, then each shape that no worker can run."""
        engine = self._engine
        fleet = await engine.store.read(read_fleet)
        if fleet != self._verdicts.fleet:
            self._verdicts = Verdicts(fleet)
        heads = await engine.store.read(lambda tx: tx.places.heads())
        known = ((head.shape, engine.catalog.shapes.get(head.shape)) for head in heads)
        shapes = [(number, shape) for number, shape in known if shape is not None]
        found = impossible(shapes, self._verdicts, self._since, await engine.now())
        # A new shape may become possible with the next worker that enrols, as after every start of
        # a server. It may have very many jobs, so they wait for the next round.
        known_before = found.keys() & self._since.keys()
        self._since = {number: why.since for number, why in found.items()}
        rejected = 0
        for number in sorted(known_before):
            rejected += await self._walk(number, found)
        engine.counters.ran(self.name, now)
        return CapabilityReport(len(found), rejected)

    async def _walk(self, shape: int, found: dict[int, Impossible]) -> int:
        """Checks all ready jobs of a shape, a chunk at a time."""
        rejected, rank, job = 0, FIRST, 0
        chunk = self._engine.config.chunk_rows
        while True:
            probe = Probe(shape, rank, job, chunk)
            tickets = await self._engine.store.read(partial(_peek, probe=probe))
            jobs = [ticket.job for ticket in tickets]
            if jobs:
                rejected += await self._engine.run(partial(reject_late, jobs=jobs, why=found))
            if len(jobs) < chunk:
                return rejected
            rank, job = tickets[-1].rank, tickets[-1].job + 1


async def _peek(tx: ReadTx, probe: Probe) -> list[Ticket]:
    return await tx.places.ready([probe])
