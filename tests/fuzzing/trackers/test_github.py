"""Findings as issues: each is filed once whatever happens, and closed with the finding."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fuzzing.support.scripted_solver import BROKEN, FINE, World
from tests.fuzzing.trackers.servers import GitHubIssues, a_finding, running
from tests.support.running import run
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.sightings import mark_closed, seen_again
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.trackers.filing import IssueFiler
from windlass_fuzz.trackers.options import IssueOptions, issue_options


@asynccontextmanager
async def tracker_server() -> AsyncIterator[GitHubIssues]:
    server = GitHubIssues()
    async with running(server):
        yield server


async def sync(world: World, server: GitHubIssues, finding: Finding) -> Finding:
    store = FindingStore(world.pipeline)
    known = await store.update(finding.key, lambda before: before or finding)
    tracker = IssueFiler(
        IssueOptions(project="owner/solver", api=server.address), "scripted", world.clock
    )
    try:
        return await tracker.sync(store, known)
    finally:
        await tracker.close()


def test_a_finding_is_filed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "made-up")
    world = World(tmp_path)

    async def work() -> GitHubIssues:
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

    async def work() -> GitHubIssues:
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

    async def work() -> GitHubIssues:
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
            assert f"No longer seen since {'d' * 40}" in server.comments(1)[0]
            server.issues[0]["state"] = "as a person left it"
            await sync(world, server, filed)
            assert server.issues[0]["state"] == "as a person left it"
            await store.update(filed.key, lambda known: seen_again(known, a_finding()))
            for _ in range(2):
                await sync(world, server, filed)
            assert server.issues[0]["state"] == "open"
            assert len(server.comments(1)) == 2, "each change is said once"

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
            tracker = IssueFiler(options, "scripted", world.clock)
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

    async def work() -> GitHubIssues:
        async with tracker_server() as server:
            options = IssueOptions(project="owner/solver", api=server.address, per_run=3, per_day=4)
            tracker = IssueFiler(options, "scripted", world.clock)
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
    tracker = IssueFiler(IssueOptions(project="owner/solver"), "scripted", World(tmp_path).clock)
    assert not tracker.needs_update(a_finding(state=state))
    assert tracker.needs_update(a_finding())
