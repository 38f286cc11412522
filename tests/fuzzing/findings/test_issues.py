"""Findings as issues: each is filed once whatever happens, and closed with the finding."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.fuzzing.support.scripted_solver import BROKEN, FINE, World
from tests.support.running import run
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.fuzzing.findings.issues import IssueOptions, IssueTracker, issue_options
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.sightings import mark_closed, seen_again
from windlass.fuzzing.findings.store import FindingStore

PAGE = 2


class Tracker:
    """The issues of one project, on loopback; can lose answers."""

    def __init__(self) -> None:
        self.issues: list[dict[str, Any]] = []
        self.lose_answer = False
        self.refuse = 0
        self.tokens: set[str | None] = set()
        self.address = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.tokens.add(request.headers.get("Authorization"))
        if self.refuse:
            return web.json_response({"message": "no"}, status=self.refuse)
        if request.method == "GET":
            return self._listed(request)
        body = await request.json()
        if request.method == "PATCH":
            number = int(request.path.rpartition("/")[2])
            if number > len(self.issues):
                return web.json_response({"message": "gone"}, status=410)
            self.issues[number - 1].update(body)
            return web.json_response(self.issues[number - 1])
        number = len(self.issues) + 1
        address = f"{self.address}/owner/solver/issues/{number}"
        self.issues.append({**body, "number": number, "html_url": address, "state": "open"})
        if self.lose_answer:
            assert request.transport is not None
            request.transport.close()
        return web.json_response(self.issues[-1], status=201)

    def _listed(self, request: web.Request) -> web.Response:
        page = int(request.query.get("page", "1"))
        label = request.query["labels"]
        fitting = [issue for issue in self.issues if label in issue["labels"]]
        headers = {}
        if page * PAGE < len(fitting):
            headers["Link"] = f'<{request.url.update_query(page=page + 1)}>; rel="next"'
        return web.json_response(fitting[(page - 1) * PAGE : page * PAGE], headers=headers)


@asynccontextmanager
async def tracker_server() -> AsyncIterator[Tracker]:
    server = Tracker()
    app = web.Application()
    app.router.add_route("*", "/repos/owner/solver/issues{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def a_finding(key: str = "k" * 16, **fields: Any) -> Finding:
    known = {
        "key": key, "title": f"assertion {key}", "engine": "command", "command": ["./solver"],
        "input": "input-1", "size": 3, "shown": 5, "tried": 5, "found_in": "c" * 40,
        "found_at_ms": 0, "introduced_by": "c" * 40, "last_good": "b" * 40,
    }  # fmt: skip
    return Finding(**{**known, **fields})


async def sync(world: World, server: Tracker, finding: Finding) -> Finding:
    store = FindingStore(world.pipeline)
    known = await store.update(finding.key, lambda before: before or finding)
    tracker = IssueTracker(
        IssueOptions(project="owner/solver", api=server.address), "scripted", world.clock
    )
    try:
        return await tracker.sync(store, known)
    finally:
        await tracker.close()


def test_a_finding_is_filed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "made-up")
    world = World(tmp_path)

    async def work() -> Tracker:
        async with tracker_server() as server:
            others = [a_finding(f"{n}" * 16) for n in range(5)]
            filed = [await sync(world, server, finding) for finding in [*others, *others]]
            assert [f.issue for f in filed[:5]] == [f.issue for f in filed[5:]]
        return server

    server = run(work())
    assert [issue["title"] for issue in server.issues] == [
        f"scripted: assertion {str(n) * 16}" for n in range(5)
    ]
    assert server.tokens == {"Bearer made-up"}
    assert re.search(r"introduced by c{12}", server.issues[0]["body"])


def test_a_lost_answer_makes_no_second_issue(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def work() -> Tracker:
        async with tracker_server() as server:
            server.lose_answer = True
            with pytest.raises(WindlassError):
                await sync(world, server, a_finding())
            server.lose_answer = False
            filed = await sync(world, server, a_finding())
            assert filed.issue == server.issues[0]["html_url"]
        return server

    assert len(run(work()).issues) == 1


def test_old_bugs_are_filed_only_when_asked_for(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def work() -> Tracker:
        async with tracker_server() as server:
            await sync(world, server, a_finding(last_good=None))
        return server

    assert run(work()).issues == []


def test_the_fuzzer_files_and_closes_and_survives_a_refusal(tmp_path: Path) -> None:
    async def work() -> None:
        async with tracker_server() as server:
            issues = f"issues: {{project: owner/solver, api: '{server.address}'}}"
            world = World(tmp_path, more=issues)
            good = world.commit("good")
            bad = world.commit("bad", solver_sh=BROKEN)
            await world.build_and_schedule(good, bad)
            server.refuse = 401
            said: list[str] = []
            report = await world.fuzz(bad, until_bug=True, budget_ms=120_000, notify=said.append)
            assert (report.fuzz_count, report.issues) == (1, [])
            assert any("could not update issues" in line for line in said)
            server.refuse = 0
            # It is filed by the next run, whether that meets the bug again or not.
            report = await world.fuzz(good, budget_ms=1_000)
            assert (report.findings, report.issues) == ([], [server.issues[0]["html_url"]])
            mended = world.commit("mended", solver_sh=FINE)
            await world.build_and_schedule(mended)
            await world.fuzz(mended, budget_ms=1_000)
            assert server.issues[0]["state"] == "closed"

    run(work())


def test_an_issue_is_closed_once_and_opened_when_its_bug_is_back(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def work() -> None:
        async with tracker_server() as server:
            store = FindingStore(world.pipeline)
            filed = await sync(world, server, a_finding())
            await store.update(filed.key, lambda known: mark_closed(known or filed, "d" * 40, 1))
            await sync(world, server, filed)
            assert server.issues[0]["state"] == "closed"
            server.issues[0]["state"] = "as a person left it"
            await sync(world, server, filed)
            assert server.issues[0]["state"] == "as a person left it"
            await store.update(filed.key, lambda known: seen_again(known, a_finding()))
            for _ in range(2):
                await sync(world, server, filed)
            assert server.issues[0]["state"] == "open"

    run(work())


def test_a_deleted_issue_does_not_stop_the_others(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def work() -> None:
        async with tracker_server() as server:
            store = FindingStore(world.pipeline)
            removed = a_finding("0" * 16, state="closed", issue=f"{server.address}/issues/99")
            for finding in (removed, a_finding("1" * 16)):
                await store.update(finding.key, lambda _, new=finding: new)  # type: ignore[misc]
            options = IssueOptions(project="owner/solver", api=server.address)
            tracker = IssueTracker(options, "scripted", world.clock)
            messages: list[str] = []
            synced = await tracker.sync_all(store, messages.append)
            await tracker.close()
            assert [finding.key for finding in synced] == ["1" * 16]
            assert "0" * 16 in messages[0]
            assert len(server.issues) == 1

    run(work())


def test_options_that_do_not_fit_are_named() -> None:
    assert issue_options({}) is None
    with pytest.raises(InvalidInput, match="project"):
        issue_options({"label": "x"})


def test_a_flood_of_findings_is_a_few_issues_and_one_summary(tmp_path: Path) -> None:
    world = World(tmp_path)
    store = FindingStore(world.pipeline)

    async def work() -> Tracker:
        async with tracker_server() as server:
            options = IssueOptions(project="owner/solver", api=server.address, per_run=3, per_day=4)
            tracker = IssueTracker(options, "scripted", world.clock)
            for number in range(9):
                found = a_finding(f"{number}" * 16)
                await store.update(found.key, lambda _, f=found: f)  # type: ignore[misc]
            counts = [len(await tracker.sync_all(store, print)) for _ in range(3)]
            assert counts == [3, 1, 0], "three in a run, four in a day"
            summaries = [one for one in server.issues if "more findings" in one["title"]]
            assert len(summaries) == 1
            assert "5 more findings" in summaries[0]["title"]
            assert "8" * 16 in summaries[0]["body"]
            world.clock.ahead_ms = 25 * 3_600_000
            assert len(await tracker.sync_all(store, print)) == 3
            await tracker.close()
        return server

    server = run(work())
    assert len([one for one in server.issues if "assertion" in one["title"]]) == 7


@pytest.mark.parametrize("state", ["flaky", "quarantined"])
def test_what_is_flaky_or_set_aside_is_not_filed(tmp_path: Path, state: str) -> None:
    tracker = IssueTracker(IssueOptions(project="owner/solver"), "scripted", World(tmp_path).clock)
    assert not tracker.needs_update(a_finding(state=state))
    assert tracker.needs_update(a_finding())
