"""Ids from a sequence, drawn in blocks so that most transactions need not ask for them."""

from collections.abc import Sequence

from windlass.store.postgres.session import Session


class Numbers:
    """Rising numbers of one sequence for all transactions of one store.

    Numbers of a transaction that is rolled back are lost; none is ever given twice.
    """

    def __init__(self, query: str, block: int) -> None:
        self._query = query
        self._block = block
        self._left: Sequence[int] = ()

    async def take(self, session: Session, count: int) -> Sequence[int]:
        taken, self._left = self._left[:count], self._left[count:]
        missing = count - len(taken)
        if missing <= 0:
            return taken
        drawn: list[int] = await session.fetch_value(self._query, max(missing, self._block))
        rest = drawn[missing:]
        # Another transaction may have drawn meanwhile: rising order wants the later block.
        self._left = max(self._left, rest, key=lambda numbers: numbers[0] if numbers else 0)
        return [*taken, *drawn[:missing]]
