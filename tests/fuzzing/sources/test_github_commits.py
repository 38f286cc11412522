"""New commits through the GitHub API: paging, rate limits, refusals, moved and forced branches."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.fuzzing.support.github_server import PROJECT, GitHubServer, github_server
from tests.fuzzing.support.repository import Repository
from tests.store.conformance.driver import SettableClock
from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    Unreachable,
    WindlassError,
)
from windlass_fuzz.sources.github_api import GitHub, project_of
from windlass_fuzz.sources.github_commits import GitHubCommitSource

T = TypeVar("T")


class Asked:
    """A repository, the API in front of it, and a client."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.clock = SettableClock()
        self.server: GitHubServer

    @asynccontextmanager
    async def commits(self, project: str = PROJECT) -> AsyncIterator[GitHubCommitSource]:
        async with github_server(self.repository) as self.server:
            api = GitHub(self.server.address, project, "made-here", self.clock)
            commits = GitHubCommitSource(api, "main")
            try:
                yield commits
            finally:
                await commits.close()

    def ask(
        self, question: Callable[[GitHubCommitSource], Awaitable[T]], project: str = PROJECT
    ) -> T:
        async def work() -> T:
            async with self.commits(project) as commits:
                return await question(commits)

        return asyncio.run(work())


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(Repository(tmp_path / "repository"))


def test_new_commits_come_over_several_pages_oldest_first(asked: Asked) -> None:
    names = [asked.repository.commit(f"{n}.cpp") for n in range(8)]
    history = asked.ask(lambda commits: commits.since(names[0], 4))
    assert [commit.hash for commit in history.commits] == names[1:]
    assert (history.head, history.fresh) == (names[-1], "")
    assert len([r for r in asked.server.requests if "compare" in r]) == 4
    assert set(asked.server.tokens) == {"Bearer made-here"}


def test_nothing_new_is_nothing(asked: Asked) -> None:
    head = asked.repository.commit("a.cpp")
    assert asked.ask(lambda commits: commits.since(head, 4)).commits == ()


def test_what_was_merged_counts_as_its_merge(asked: Asked) -> None:
    start = asked.repository.commit("a.cpp")
    _, merge = asked.repository.merge("b.cpp")
    after = asked.repository.commit("c.cpp")
    history = asked.ask(lambda commits: commits.since(start, 4))
    assert [commit.hash for commit in history.commits] == [merge, after]
    assert asked.ask(lambda commits: commits.files(merge)) == ["b.cpp"]


def test_a_rename_tells_both_names_and_files_come_over_several_pages(asked: Asked) -> None:
    asked.repository.commit("a.cpp")
    renamed = asked.repository.rename("a.cpp", "b.txt")
    assert sorted(asked.ask(lambda commits: commits.files(renamed))) == ["a.cpp", "b.txt"]
    many = asked.repository.commit(*(f"{n}.h" for n in range(5)))
    assert len(asked.ask(lambda commits: commits.files(many))) == 5


def test_a_fresh_start_tells_the_newest_few(asked: Asked) -> None:
    names = [asked.repository.commit(f"{n}.cpp") for n in range(7)]
    history = asked.ask(lambda commits: commits.since(None, 3))
    assert [commit.hash for commit in history.commits] == names[-3:]
    assert history.fresh
    short = asked.ask(lambda commits: commits.since(None, 50))
    assert [commit.hash for commit in short.commits] == names


def test_a_forced_push_and_an_unknown_commit_start_fresh(asked: Asked) -> None:
    base = asked.repository.commit("a.cpp")
    left = asked.repository.commit("b.cpp")
    asked.repository.git("reset", "--hard", "--quiet", base)
    other = asked.repository.commit("c.cpp")
    history = asked.ask(lambda commits: commits.since(left, 1))
    assert "moved" in history.fresh
    assert [commit.hash for commit in history.commits] == [other]
    unknown = asked.ask(lambda commits: commits.since("f" * 40, 1))
    assert "no longer in the repository" in unknown.fresh


def test_a_branch_that_was_moved_back_starts_fresh(asked: Asked) -> None:
    base = asked.repository.commit("a.cpp")
    left = asked.repository.commit("b.cpp")
    asked.repository.git("reset", "--hard", "--quiet", base)
    history = asked.ask(lambda commits: commits.since(left, 1))
    assert "moved" in history.fresh
    assert history.head == base


