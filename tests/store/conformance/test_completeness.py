"""The suite itself: every method of every role is called on both databases and compared.

The methods are recorded while the random moves and the fixed steps run on SQLite in memory; the
same moves and steps run on the other stores in `test_differential_rows.py` and
`test_transactions.py`, and below.
"""

import inspect
import typing
from functools import partial

import apsw
import pytest

from tests.store.conformance.conftest import Stores
from tests.store.conformance.driver import KINDS, Driver
from tests.store.conformance.everything import ASK, CHANGE, FILL, Step
from tests.store.conformance.moves import Dice
from tests.store.conformance.test_differential_rows import draws, perform
from windlass.store.sql.transaction import WriteTx

SEEDS = range(12)


def roles() -> dict[str, type]:
    """Returns the roles of a transaction and their classes."""
    found = typing.get_type_hints(WriteTx)
    return {name: kind for name, kind in found.items() if kind is not int}


class Recorder:
    """Passes everything on, and notes which methods of which roles were asked for."""

    def __init__(self, target: object, called: set[tuple[str, str]], role: str = "") -> None:
        self._target = target
        self._called = called
        self._role = role

    def __getattr__(self, name: str) -> object:
        found = getattr(self._target, name)
        if self._role:
            self._called.add((self._role, name))
            return found
        return found if isinstance(found, int) else Recorder(found, self._called, name)


async def recorded(tx: WriteTx, step: Step, called: set[tuple[str, str]]) -> None:
    await step(typing.cast(WriteTx, Recorder(tx, called)))


def test_every_method_of_every_role_is_called_and_compared(stores: Stores) -> None:
    called: set[tuple[str, str]] = set()
    with stores.open("memory") as store:
        for step in (*FILL, *ASK, *CHANGE):
            store.transact(partial(recorded, step=step, called=called))
    for seed in SEEDS:
        with stores.open("memory") as store:
            dice = Dice(seed)
            for draw in draws(dice):
                moves = draw(dice, store.snapshot())
                called |= {(move.role, move.method) for move in moves}
                perform(store, moves, apsw.ConstraintError)
    offered = {
        (role, name)
        for role, kind in roles().items()
        for name, _ in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }
    assert len(offered) > 150
    assert sorted(offered - called) == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "memory"])
def test_a_filled_store_answers_as_memory_does(stores: Stores, kind: str) -> None:
    with stores.open("memory") as reference, stores.open(kind) as other:
        assert answers(other) == answers(reference)
        assert other.snapshot() == reference.snapshot()


def answers(store: Driver) -> list[object]:
    for step in FILL:
        store.transact(step)
    return [store.transact(step) for step in ASK]
