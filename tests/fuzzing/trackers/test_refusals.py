"""What a tracker refuses: a message says what it said and what to check, and others are filed."""

import asyncio
import sys
from asyncio.subprocess import PIPE
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
from tests.fuzzing.trackers.test_trackers import filer, settings, stored, sync_all
from tests.support.running import run
from windlass.domain.values.errors import Unreachable
from windlass_fuzz.findings.record import OnBranch
from windlass_fuzz.trackers.issue_text import MAX_BODY, summary_of, text_of
from windlass_fuzz.trackers.options import IssueOptions

SERVERS = (GitHubIssues, GitLabIssues, Receiver)
TOO_LONG = {"message": "Validation Failed", "errors": [{"field": "body", "message": "too long"}]}


@pytest.fixture(autouse=True)
def tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_TOKEN", "glpat-made-up-token")
    monkeypatch.setenv("GITHUB_TOKEN", "ghp-made-up-token")
    monkeypatch.setenv("WINDLASS_ISSUES_SECRET", SECRET)


def refuse(server: TrackerServer, status: int, answer: Any, about: str) -> None:
    """Lets a server refuse requests whose address or text contains a word."""
    plain = server.answer

    async def answered(request: web.Request) -> web.Response:
        said = f"{request.rel_url} {await request.text()}"
        return web.json_response(answer, status=status) if about in said else await plain(request)

    server.answer = answered  # type: ignore[method-assign]


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize("make", SERVERS)
def test_a_project_that_cannot_be_seen_is_named_with_what_to_check(
    tmp_path: Path, make: type[TrackerServer], status: int
) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = make()
    refuse(server, status, {"message": "Issues are switched off"}, "")

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding())
            filing = filer(world, server)
            settled, (said,) = await sync_all(filing, store)
            assert (settled, filing.refused) == ([], ["k" * 16])
            assert f"answered {status} to " in said
            assert "Issues are switched off; check " in said
            check = "issues.url" if isinstance(server, Receiver) else "_TOKEN"
            assert said.endswith(check)

    run(work())


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("make", SERVERS)
def test_a_finding_that_is_not_accepted_does_not_stop_the_others(
    tmp_path: Path, make: type[TrackerServer], status: int
) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = make()
    refuse(server, status, TOO_LONG, "unwanted")

    async def work() -> None:
        async with running(server):
            bad, good = a_finding("0" * 16, title="unwanted"), a_finding("1" * 16)
            store = await stored(world, bad, good)
            settled, (said,) = await sync_all(filer(world, server), store)
            assert [one.key for one in settled] == [good.key]
            assert said.startswith(f"{bad.key} was not filed: ")
            assert f"{status} to " in said
            assert said.endswith(": Validation Failed; too long")

    run(work())


def test_public_findings_are_filed_if_the_private_project_is_missing(tmp_path: Path) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = GitHubIssues()
    refuse(server, 404, {"message": "Not Found"}, "owner/secret")
    rules = {"private": ["sanitizer"], "private_project": "owner/secret"}

    async def work() -> None:
        async with running(server):
            secret, public = a_finding("0" * 16, kind="sanitizer"), a_finding("1" * 16)
            store = await stored(world, secret, public)
            settled, (said,) = await sync_all(filer(world, server, **rules), store)
            assert [one.key for one in settled] == [public.key]
            assert "check the name owner/secret" in said

    run(work())


def test_the_command_exits_with_1_if_something_was_not_filed(tmp_path: Path) -> None:
    world = World(tmp_path)
    server = GitHubIssues()
    refuse(server, 422, TOO_LONG, "unwanted")

    async def work() -> tuple[int, str, str]:
        async with running(server):
            await stored(world, a_finding("0" * 16, title="unwanted"), a_finding("1" * 16))
            given = settings(server)
            world.more = f"issues: {{project: {given['project']}, api: '{given['api']}'}}"
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "windlass", "fuzz", "findings", "file", "scripted",
                cwd=tmp_path, env=Commands(world).env, stdout=PIPE, stderr=PIPE,
            )  # fmt: skip
            said, complained = await process.communicate()
            return process.returncode or 0, said.decode(), complained.decode()

    code, said, complained = run(work())
    assert (code, "1" * 16 in said, "0" * 16 in complained) == (1, True, True)


def test_an_issue_is_never_longer_than_a_tracker_takes() -> None:
    options = IssueOptions(project="a/b")
    finding = a_finding(title="t" * 400, output="\u202e" * 8_000, size=24_000)
    issue = text_of(finding, "s" * 60, "where", options, b"\x00" * 24_000)
    assert len(issue.body) <= MAX_BODY
    assert issue.body.endswith(f"\n{issue.mark}\n")
    assert len(issue.title) <= 250
    many = [
        a_finding(f"{n:016}", title="t" * 200, branches=[
            OnBranch(name=f"release/{'x' * 80}/{m}") for m in range(20)
        ])
        for n in range(100)
    ]  # fmt: skip
    listed = summary_of(many, "toy", "today", options)
    assert len(listed.body) <= MAX_BODY
    shown = listed.body.count("\n- 0")
    assert f"\n- and {100 - shown} more\n" in listed.body


def test_a_server_that_is_away_is_named_in_plain_words(tmp_path: Path) -> None:
    world = World(tmp_path, clock=QuickClock())
    server = GitHubIssues()

    async def work() -> None:
        async with running(server):
            store = await stored(world, a_finding())
        with pytest.raises(Unreachable) as raised:
            await sync_all(filer(world, server), store)
        said = f"no answer from {server.address}: Connection refused; try again later"
        assert str(raised.value) == said

    run(work())
