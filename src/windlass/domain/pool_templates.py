"""What workers of a pool are like, as far as is known before there are any."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from windlass.domain.pools import Pool, PoolRow
from windlass.domain.shape import Shape, can_run, shape_mismatches

decode_pool = msgspec.json.Decoder(Pool).decode


class Template(NamedTuple):
    """The metadata of a pool's workers; only once one has been seen is it all of it."""

    pool: str
    metadata: Mapping[str, Any]
    complete: bool

    def could_run(self, shape: Shape) -> bool:
        """Whether its workers can run this, or might: nothing is known that speaks against it."""
        if self.complete:
            return can_run(shape, self.metadata) is None
        return all(m.key not in self.metadata for m in shape_mismatches(shape, self.metadata))


def template_of(row: PoolRow, pool: Pool | None = None) -> Template:
    """What the workers of this pool are like."""
    described = decode_pool(row.body) if pool is None else pool
    learned = msgspec.json.decode(row.learned) if row.learned else {}
    metadata = {**learned, **described.template()}
    return Template(row.name, metadata, row.learned is not None)
