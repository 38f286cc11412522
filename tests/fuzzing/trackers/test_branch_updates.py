"""An issue is told when a branch changes its state: once for each change, within the limits."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import World
from tests.fuzzing.trackers.servers import (
    SECRET,
    GitHubIssues,
    GitLabIssues,
    QuickClock,
    Receiver,
    TrackerServer,
    a_finding,
    running,
)
from tests.fuzzing.trackers.test_trackers import filer, settings, stored, sync_all
from tests.support.running import run
from windlass.domain.values.errors import WindlassError
from windlass_fuzz.findings.record import Finding, OnBranch
from windlass_fuzz.findings.sightings import mark_closed
from windlass_fuzz.findings.store import FindingStore

MAIN = OnBranch(name="main", since="c" * 40, exact=True)
RELEASE = OnBranch(name="release/1", since="d" * 40, merge="e" * 40)
FIXED = replace(RELEASE, state="fixed", fixed_in="f" * 40)
KEY = "k" * 16


@pytest.fixture(autouse=True)
def tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_TOKEN", "made-up")
    monkeypatch.setenv("GITHUB_TOKEN", "made-up")
    monkeypatch.setenv("WINDLASS_ISSUES_SECRET", SECRET)


async def edit(store: FindingStore, change: Callable[[Finding], Finding], key: str = KEY) -> None:
    known = await store.get(key)
    await store.update(key, lambda _: change(known))


async def change(store: FindingStore, *branches: OnBranch, key: str = KEY) -> None:
    await edit(store, lambda known: replace(known, branches=list(branches)), key)


def a_world(folder: Path) -> World:
    return World(folder, clock=QuickClock())


@pytest.mark.parametrize("make", [GitHubIssues, GitLabIssues])
def test_a_branch_that_changes_is_said_once(tmp_path: Path, make: type[TrackerServer]) -> None:
    world, server = a_world(tmp_path), make()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding(branches=[MAIN, RELEASE]))
            for _ in range(2):
                await sync_all(filer(world, server), store)
            assert server.comments(1) == [], "it was filed with these states"
            await change(store, MAIN, FIXED)
            for _ in range(3):
                await sync_all(filer(world, server), store)
            (said,) = server.comments(1)
            assert "`release/1` has changed" in said.replace("The state on ", "")
            assert "fixed in ffffffffffff" in said
            assert "through the merge eeeeeeeeeeee" in said
            assert "`main`: alive" in said
            # The same state comes again: that is news too.
            for state in (RELEASE, FIXED):
                await change(store, MAIN, state)
                await sync_all(filer(world, server), store)
            assert len(server.comments(1)) == 3
            assert server.issues[0]["state"] in ("open", "opened")

    run(work())


@pytest.mark.parametrize(
    "now",
    [
        replace(RELEASE, state="unsure", why="the branch was moved by force"),
        replace(RELEASE, since="1" * 40, exact=True, shown=["2" * 40]),
    ],
    ids=["unsure", "a better date"],
)
def test_what_is_no_change_is_not_said(tmp_path: Path, now: OnBranch) -> None:
    world, server = a_world(tmp_path), GitHubIssues()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding(branches=[MAIN, RELEASE]))
            await sync_all(filer(world, server), store)
            await change(store, MAIN, now)
            await sync_all(filer(world, server), store)
            assert server.comments(1) == []
            await change(store, MAIN, FIXED)
            await sync_all(filer(world, server), store)
            assert len(server.comments(1)) == 1

    run(work())


def test_closing_says_it_all_and_reopening_lists_the_branches(tmp_path: Path) -> None:
    world, server = a_world(tmp_path), GitHubIssues()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding(branches=[MAIN, RELEASE]))
            await sync_all(filer(world, server), store)
            await change(store, replace(MAIN, state="fixed", fixed_in="9" * 40), FIXED)
            await edit(store, lambda known: mark_closed(known, "9" * 40, 1))
            await sync_all(filer(world, server), store)
            assert len(server.comments(1)) == 1
            await edit(
                store,
                lambda known: replace(
                    known, state="open", closed_in=None, reopened=1, branches=[MAIN, FIXED]
                ),
            )
            for _ in range(2):
                await sync_all(filer(world, server), store)
            assert len(server.comments(1)) == 2, "no update after the note that it is back"
            assert "`main`: alive" in server.comments(1)[1]

    run(work())


def test_updates_stay_within_the_limits_and_are_said_later(tmp_path: Path) -> None:
    world, server = a_world(tmp_path), GitHubIssues()
    keys = [f"{number}" * 16 for number in range(4)]

    def said() -> list[int]:
        return [len(server.comments(number + 1)) for number in range(4)]

    async def work() -> None:
        async with running(server):
            known = [a_finding(key, branches=[MAIN, RELEASE]) for key in keys]
            store = await stored(world, *known)
            await sync_all(filer(world, server), store)
            for key in keys:
                await change(store, MAIN, FIXED, key=key)
            await sync_all(filer(world, server, per_run=3), store)
            assert sum(said()) == 3
            await sync_all(filer(world, server, per_run=3, per_day=7), store)
            assert sum(said()) == 3, "four filed and three told today"
            world.clock.ahead_ms += 86_400_001
            for _ in range(2):
                await sync_all(filer(world, server, per_run=3, per_day=7), store)
            assert said() == [1, 1, 1, 1]

    run(work())


@pytest.mark.parametrize("make", [GitHubIssues, GitLabIssues])
def test_a_lost_answer_to_an_update_says_it_once(tmp_path: Path, make: type[TrackerServer]) -> None:
    world, server = a_world(tmp_path), make()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding(branches=[MAIN, RELEASE]))
            await sync_all(filer(world, server), store)
            await change(store, MAIN, FIXED)
            server.lose_answer = True
            with pytest.raises(WindlassError):
                await sync_all(filer(world, server), store)
            server.lose_answer = False
            await sync_all(filer(world, server), store)
            assert len(server.comments(1)) == 1

    run(work())


def test_a_webhook_gets_an_event_of_its_own(tmp_path: Path) -> None:
    world, server = a_world(tmp_path), Receiver()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding(branches=[MAIN, RELEASE]))
            await sync_all(filer(world, server), store)
            await change(store, MAIN, FIXED)
            for _ in range(2):
                await sync_all(filer(world, server), store)
            events = list(server.deliveries.values())
            assert [one["event"] for one in events] == ["opened", "updated"]
            assert events[1]["branches"][1]["fixed_in"] == "f" * 40

    run(work())


def test_a_dry_run_names_the_update_and_asks_nobody(tmp_path: Path) -> None:
    world, server = a_world(tmp_path), GitHubIssues()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding(branches=[MAIN, RELEASE]))
            await sync_all(filer(world, server), store)
            await change(store, MAIN, FIXED)

    run(work())
    asked = len(server.requests)
    world.more = f"issues: {settings(server)}"
    code, said, _ = Commands(world).run("findings", "file", "scripted", "--dry-run")
    assert (code, len(server.requests)) == (0, asked)
    assert f"would update {server.issues[0]['html_url']}: {KEY}" in said
    assert server.comments(1) == []
