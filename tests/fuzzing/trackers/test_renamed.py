"""Issues stay the same when their project gets another name, and when the server asks to wait."""

from pathlib import Path

import pytest
from aiohttp import web

from tests.fuzzing.support.scripted_solver import World
from tests.fuzzing.trackers.servers import GitHubIssues, QuickClock, a_finding, running
from tests.fuzzing.trackers.test_trackers import filer, stored, sync_all
from tests.support.running import run
from windlass_fuzz.findings.sightings import mark_closed, seen_again

OLD, NEW = "owner/solver", "team/solver"


class MovedProject(GitHubIssues):
    """GitHub leads from old names to the new one, and calls a project by its own spelling."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.script and self.script[0][0] == 403:
            status, headers = self.script.pop(0)
            said = {"message": "You have exceeded a secondary rate limit."}
            return web.json_response(said, status=status, headers=headers)
        return await super().handle(request)

    async def answer(self, request: web.Request) -> web.Response:
        for name in (OLD, NEW.upper()):
            if request.path.startswith(f"/repos/{name}/"):
                moved = str(request.rel_url).replace(name, NEW, 1)
                return web.json_response({}, status=301, headers={"Location": moved})
        return await super().answer(request)


@pytest.mark.parametrize("named", [OLD, NEW, NEW.upper()])
def test_an_issue_is_closed_and_opened_under_any_name_of_its_project(
    tmp_path: Path, named: str
) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = MovedProject()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding())
            [first], _ = await sync_all(filer(world, server, project=named), store)
            await store.update(first.key, lambda known: mark_closed(known or first, "d" * 40, 1))
            settled, said = await sync_all(filer(world, server, project=named), store)
            assert (len(settled), said) == (1, [])
            assert server.issues[0]["state"] == "closed"
            # Now the solver file has the new name, too.
            await store.update(first.key, lambda known: seen_again(known, a_finding()))
            [again], said = await sync_all(filer(world, server, project=NEW), store)
            assert said == []
            assert f"/{NEW}/issues/" in again.issue.lower()
            assert [one["state"] for one in server.issues] == ["open"]

    run(work())


def test_a_limit_without_a_header_is_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = MovedProject()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding())
            server.script = [(403, {})]
            settled, said = await sync_all(filer(world, server), store)
            assert (len(settled), said, len(server.issues)) == (1, [], 1)
            assert world.clock.ahead_ms == 60_000

    run(work())
