"""The manager on several branches, through git and through the GitHub API."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzzing.support.github_server import PROJECT, github_server
from tests.fuzzing.support.repository import START_S, Repository
from tests.fuzzing.support.rig import Rig
from windlass.domain.values.errors import WindlassError
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.buckets.layout import BUILDS_KEPT_MS, state_key
from windlass_fuzz.config.solver_file import CommitSettings
from windlass_fuzz.roles.fuzz_steps import FuzzSteps
from windlass_fuzz.roles.manager import Manager, ManagerReport
from windlass_fuzz.sources.branches import MAX_BRANCHES
from windlass_fuzz.sources.git_commits import GitCommitSource
from windlass_fuzz.sources.github_api import GitHub
from windlass_fuzz.sources.github_commits import GitHubCommitSource
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state import rules
from windlass_fuzz.state.documents import BuildQueue, Entry, State

BOTH = ("main", "release/*")
SETTINGS = CommitSettings(window="all")


class Watching(Rig):
    """A repository with branches, and its manager."""

    def __init__(self, folder: Path, source: str) -> None:
        super().__init__(DirectoryBucket(folder / "bucket"))
        self.folder = folder
        self.source = source
        self.repository = Repository(folder / "repository")
        self.clock.ms = START_S * 1000
        self.requests: list[str] = []

    def manage(self, *branches: str) -> ManagerReport:
        return self.run(self._manage(branches or BOTH))

    async def _manage(self, branches: tuple[str, ...]) -> ManagerReport:
        address = str(self.repository.folder)
        if self.source == "git":
            mirror = Mirror(address, self.folder / "mirror.git")
            git = GitCommitSource(mirror, branches[0], address)
            return await Manager(self.pipeline, git, SETTINGS, branches).run_once()
        async with github_server(self.repository) as server:
            self.requests = server.requests
            api = GitHub(server.address, PROJECT, "made-here", self.clock)
            commits = GitHubCommitSource(api, branches[0])
            try:
                return await Manager(self.pipeline, commits, SETTINGS, branches).run_once()
            finally:
                await commits.close()

    def build(self, *commits: str) -> None:
        """Builds what is queued, or only these commits."""
        names = commits or self.queue().queue
        self.upload(*names)
        for name in names:
            self.run(self.pipeline.queue.update(lambda q, n=name: rules.mark_built(q, n)))  # type: ignore[misc]

    def fuzz(self) -> str:
        """Fuzzes the commit that comes next."""
        steps = FuzzSteps(self.pipeline)
        held = self.run(steps.select(60_000)).held
        assert held is not None
        self.run(steps.increment(held.commit, held.token))
        return held.commit

    def queue(self) -> BuildQueue:
        return self.run(self.pipeline.queue.read())

    def state(self) -> State:
        return self.run(self.pipeline.state.read())

    def schedule(self, branch: str) -> list[str]:
        entries = self.run(self.pipeline.schedule.read())
        return [entry.hash for entry in rules.schedule_of(entries, branch)]

    def written(self, file: str) -> str:
        stored = self.run(self.bucket.get(state_key("toy", file)))
        assert stored is not None
        return stored.body.decode()


@pytest.fixture(params=["git", "github"])
def watching(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watching]:
    made = Watching(tmp_path, request.param)
    yield made
    made.close()


@pytest.fixture
def on_git(tmp_path: Path) -> Iterator[Watching]:
    made = Watching(tmp_path, "git")
    yield made
    made.close()


def test_each_branch_has_its_own_progress_and_schedule(watching: Watching) -> None:
    repository = watching.repository
    base = repository.commit("a.cpp")
    repository.branch("release/1")
    old = repository.commit("b.cpp")
    repository.switch("main")
    new = repository.commit("c.cpp")
    watching.manage()
    assert set(watching.queue().queue) == {base, old, new}
    watching.build()
    watching.manage()
    assert set(watching.schedule("main")) == {base, new}
    assert set(watching.schedule("release/1")) == {base, old}
    repository.switch("release/1")
    later = repository.commit("d.cpp")
    report = watching.manage()
    assert report.queued == (later,)
    progress = watching.state().branches
    assert {name: one.last_checked_commit for name, one in progress.items()} == {
        "main": new, "release/1": later,
    }  # fmt: skip
    assert watching.state().last_checked_commit == new


def test_a_commit_on_two_branches_is_built_once_and_counts_for_both(watching: Watching) -> None:
    shared = watching.repository.commit("a.cpp")
    watching.repository.branch("release/1")
    watching.manage()
    assert watching.queue().queue == (shared,)
    watching.build()
    watching.manage()
    assert watching.fuzz() == shared
    (entry,) = watching.run(watching.pipeline.schedule.read())
    assert (entry.hash, entry.fuzz_count) == (shared, 1)
    assert entry.branches == ("main", "release/1")


def test_a_branch_that_takes_over_built_commits_schedules_them_without_a_build(
    watching: Watching,
) -> None:
    first = watching.repository.commit("a.cpp")
    watching.repository.git("branch", "release/1")
    second = watching.repository.commit("b.cpp")
    watching.manage()
    watching.build()
    watching.manage()
    assert watching.schedule("release/1") == [first]
    watching.repository.git("branch", "--force", "release/1", "main")
    report = watching.manage()
    assert report.queued == ()
    assert watching.schedule("release/1") == [first, second]


def test_a_deleted_branch_is_said_and_no_longer_fuzzed(watching: Watching) -> None:
    base = watching.repository.commit("a.cpp")
    watching.repository.branch("release/1")
    own = watching.repository.commit("b.cpp")
    watching.manage()
    watching.build()
    watching.manage()
    watching.repository.switch("main")
    watching.repository.git("branch", "--quiet", "-D", "release/1")
    report = watching.manage()
    assert (report.gone, report.unwatched) == (("release/1",), (own,))
    assert watching.schedule("main") == [base]
    assert watching.state().branches["release/1"].gone_at_ms == watching.clock.ms
    watching.clock.ms += BUILDS_KEPT_MS
    watching.manage()
    assert list(watching.state().branches) == ["main"]


def test_a_branch_that_is_named_and_missing_is_said_and_may_come(watching: Watching) -> None:
    head = watching.repository.commit("a.cpp")
    assert watching.manage("main", "next").gone == ("next",)
    watching.repository.git("branch", "next")
    report = watching.manage("main", "next")
    assert report.gone == ()
    assert watching.state().branches["next"].last_checked_commit == head


def test_without_its_first_branch_a_run_changes_nothing(watching: Watching) -> None:
    watching.repository.commit("a.cpp")
    watching.repository.git("branch", "release/1")
    with pytest.raises(WindlassError, match="branch trunk does not exist"):
        watching.manage("trunk", "release/*")
    assert watching.queue() == BuildQueue()


def test_a_forced_push_starts_anew_on_that_branch_alone(watching: Watching) -> None:
    watching.repository.commit("a.cpp")
    watching.repository.branch("release/1")
    watching.repository.commit("b.cpp")
    watching.manage()
    watching.repository.git("reset", "--quiet", "--hard", "main")
    other = watching.repository.commit("c.cpp")
    report = watching.manage()
    said = {one.name: one.fresh for one in report.branches}
    assert said["main"] == ""
    assert "moved" in said["release/1"]
    assert report.queued == (other,)


def test_the_newest_branches_are_watched_and_the_others_are_named(watching: Watching) -> None:
    watching.repository.commit("a.cpp", at_s=START_S - 10)  # main is the oldest, and watched
    for number in range(MAX_BRANCHES + 1):
        watching.repository.branch(f"release/{number}", "main")
        watching.repository.commit(f"{number}.cpp", at_s=START_S + number)
    report = watching.manage()
    assert report.left_out == ("release/0", "release/1")
    watched = watching.state().watched
    assert (len(watched), watched[0]) == (MAX_BRANCHES, "main")
    watching.repository.switch("release/0")
    watching.repository.commit("new.cpp", at_s=START_S + 1_000)
    assert watching.manage().left_out == ("release/1", "release/2")


def test_a_quiet_repository_costs_one_page_of_requests(tmp_path: Path) -> None:
    watching = Watching(tmp_path, "github")
    first = watching.repository.commit("a.cpp")
    watching.repository.git("branch", "release/1")
    watching.manage()
    watching.manage()
    assert [one.partition("?")[0] for one in watching.requests] == [f"/repos/{PROJECT}/branches"]
    assert first in watching.queue().queue
    watching.close()


def test_each_branch_keeps_at_least_four_commits_after_quiet_days(on_git: Watching) -> None:
    base = [on_git.repository.commit(f"{number}.cpp") for number in range(4)]
    on_git.repository.branch("release/1")
    own = [on_git.repository.commit(f"r{number}.cpp") for number in range(4)]
    on_git.manage()
    on_git.build()
    on_git.manage()
    on_git.lose(*own)
    again = on_git.manage()
    assert (again.dropped, again.queued) == (tuple(own), tuple(own))
    assert on_git.schedule("release/1") == base, "what is built takes their place for now"
    on_git.build()
    on_git.manage()
    assert on_git.schedule("release/1") == base + own
    assert on_git.schedule("main") == base


def test_what_was_added_by_hand_is_scheduled_for_the_first_branch(on_git: Watching) -> None:
    on_git.repository.commit("a.cpp")
    on_git.repository.branch("topic")
    own = on_git.repository.commit("b.cpp")
    on_git.manage("main", "release/*")
    on_git.run(on_git.pipeline.queue.update(lambda queue: rules.enqueue_by_hand(queue, own)))
    on_git.build()
    on_git.manage()
    assert own in on_git.schedule("main")


def test_a_failed_build_waits_for_no_branch(on_git: Watching) -> None:
    bad = on_git.repository.commit("a.cpp")
    on_git.repository.git("branch", "release/1")
    on_git.manage()
    on_git.run(on_git.pipeline.queue.update(lambda queue: rules.mark_failed(queue, bad)))
    on_git.manage()
    assert [one.waiting for one in on_git.state().branches.values()] == [(), ()]


def test_one_branch_keeps_the_documented_form(on_git: Watching) -> None:
    head = on_git.repository.commit("a.cpp")
    on_git.manage("main")
    on_git.build()
    on_git.manage("main")
    state = json.loads(on_git.written("state.json"))
    assert (next(iter(state)), state["last_checked_commit"]) == ("last_checked_commit", head)
    assert set(state) == {"last_checked_commit", "checked_at_ms", "version"}
    assert json.loads(on_git.written("fuzzing-schedule.json")) == [{"hash": head, "fuzz_count": 0}]


def test_more_branches_take_over_the_state_of_one_and_one_that_of_many(on_git: Watching) -> None:
    repository = on_git.repository
    base = repository.commit("a.cpp")
    on_git.manage("main")
    on_git.build()
    on_git.manage("main")
    on_git.fuzz()
    repository.branch("release/1")
    own = repository.commit("b.cpp")
    assert on_git.manage().queued == (own,)
    assert on_git.schedule("main") == [base]
    on_git.build()
    on_git.manage()
    assert on_git.schedule("release/1") == [base, own]
    assert on_git.manage("release/1").unwatched == ()
    assert json.loads(on_git.written("fuzzing-schedule.json")) == [
        {"hash": base, "fuzz_count": 1}, {"hash": own, "fuzz_count": 0},
    ]  # fmt: skip
    assert "branches" not in json.loads(on_git.written("state.json"))
    assert on_git.state().last_checked_commit == own


def test_files_in_the_documented_form_are_read(on_git: Watching) -> None:
    head = on_git.repository.commit("a.cpp")
    files = {
        "state.json": {"last_checked_commit": head},
        "build-queue.json": {"queue": [], "built": [head], "failed": []},
        "fuzzing-schedule.json": [],
    }
    for name, content in files.items():
        on_git.run(on_git.bucket.put(state_key("toy", name), json.dumps(content).encode()))
    on_git.upload(head)
    on_git.manage()
    assert on_git.run(on_git.pipeline.schedule.read()) == (Entry(head, branches=("main",)),)
