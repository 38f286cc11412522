"""What we know about the workers of a pool before any has started."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from windlass.domain.matching.room import Room
from windlass.domain.matching.shapes import Shape, can_run, shape_mismatches
from windlass.domain.pools.pools import Pool, PoolRow

decode_pool = msgspec.json.Decoder(Pool).decode


class Template(NamedTuple):
    """The metadata of a pool's workers; complete only once we have seen one."""

    pool: str
    metadata: Mapping[str, Any]
    complete: bool
    slots: int

    def could_run(self, shape: Shape) -> bool:
        """Returns True if its workers can run this shape, or if nothing known prevents it."""
        if self.complete:
            return can_run(shape, self.metadata) is None
        return all(m.key not in self.metadata for m in shape_mismatches(shape, self.metadata))

    def room(self, shape: Shape, per_worker: int) -> int:
        """Returns how many jobs of this shape one of its workers takes at once; 0 if none."""
        return room_for(shape, self.metadata, self.slots, per_worker)


def room_for(shape: Shape, metadata: Mapping[str, Any], slots: int, per_worker: int) -> int:
    """Returns how many jobs of this shape an empty worker takes at once."""
    if can_run(shape, metadata) is not None:
        return 0
    return min(slots, Room(metadata).fits(shape, per_worker))


def template_of(row: PoolRow, pool: Pool | None = None) -> Template:
    """Returns the template of this pool's workers."""
    described = decode_pool(row.body) if pool is None else pool
    learned = msgspec.json.decode(row.learned) if row.learned else {}
    metadata = {**learned, **described.template()}
    slots = described.at_once(metadata)
    return Template(row.name, metadata, row.learned is not None, slots)
