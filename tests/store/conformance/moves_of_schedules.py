"""Moves of the differential test: templates, schedules, their runs, and reactions."""

from tests.store.conformance.moves import TIMES, Dice, Maker, Move
from tests.store.conformance.rows import reaction, schedule, schedule_run, template
from windlass.store.sql.snapshot import Snapshot

NAMESPACES = ["team", "other", None]
NAMES = "aäB"


def use_templates(dice: Dice, held: Snapshot) -> Move:
    name, version = dice.one(NAMES), dice.number(1, 3)
    return dice.one(
        [
            Move("templates", "insert", (template(name, version, created_at=dice.one(TIMES)),)),
            Move("templates", "newest", ("team", name)),
            Move("templates", "version", ("team", name, version)),
            Move("templates", "all", (dice.one(NAMESPACES),)),
            Move("templates", "remove", ("team", name, dice.one(TIMES))),
        ]
    )


def add_schedule(dice: Dice, held: Snapshot) -> Move:
    row = schedule(dice.one(NAMES), next_at=dice.one([None, *TIMES]), paused=dice.number(0, 1))
    return Move("schedules", "insert", (row,))


def use_schedules(dice: Dice, held: Snapshot) -> Move:
    number = dice.number(1, 4)
    changed = schedule(
        dice.one(NAMES), id=number, next_at=dice.one(TIMES), last_slot=dice.one(TIMES)
    )
    return dice.one(
        [
            Move("schedules", "lock", (number,)),
            Move("schedules", "lock_name", ("team", dice.one(NAMES))),
            Move("schedules", "update", (changed,)),
            Move("schedules", "remove", (number,)),
            Move("schedules", "all", (dice.one(NAMESPACES),)),
            Move("schedules", "due", (dice.one(TIMES), dice.number(1, 3))),
        ]
    )


def add_runs(dice: Dice, held: Snapshot) -> Move:
    number = dice.number(1, 4)
    slots = dice.some([None, 5, 6, 7])
    rows = [schedule_run(number, s, state=dice.number(1, 5), changed_at=s or 0) for s in slots]
    return Move("schedules", "add_runs", (rows,))


def use_runs(dice: Dice, held: Snapshot) -> Move:
    number = dice.number(1, 4)
    ids = [run.id for run in held.schedule_runs] or [1]
    changed = schedule_run(9, 9, id=dice.one(ids), state=dice.number(1, 5), reason=dice.text())
    return dice.one(
        [
            Move("schedules", "update_runs", ([changed],)),
            Move("schedules", "waiting", (dice.number(0, 2), dice.number(1, 3))),
            Move("schedules", "open_runs", (number, dice.number(1, 4))),
            Move("schedules", "runs", (number, dice.one([0, 4]), dice.number(1, 4))),
            Move("schedules", "trim_runs", (dice.number(0, 9), dice.number(1, 3))),
        ]
    )


def add_reactions(dice: Dice, held: Snapshot) -> Move:
    workflow = dice.number(1, 3)
    rows = [
        reaction(workflow, place=n, kind=dice.number(1, 3), state=dice.number(1, 3), next_at=n,
                 finished_at=dice.one(TIMES))
        for n in dice.some(range(3))
    ]  # fmt: skip
    return Move("reactions", "add", (rows,))


def use_reactions(dice: Dice, held: Snapshot) -> Move:
    workflow = dice.number(1, 3)
    ids = [row.id for row in held.reactions] or [1]
    changed = reaction(9, id=dice.one(ids), state=dice.number(1, 3), message=dice.text())
    return dice.one(
        [
            Move("reactions", "due", (dice.number(0, 3), dice.one([True, False]), 2)),
            Move("reactions", "lock", (dice.one(ids),)),
            Move("reactions", "update", (changed,)),
            Move("reactions", "of_workflow", (workflow,)),
            Move("reactions", "trim", (dice.one(TIMES), dice.number(1, 3))),
        ]
    )


MOVES: list[Maker] = [use_templates, use_schedules, use_runs, use_reactions]

LONE_MOVES: list[Maker] = [add_schedule, add_runs, add_reactions]

OPENING: list[Maker] = [add_schedule, add_schedule, add_runs, add_reactions]
