"""What every tracker promises: one issue per finding, closed with it, private where asked for."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

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
from tests.support.running import run
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.sightings import mark_closed, seen_again
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.trackers.filing import IssueFiler
from windlass_fuzz.trackers.options import issue_options

TOKEN = "glpat-made-up-token"


@pytest.fixture(autouse=True)
def tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("WINDLASS_ISSUES_SECRET", SECRET)


def settings(server: TrackerServer, **more: Any) -> dict[str, Any]:
    """Returns what the solver file says about this server."""
    if isinstance(server, Receiver):
        return {"tracker": "webhook", "url": f"{server.address}/hook", **more}
    if isinstance(server, GitLabIssues):
        api = f"{server.address}/api/v4"
        return {"tracker": "gitlab", "project": "group/sub/solver", "api": api, **more}
    return {"project": "owner/solver", "api": server.address, **more}


def filer(world: World, server: TrackerServer, **more: Any) -> IssueFiler:
    options = issue_options(settings(server, **more))
    assert options is not None
    return IssueFiler(options, "scripted", world.clock)


async def stored(world: World, *findings: Finding) -> FindingStore:
    store = FindingStore(world.pipeline)
    for finding in findings:
        await store.update(finding.key, lambda _, new=finding: new)  # type: ignore[misc]
    return store


async def sync_all(filing: IssueFiler, store: FindingStore) -> tuple[list[Finding], list[str]]:
    said: list[str] = []
    try:
        return await filing.sync_all(store, said.append), said
    finally:
        await filing.close()


def test_gitlab_files_once_closes_with_the_commit_and_reopens(tmp_path: Path) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = GitLabIssues()

    async def work() -> None:
        async with running(server):
            store = await stored(world, *(a_finding(f"{n}" * 16) for n in range(4)))
            for _ in range(2):
                await sync_all(filer(world, server), store)
            assert len(server.issues) == 4, "one issue per finding, over two pages"
            first = await store.get("0" * 16)
            assert first.issue == f"{server.address}/group/sub/solver/-/issues/1"
            await store.update(first.key, lambda known: mark_closed(known or first, "d" * 40, 1))
            for _ in range(2):
                await sync_all(filer(world, server), store)
            assert server.issues[0]["state"] == "closed"
            assert f"No longer seen since {'d' * 40}" in server.comments(1)[0]
            await store.update(first.key, lambda known: seen_again(known, a_finding("0" * 16)))
            for _ in range(2):
                await sync_all(filer(world, server), store)
            assert (server.issues[0]["state"], len(server.comments(1))) == ("opened", 2)

    run(work())
    assert server.tokens == {TOKEN}


@pytest.mark.parametrize("make", [GitHubIssues, GitLabIssues])
def test_a_lost_answer_makes_no_second_issue(
    tmp_path: Path, make: type[GitHubIssues | GitLabIssues]
) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = make()

    async def work() -> None:
        async with running(server):
            # Others come first, so that the search has to turn a page.
            store = await stored(world, *(a_finding(f"{n}" * 16) for n in range(3)))
            await sync_all(filer(world, server), store)
            await stored(world, a_finding("4" * 16))
            server.lose_answer = True
            with pytest.raises(WindlassError):
                await sync_all(filer(world, server), store)
            server.lose_answer = False
            assert len(server.issues) == 4
            settled, _ = await sync_all(filer(world, server), store)
            assert len(settled) == 1
            assert len(server.issues) == 4

    run(work())


@pytest.mark.parametrize("make", [GitHubIssues, GitLabIssues])
def test_a_lost_answer_to_a_comment_says_it_once(
    tmp_path: Path, make: type[GitHubIssues | GitLabIssues]
) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = make()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding())
            [first], _ = await sync_all(filer(world, server), store)
            await store.update(first.key, lambda known: mark_closed(known or first, "d" * 40, 1))
            server.lose_answer = True
            with pytest.raises(WindlassError):
                await sync_all(filer(world, server), store)
            server.lose_answer = False
            await sync_all(filer(world, server), store)
            assert (server.issues[0]["state"], len(server.comments(1))) == ("closed", 1)

    run(work())


@pytest.mark.parametrize("make", [GitHubIssues, GitLabIssues, Receiver])
def test_two_runs_at_once_file_a_finding_once(tmp_path: Path, make: type[TrackerServer]) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = make()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding())
            mine, other = filer(world, server), filer(world, server)
            read = await store.get("k" * 16)  # both runs have read the record before either files
            filed = await mine.sync(store, read)
            again = await other.sync(store, read)
            assert again.issue == filed.issue
            assert [one.startswith("POST") for one in server.requests].count(True) == 1
            # A run that was killed holds its claim for a while, and then another one files it.
            held = a_finding("h" * 16, issue_claim_ms=world.clock.now_ms())
            await stored(world, held)
            assert (await other.sync(store, held)).issue == ""
            world.clock.ahead_ms = 3_600_000
            assert (await other.sync(store, held)).issue
            await mine.close()
            await other.close()

    run(work())


@pytest.mark.parametrize("make", [GitLabIssues, Receiver])
def test_servers_that_are_busy_or_broken_are_asked_again(
    tmp_path: Path, make: type[TrackerServer]
) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = make()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding())
            server.script = [(503, {}), (429, {"Retry-After": "0"}), (502, {})]
            await sync_all(filer(world, server), store)
            assert (await store.get("k" * 16)).issue
            await stored(world, a_finding("1" * 16))
            server.script = [(429, {"Retry-After": "86400"})]
            with pytest.raises(WindlassError, match="86400 s"):
                await sync_all(filer(world, server), store)

    run(work())


def test_a_deleted_issue_does_not_stop_the_others(tmp_path: Path) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = GitLabIssues()

    async def work() -> None:
        async with running(server):
            gone = f"{server.address}/group/sub/solver/-/issues/99"
            deleted = a_finding("0" * 16, state="closed", issue=gone)
            store = await stored(world, deleted, a_finding("1" * 16))
            settled, said = await sync_all(filer(world, server), store)
            assert [one.key for one in settled] == ["1" * 16]
            assert "0" * 16 in said[0]

    run(work())


def test_private_kinds_are_confidential_at_gitlab(tmp_path: Path) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = GitLabIssues()
    rules = {"private": ["sanitizer"], "labels": {"private": "security", "sanitizer": ["asan"]}}

    async def work() -> None:
        async with running(server):
            secret = a_finding("0" * 16, kind="sanitizer", title="secret overflow")
            store = await stored(world, secret, a_finding("1" * 16, kind="assertion"))
            await sync_all(filer(world, server, **rules), store)
            assert [one["confidential"] for one in server.issues] == [True, False]
            assert server.issues[0]["labels"] == ["fuzzing", "severity-medium", "asan", "security"]
            assert server.issues[1]["labels"] == ["fuzzing", "severity-medium"]
            server.confidential = False
            await stored(world, a_finding("2" * 16, kind="sanitizer"))
            with pytest.raises(WindlassError, match="confidential"):
                await sync_all(filer(world, server, **rules), store)

    run(work())


def test_private_kinds_have_their_own_repository_at_github(tmp_path: Path) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = GitHubIssues()
    rules = {"private": ["sanitizer"], "private_project": "owner/secret"}

    async def work() -> None:
        async with running(server):
            secret = a_finding("0" * 16, kind="sanitizer")
            store = await stored(world, secret, a_finding("1" * 16))
            for _ in range(2):
                await sync_all(filer(world, server, **rules), store)
            assert [one["project"] for one in server.issues] == ["owner/secret", "owner/solver"]
            await store.update("0" * 16, lambda known: mark_closed(known or secret, "d" * 40, 1))
            # Without the option, the number would name an issue of another project.
            _, said = await sync_all(filer(world, server), store)
            assert "owner/secret/issues/1" in said[0]
            assert {one["state"] for one in server.issues} == {"open"}
            await sync_all(filer(world, server, private_project="owner/secret"), store)
            assert [one["state"] for one in server.issues] == ["closed", "open"]

    run(work())


def test_a_summary_does_not_name_private_findings(tmp_path: Path) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = GitLabIssues()

    async def work() -> None:
        async with running(server):
            secret = a_finding("0" * 16, kind="sanitizer", title="secret overflow")
            store = await stored(world, secret, a_finding("1" * 16))
            await sync_all(filer(world, server, private=["sanitizer"], per_run=0), store)
            assert len(server.issues) == 1
            text = server.issues[0]["description"]
            assert "1 private" in text
            assert "1" * 16 in text
            assert "secret" not in text
            assert "0" * 16 not in text

    run(work())


@pytest.mark.parametrize("make", [GitHubIssues, GitLabIssues, Receiver])
def test_an_input_is_attached_or_withheld(tmp_path: Path, make: type[TrackerServer]) -> None:
    world = World(tmp_path, clock=QuickClock())

    async def text_of(attach: bool, key: str) -> str:
        server = make()
        async with running(server):
            shown = {"excerpt": "(assert (secret))", "output": "failed at (assert (secret))"}
            store = await stored(world, a_finding(key, **shown))
            await store.put_input(key, b"(assert (secret))", "")
            await sync_all(filer(world, server, attach_input=attach), store)
        sent = server.deliveries if isinstance(server, Receiver) else server.issues
        return str(sent)

    assert "(assert (secret))" in run(text_of(True, "0" * 16))
    withheld = run(text_of(False, "1" * 16))
    assert "secret" not in withheld
    assert "failed at (input withheld)" in withheld


def test_a_long_input_is_attached_in_full(tmp_path: Path) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = GitLabIssues()

    async def work() -> None:
        async with running(server):
            store = FindingStore(world.pipeline)
            name = await store.put_input("k" * 16, b"\x01\x02" * 2_000, "")
            await stored(world, a_finding(input=name, size=4_000))
            await sync_all(filer(world, server), store)

    run(work())
    assert "<details>" in server.issues[0]["description"]
    assert "AQIBAgEC" in server.issues[0]["description"]


def test_a_webhook_is_signed_and_repeats_its_identifier(tmp_path: Path) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = Receiver()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding())
            server.lose_answer = True
            with pytest.raises(WindlassError):
                await sync_all(filer(world, server), store)
            server.lose_answer = False
            server.said = {"url": "https://tickets.example/7"}
            [filed], _ = await sync_all(filer(world, server), store)
            assert filed.issue == "https://tickets.example/7"
            assert len(server.deliveries) == 1, "the receiver knows the second by its identifier"
            await store.update(filed.key, lambda known: mark_closed(known or filed, "d" * 40, 1))
            await sync_all(filer(world, server), store)

    run(work())
    opened, closed = server.deliveries.values()
    assert (opened["event"], opened["key"], opened["private"]) == ("opened", "k" * 16, False)
    assert (closed["event"], closed["fixed_in"]) == ("closed", "d" * 40)
    assert closed["issue"] == "https://tickets.example/7"


def test_a_webhook_needs_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = Receiver()
    monkeypatch.delenv("WINDLASS_ISSUES_SECRET")

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding())
            with pytest.raises(InvalidInput, match="WINDLASS_ISSUES_SECRET"):
                await sync_all(filer(world, server), store)

    run(work())
    assert server.requests == []


def test_no_secret_is_in_a_message_or_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, clock=QuickClock())

    class Echo(GitLabIssues):
        async def handle(self, request: web.Request) -> web.StreamResponse:
            said = f"{request.headers.get('PRIVATE-TOKEN')} {request.path}"
            return web.json_response({"message": said}, status=403)

    async def work(server: TrackerServer, **more: Any) -> str:
        async with running(server):
            monkeypatch.setenv("HOOK", f"{server.address}/hooks/T0-very-secret")
            store = await stored(world, a_finding())
            with pytest.raises(WindlassError) as raised:
                await sync_all(filer(world, server, **more), store)
            return f"{raised.value} {await store.get('k' * 16)}"

    assert TOKEN not in run(work(Echo()))
    hook = Receiver()
    hook.refuse = 401
    assert "very-secret" not in run(work(hook, url="env:HOOK"))
    assert any("very-secret" in one for one in hook.requests)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"tracker": "gitlab"}, "project"),
        ({"tracker": "webhook"}, "url"),
        ({"tracker": "webhook", "url": "https://user:word@host/"}, "issues.url"),
        ({"tracker": "jira", "project": "a/b"}, "jira"),
        ({"project": "a/b", "private": ["crash"]}, "private_project"),
        ({"project": "a/b", "private": ["crush"]}, "crush"),
        ({"project": "a/b", "labels": {"crush": "x"}}, "crush"),
        ({"project": "a/b", "per_day": -1}, "per_day"),
        ({"project": "solver"}, "OWNER/NAME"),
        ({"project": "a/b/c"}, "OWNER/NAME"),
        ({"project": "a/.."}, "OWNER/NAME"),
        ({"tracker": "gitlab", "project": "solver"}, "GROUP/NAME"),
        ({"project": "a/b", "private_project": "https://github.com/a/b"}, "private_project"),
    ],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        issue_options(given)


def test_a_dry_run_says_what_would_be_filed_and_asks_nobody(tmp_path: Path) -> None:
    server = GitLabIssues()

    async def serve() -> None:
        async with running(server):
            pass

    run(serve())  # an address at which nobody listens any more
    rules = "private: [sanitizer], labels: {private: security}, attach_input: false, per_run: 1"
    more = f"issues: {{tracker: gitlab, project: group/solver, api: '{server.address}', {rules}}}"
    world = World(tmp_path, more=more)
    closed = a_finding("1" * 16, state="closed", issue=f"{server.address}/issues/7")
    run(stored(world, a_finding("0" * 16, kind="sanitizer"), closed, a_finding("2" * 16)))
    before = sorted(path.name for path in (tmp_path / "bucket").rglob("*"))
    code, out, err = Commands(world).run("findings", "file", "scripted", "--dry-run")
    assert (code, err) == (0, "")
    opening, closing, rest = out.splitlines()
    assert opening.startswith(f"would file with group/solver: {'0' * 16} scripted: assertion 0")
    assert opening.endswith("(private; labels fuzzing, severity-medium, security; input withheld)")
    assert closing.startswith(f"would close {server.address}/issues/7: {'1' * 16}")
    assert rest.startswith("would write a summary to group/solver:")
    assert sorted(path.name for path in (tmp_path / "bucket").rglob("*")) == before
