"""What pools ask of runtime statistics."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Runtimes(Protocol):
    """How long jobs of a shape take, as far as history tells."""

    async def expected_ms(self, shapes: Sequence[int]) -> Mapping[int, int]:
        """Milliseconds by shape; those without history are absent."""
        ...


class NoHistory:
    """Every shape is new: pools go by the runtime that they expect."""

    async def expected_ms(self, shapes: Sequence[int]) -> Mapping[int, int]:
        del shapes
        return {}
