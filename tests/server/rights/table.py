"""Calls every route as everybody, and compares the answers with the declared rights."""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tests.server.rights.callers import OTHER, Caller
from tests.server.rights.rows import ROWS, Row
from tests.server.rights.world import MARK, Answer, World
from windlass.domain.access.rights import RANKS, RIGHTS, Action, Role
from windlass.server.app import ROUTES

UNKNOWN: Final = 401
FORBIDDEN: Final = 403
DONE: Final = 200
LOST: Final = 409  # the lease of the attempt is not the caller's
ACTIONS: Final = {f"{route.method} {route.path}": route.needs for route in ROUTES}


class Cell(NamedTuple):
    """What one caller was answered on one route, and what the declared rights say."""

    row: str
    caller: str
    expected: int
    answer: Answer

    @property
    def is_right(self) -> bool:
        status = self.answer.status
        if self.expected != DONE:
            return status == self.expected
        return 200 <= status < 300


def expected(row: Row, who: Caller) -> int:
    """The answer that this caller gets."""
    by_rights = _by_rights(row, who)
    return row.otherwise or DONE if by_rights == DONE else by_rights


def _by_rights(row: Row, who: Caller) -> int:
    """The answer by the table of rights, read here independently of the code that decides."""
    right = RIGHTS[ACTIONS[row.route]]
    if right.is_open:
        return _expected_open(ACTIONS[row.route], who)
    if who.role is None:
        return UNKNOWN
    if right.unlimited is Role.WORKER:
        if who.standing == "pending":
            return DONE if right.pending else FORBIDDEN
        syncs = who.standing == "stranger" and right.pending  # it calls about itself
        return DONE if who.standing == "live" or syncs else FORBIDDEN
    least = right.limited if who.namespaces else right.unlimited
    if least is None or who.role is Role.WORKER or RANKS[who.role] < RANKS[least]:
        return FORBIDDEN
    if OTHER in who.namespaces and row.foreign != DONE:
        return row.foreign
    if row.of_others and right.others is not None:
        needed = RIGHTS[right.others].unlimited
        return DONE if needed is not None and RANKS[who.role] >= RANKS[needed] else FORBIDDEN
    return DONE


def _expected_open(action: Action, who: Caller) -> int:
    if action is not Action.ENROL or who.token is None:
        return DONE
    if who.role is None:
        return UNKNOWN  # a token that is not valid is no reason to wait for approval
    return FORBIDDEN if who.role is Role.WORKER else DONE  # it enrols itself only


async def call_all(world: World) -> list[Cell]:
    """All cells; of each row first those that are refused, which must not change anything."""
    cells: list[Cell] = []
    newest = 0
    for row in ROWS:
        wanted = {who.title: expected(row, who) for who in world.callers}
        refused = [who for who in world.callers if wanted[who.title] != DONE]
        served = [who for who in world.callers if wanted[who.title] == DONE]
        newest, _ = await world.changes_by_callers(newest)
        # At the same time, because some are refused only after a wait.
        cells += await asyncio.gather(
            *(_call(world, row, who, wanted[who.title]) for who in refused)
        )
        newest, changes = await world.changes_by_callers(newest)
        assert changes == [], f"{row.title} was refused"
        cells += [await _call(world, row, who, DONE) for who in served]
    return cells


async def _call(world: World, row: Row, who: Caller, wanted: int) -> Cell:
    made = await row.fresh(world, who) if wanted == DONE and row.fresh is not None else {}
    values = {**world.values, **row.values}
    values = {key: _fill(value, world.values) for key, value in values.items()}
    if who.worker is not None and who.standing in ("pending", "disabled"):
        # They call about themselves, so that nothing but their standing is a reason to refuse.
        values |= {"worker": who.worker.id, "incarnation": who.worker.incarnation}
    values |= made
    method, path = row.route.split()
    path = re.sub(r"\{(\w+):\w+\}", lambda found: str(values[found[1]]), path)
    answer = await world.call(who, method, path, _fill(row.query, values), _fill(row.body, values))
    return Cell(row.title, who.title, wanted, answer)


def _fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Replaces `$name` by a value."""
    if isinstance(template, str) and template.startswith("$"):
        return values.get(template[1:], template)
    if isinstance(template, list):
        return [_fill(item, values) for item in template]
    if isinstance(template, Mapping):
        return {key: _fill(item, values) for key, item in template.items()}
    return template


async def call_without_lease(world: World) -> list[Cell]:
    """What a live worker is answered about the attempt of another, which it claims to hold."""
    stranger = next(who for who in world.callers if who.standing == "stranger")
    assert stranger.worker is not None
    own = {"worker": stranger.worker.id, "incarnation": stranger.worker.incarnation}
    held, world.values = world.values, {**world.values, **own}
    rows = [row for row in ROWS if "attempts" in row.route]
    cells = [await _call(world, row, stranger, LOST) for row in rows]
    world.values = held
    return cells


def leaks(cells: list[Cell], world: World) -> list[str]:
    """Cells that show something of the own namespace to somebody who must not see it."""
    strangers = {who.title for who in world.callers if who.role is None or OTHER in who.namespaces}
    return [
        f"{cell.row} as {cell.caller}: {cell.answer.body.decode(errors='replace')[:500]}"
        for cell in cells
        if cell.caller in strangers and MARK.encode() in cell.answer.body
    ]


def size(cells: list[Cell]) -> str:
    """How much was tried."""
    rows, callers = len({cell.row for cell in cells}), len({cell.caller for cell in cells})
    routes = len(ACTIONS)
    return f"{routes} routes in {rows} rows × {callers} identities = {len(cells)} cells"


def drawn(cells: list[Cell]) -> str:
    """The table as text: one line for each row, one column for each caller."""
    callers = list(dict.fromkeys(cell.caller for cell in sorted(cells, key=lambda c: c.caller)))
    by_row: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, {})[cell.caller] = cell
    width = max(map(len, by_row))
    key = [f"{number + 1:>3} {name}" for number, name in enumerate(callers)]
    head = " " * width + "".join(f"{number + 1:>5}" for number in range(len(callers)))
    lines = [
        f"{row:<{width}}" + "".join(f"{found[name].answer.status:>5}" for name in callers)
        for row, found in by_row.items()
    ]
    return "\n".join([*key, "", head, *lines, "", size(cells)])


def complaint(cell: Cell) -> str:
    """What is wrong with a cell."""
    text = cell.answer.body.decode(errors="replace")
    try:
        text = json.loads(text)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        text = text[:200]
    return (
        f"{cell.row} as {cell.caller}: expected {cell.expected}, got {cell.answer.status}: {text}"
    )
