"""Moves of the differential test: pools, their workers, what they cost, and the load."""

from tests.store.conformance.moves import TIMES, Dice, Maker, Move
from tests.store.conformance.pool_rows import cost, pool, pool_worker
from windlass.store.sql.snapshot import Snapshot

NAMES = "aäB"


def add_pool(dice: Dice, held: Snapshot) -> Move:
    return Move("pools", "insert", (pool(dice.one(NAMES), message=dice.text()),))


def use_pools(dice: Dice, held: Snapshot) -> Move:
    number = dice.number(1, 4)
    changed = pool(dice.one(NAMES), id=number, next_at=dice.one(TIMES), learned=dice.text())
    return dice.one(
        [
            Move("pools", "lock", (number,)),
            Move("pools", "lock_name", (dice.one(NAMES),)),
            Move("pools", "update", (changed,)),
            Move("pools", "remove", (number,)),
            Move("pools", "all", ()),
            Move("pools", "load", (dice.number(1, 3),)),
            Move("pools", "spells", (dice.number(0, 9), dice.some([1, 2, 3]))),
            Move("pools", "span", (dice.number(1, 3), -9, dice.number(0, 3), dice.number(1, 3))),
        ]
    )


def add_workers(dice: Dice, held: Snapshot) -> Move:
    taken = {row.token for row in held.pool_workers}
    tokens = [token for token in dice.some("abcdefgh") if token not in taken]
    rows = [pool_worker(dice.number(1, 4), t, state=dice.number(1, 6)) for t in tokens]
    return Move("pools", "add_workers", (rows,))


def use_workers(dice: Dice, held: Snapshot) -> Move:
    ids = [row.id for row in held.pool_workers] or [1]
    changed = pool_worker(
        9, "other", id=dice.one(ids), state=dice.number(1, 6), changed_at=dice.one(TIMES),
        machine=dice.text(), reason=dice.text(),
    )  # fmt: skip
    return dice.one(
        [
            Move("pools", "update_workers", ([changed],)),
            Move("pools", "living", ()),
            Move("pools", "worker", (dice.number(1, 4),)),
            Move("pools", "trim_gone", (dice.one(TIMES), dice.number(1, 3))),
        ]
    )


def use_costs(dice: Dice, held: Snapshot) -> Move:
    rows = [cost(name, queue=dice.one(["", "q", "Q"]), ms=dice.one(TIMES)) for name in NAMES]
    return dice.one([Move("pools", "charge", (rows,)), Move("pools", "costs", (202611,))])


MOVES: list[Maker] = [use_pools, use_workers, use_costs]

LONE_MOVES: list[Maker] = [add_pool, add_workers]

OPENING: list[Maker] = [add_pool, add_pool, add_workers]
