"""Random row operations through SQLite in memory and PostgreSQL: no difference is seen.

Every answer and, after some of the transactions, everything that both hold is compared.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import apsw
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.store.conformance import (
    moves_of_files,
    moves_of_fleets,
    moves_of_jobs,
    moves_of_pools,
    moves_of_schedules,
)
from tests.store.conformance.conftest import Stores
from tests.store.conformance.driver import Driver
from tests.store.conformance.moves import Dice, Maker, Move
from tests.support.forms import by_form
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import WriteTx

PARTS = (moves_of_jobs, moves_of_fleets, moves_of_files, moves_of_schedules, moves_of_pools)
TOGETHER = [maker for part in PARTS for maker in part.MOVES]
ALONE = [maker for part in PARTS for maker in part.LONE_MOVES]
OPENING = [maker for part in PARTS for maker in part.OPENING]

# The port leaves the order of these open, or is read once by the engine as a set.
UNORDERED = {"heads", "peek", "marked", "parked"}

TRANSACTIONS = 100

# Rows are compared after so many transactions; answers after each. On PostgreSQL comparing takes
# longer than all the rest. A row that differs is still there a few transactions later.
COMPARED_EVERY = 4

REFUSED = "the transaction was refused"

Draw = Callable[[Dice, Snapshot], list[Move]]


@settings(max_examples=by_form(12, 60), phases=set(Phase) - {Phase.shrink})
@given(seed=st.integers(0, 2**32))
@pytest.mark.slow
def test_both_databases_do_the_same(stores: Stores, seed: int) -> None:
    with stores.open("memory") as reference, stores.open("postgres") as other:
        dice = Dice(seed)
        held = reference.snapshot()
        for number, draw in enumerate(draws(dice)):
            moves = draw(dice, held)
            at = f"transaction {number}: {moves}"
            expected = perform(reference, moves, apsw.ConstraintError)
            assert perform(other, moves, Exception) == expected, at
            held = reference.snapshot()
            if number % COMPARED_EVERY == 0:
                assert differences(other.snapshot(), held) == {}, at
        assert differences(other.snapshot(), reference.snapshot()) == {}
        events = reference.transact(lambda tx: tx.log.read(0, 1_000))
        assert other.transact(lambda tx: tx.log.read(0, 1_000)) == events


def draws(dice: Dice) -> list[Draw]:
    """How to draw each transaction from what the ones before have led to."""
    opening = [partial(draw_one, maker) for maker in dice.shuffled(OPENING)]
    return [*opening, *[draw_transaction] * TRANSACTIONS]


def draw_one(maker: Maker, dice: Dice, held: Snapshot) -> list[Move]:
    return [maker(dice, held)]


def draw_transaction(dice: Dice, held: Snapshot) -> list[Move]:
    """One to three moves that may fail together, or one that has to succeed."""
    first = dice.one(TOGETHER + ALONE)
    if first in ALONE:
        return [first(dice, held)]
    makers = [first, *dice.some(TOGETHER, most=2)]
    # A kind only once, for two of the same may rely on the same row.
    return [maker(dice, held) for maker in dict.fromkeys(makers)]


def perform(store: Driver, moves: Sequence[Move], refusal: type[Exception]) -> object:
    """The answers of all moves, or that the store refused a row it has already."""

    async def work(tx: WriteTx) -> list[object]:
        return [await make(tx, move) for move in moves]

    try:
        return store.transact(work)
    except refusal:
        return REFUSED


async def make(tx: WriteTx, move: Move) -> object:
    told = await getattr(getattr(tx, move.role), move.method)(*move.arguments)
    return comparable(move.method, told)


def comparable(method: str, told: Any) -> object:
    """An answer without what the port leaves open."""
    if method in UNORDERED:
        return sorted(told)
    if method == "meet":
        return [row._replace(unmet=0, manual=0) for row in told]
    if method == "jobs":
        return told._replace(looked=0)  # the rows here fit together less than real ones
    if method == "counters":
        return {name: value for name, value in told.items() if value}
    if method == "attempts":
        return {job: rows for job, rows in told.items() if rows}
    return told


def differences(one: Snapshot, other: Snapshot) -> dict[str, tuple[object, object]]:
    """The tables that differ, with both contents."""
    pairs = zip(Snapshot._fields, one, other, strict=True)
    return {name: (mine, yours) for name, mine, yours in pairs if mine != yours}
