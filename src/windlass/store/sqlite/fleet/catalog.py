"""What engines cache: shapes, queues, settings."""

from collections.abc import Mapping

import apsw

from windlass.domain.rows.gaps import Gap
from windlass.domain.rows.records import QueueRow, ShapeRow
from windlass.store.sqlite.rows import Row, as_queue, as_shape
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES


class SqliteCatalog:
    """`CatalogWrite` over one connection."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._execute = connection.execute
        self._sequences = sequences

    async def intern_shapes(self, shapes: Mapping[str, bytes]) -> dict[str, int]:
        """Numbers new shapes in the order of the mapping."""
        return {digest: self._intern(digest, body) for digest, body in shapes.items()}

    async def shapes_after(self, shape: int) -> list[ShapeRow]:
        """Returns them ascending by id."""
        return list(map(as_shape, self._execute(QUERIES["shapes_after"], (shape,))))

    async def queues(self) -> list[QueueRow]:
        """Returns them ascending by name."""
        return list(map(as_queue, self._execute(QUERIES["queues"])))

    async def put_queue(self, row: QueueRow) -> None:
        self._execute(QUERIES["put_queue"], row)

    async def meta(self) -> dict[str, int]:
        rows: list[Row] = self._execute(QUERIES["meta"]).fetchall()
        return dict(rows)

    async def set_meta(self, name: str, value: int) -> None:
        self._execute(QUERIES["set_meta"], (name, value))

    async def advance_meta(self, name: str, source: int, to: int) -> bool:
        return bool(self._execute(QUERIES["advance_meta"], (name, source, to)).fetchall())

    async def gaps(self) -> list[Gap]:
        return list(map(Gap._make, self._execute(QUERIES["gaps"])))

    async def follow_timeline(self) -> None:
        """Knows of no timelines."""

    async def jump_ids(self, now: int) -> Gap:
        newest: list[Row] = self._execute(QUERIES["newest_ids"]).fetchall()
        return Gap(self._sequences.jump(max(newest[0]), now), now, *newest[0])

    async def put_gap(self, gap: Gap) -> None:
        self._execute(QUERIES["put_gap"], gap)

    def _intern(self, digest: str, body: bytes) -> int:
        found: list[Row] = self._execute(QUERIES["shape_id"], (digest,)).fetchall()
        if found:
            shape: int = found[0][0]
        else:
            (shape,) = self._sequences.take("shape")
            self._execute(QUERIES["insert_shape"], (shape, digest, body))
        return shape