def test_a_renamed_repository_is_followed(asked: Asked) -> None:
    head = asked.repository.commit("a.cpp")
    history = asked.ask(lambda commits: commits.since(None, 1), "old/name")
    assert history.head == head


@pytest.mark.parametrize(
    ("status", "headers", "waited_ms"),
    [
        (429, {"Retry-After": "7"}, 7_000),
        (403, {"Retry-After": "3"}, 3_000),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "SOON"}, 30_000),
        (502, {}, 1_000),
    ],
)
def test_a_server_that_asks_to_wait_is_waited_for(
    asked: Asked, status: int, headers: dict[str, str], waited_ms: int
) -> None:
    head = asked.repository.commit("a.cpp")
    began = asked.clock.now_ms()
    soon = str((began + 30_000) // 1000)
    answer = (status, {name: value.replace("SOON", soon) for name, value in headers.items()})

    async def question(commits: GitHubCommitSource) -> str:
        asked.server.script = [answer]
        return (await commits.since(None, 1)).head

    assert asked.ask(question) == head
    assert abs(asked.clock.now_ms() - began - waited_ms) < 1_000


def test_a_rate_limit_that_lasts_too_long_is_reported(asked: Asked) -> None:
    asked.repository.commit("a.cpp")

    async def question(commits: GitHubCommitSource) -> object:
        asked.server.script = [(429, {"Retry-After": "3600"})]
        return await commits.since(None, 1)

    with pytest.raises(Conflict, match="3600 s") as refused:
        asked.ask(question)
    assert refused.value.code == "rate_limited"
    assert refused.value.retry_after_ms == 3_600_000


def test_waiting_has_an_end_even_if_each_wait_is_short(asked: Asked) -> None:
    async def question(commits: GitHubCommitSource) -> object:
        asked.server.script = [(429, {"Retry-After": "50"})] * 9
        return await commits.since(None, 1)

    with pytest.raises(Conflict, match="as the test says"):
        asked.ask(question)
    assert len(asked.server.requests) == 3


def test_a_refusal_names_the_token(asked: Asked) -> None:
    async def question(commits: GitHubCommitSource) -> object:
        asked.server.script = [(403, {})]
        return await commits.since(None, 1)

    with pytest.raises(Conflict, match="GITHUB_TOKEN"):
        asked.ask(question)


def test_a_missing_branch_or_repository_says_what_to_check(asked: Asked) -> None:
    asked.repository.commit("a.cpp")
    asked.repository.git("branch", "--move", "main", "trunk")
    with pytest.raises(WindlassError, match="branch main"):
        asked.ask(lambda commits: commits.since(None, 1))
    with pytest.raises(WindlassError, match="no/where"):
        asked.ask(lambda commits: commits.since(None, 1), "no/where")


def test_an_unknown_commit_is_not_found(asked: Asked) -> None:
    known = asked.repository.commit("a.cpp")
    assert asked.ask(lambda commits: commits.resolve(known[:8])) == known
    with pytest.raises(NotFound, match="commit"):
        asked.ask(lambda commits: commits.resolve("e" * 40))


def test_a_server_that_stays_in_trouble_is_given_up(asked: Asked) -> None:
    async def question(commits: GitHubCommitSource) -> object:
        asked.server.script = [(500, {})] * 9
        return await commits.since(None, 1)

    with pytest.raises(Conflict, match="500"):
        asked.ask(question)
    assert len(asked.server.requests) == 4


def test_the_token_goes_nowhere_else(asked: Asked) -> None:
    async def question(commits: GitHubCommitSource) -> object:
        asked.server.script = [(302, {"Location": "http://127.0.0.1:9/elsewhere"})]
        return await commits.since(None, 1)

    with pytest.raises(WindlassError, match="refused to follow"):
        asked.ask(question)


def test_a_server_that_does_not_answer_is_unreachable(asked: Asked) -> None:
    async def question() -> None:
        api = GitHub("http://127.0.0.1:9", PROJECT, None, asked.clock)
        try:
            await GitHubCommitSource(api, "main").since(None, 1)
        finally:
            await api.close()

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"):
        asyncio.run(question())


def test_the_project_is_found_in_the_address() -> None:
    for address in (
        "https://github.com/owner/solver",
        "https://github.com/owner/solver.git",
        "git@github.com:owner/solver.git",
        "ssh://git@github.com/owner/solver/",
    ):
        assert project_of(address) == "owner/solver"
    with pytest.raises(InvalidInput, match=r"commits\.project"):
        project_of("solver")
