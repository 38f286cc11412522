"""Who may call what: every route of the application, as everybody."""

from pathlib import Path

import pytest

from tests.server.rights.rows import ROWS
from tests.server.rights.table import (
    ACTIONS,
    call_all,
    call_without_lease,
    complaint,
    leaks,
    size,
)
from tests.server.rights.world import standing_world
from tests.support.running import run
from windlass.domain.access.rights import RIGHTS, Action


def test_every_route_has_a_row_and_every_action_a_route() -> None:
    assert {row.route for row in ROWS} == set(ACTIONS)
    assert set(RIGHTS) == set(Action)
    asked_beside = {Action.CHANGE_ALL_JOBS, Action.RAISE_PRIORITIES}
    assert set(Action) - set(ACTIONS.values()) == asked_beside


def test_tokens_and_files_of_jobs_need_rights_of_their_own() -> None:
    """The table below follows the routes: it would follow a route with the wrong action, too."""
    tokens = {route: action for route, action in ACTIONS.items() if "/api/v1/tokens" in route}
    assert len(tokens) >= 4
    assert set(tokens.values()) == {Action.MANAGE_TOKENS}
    files = ("/log", "/log/lines", "/log/search", "/stack", "/artifacts")
    found = {
        route: action
        for route, action in ACTIONS.items()
        if route.startswith("GET /api/v1/jobs/{job:int}/") and route.endswith(files)
    }
    assert len(found) == len(files)
    assert set(found.values()) == {Action.READ_FILES}


def test_every_route_answers_everybody_as_the_table_of_rights_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        async with standing_world(tmp_path) as world:
            cells = await call_all(world)
            with capsys.disabled():
                print(f"\nrights: {size(cells)}")  # noqa: T201
            assert [complaint(cell) for cell in cells if not cell.is_right] == []
            assert leaks(cells, world) == []
            assert len(cells) == len(ROWS) * len(world.callers)
            for cell in await call_without_lease(world):
                assert cell.is_right, complaint(cell)

    run(scenario())
