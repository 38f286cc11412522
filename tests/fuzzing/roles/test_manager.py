"""The manager on real repositories: what it finds, moves and drops, and in which order."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzzing.support.repository import START_S, Repository
from tests.fuzzing.support.rig import Rig, Scripted
from windlass.domain.values.errors import Conflict, NotFound, WindlassError
from windlass_fuzz.buckets.bucket import ConcurrentWrite
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.config.solver_file import CommitSettings
from windlass_fuzz.roles.manager import Manager, ManagerReport
from windlass_fuzz.sources.git_commits import GitCommitSource
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state import rules
from windlass_fuzz.state.documents import BuildQueue, Entry

DAY_S = 86_400
USUAL = CommitSettings()
MIDNIGHT_S = START_S - START_S % DAY_S + DAY_S


class Managed(Rig):
    """A repository and its manager."""

    def __init__(self, folder: Path) -> None:
        super().__init__(DirectoryBucket(folder / "bucket"))
        self.folder = folder
        self.repository = Repository(folder / "repository")
        self.clock.ms = START_S * 1000

    def manager(self, bucket: Scripted | None = None, settings: CommitSettings = USUAL) -> Manager:
        address = str(self.repository.folder)
        mirror = Mirror(address, self.folder / "mirror.git")
        pipeline = self.pipeline if bucket is None else self.another_pipeline("two", bucket)
        return Manager(pipeline, GitCommitSource(mirror, "main", address), settings)

    def manage(self, settings: CommitSettings = USUAL) -> ManagerReport:
        return self.run(self.manager(settings=settings).run_once())

    def queue(self) -> BuildQueue:
        return self.run(self.pipeline.queue.read())

    def schedule(self) -> list[tuple[str, int]]:
        return [(e.hash, e.fuzz_count) for e in self.run(self.pipeline.schedule.read())]

    def checked(self) -> str | None:
        return self.run(self.pipeline.state.read()).last_checked_commit

    def put_built(self, *commits: str) -> None:
        def change(queue: BuildQueue) -> BuildQueue:
            return queue._replace(queue=rules.without(queue.queue, *commits), built=commits)

        self.run(self.pipeline.queue.update(change))

    def put_schedule(self, *entries: Entry) -> None:
        self.run(self.pipeline.schedule.update(lambda _: entries))


@pytest.fixture
def managed(tmp_path: Path) -> Iterator[Managed]:
    made = Managed(tmp_path)
    yield made
    made.close()


def test_new_commits_with_code_are_queued_oldest_first(managed: Managed) -> None:
    managed.repository.commit("a.cpp")
    managed.manage()
    one = managed.repository.commit("src/b.hpp")
    managed.repository.commit("README.md")
    two = managed.repository.commit("docs/x.md", "src/c.cc")
    report = managed.manage()
    assert report.queued == (one, two)
    assert managed.queue().queue[-2:] == (one, two)
    assert managed.checked() == two


def test_a_second_run_finds_nothing_new(managed: Managed) -> None:
    managed.repository.commit("a.cpp")
    managed.manage()
    before = managed.queue()
    assert managed.manage() == ManagerReport(head=managed.checked() or "")
    assert managed.queue() == before


def test_a_fresh_start_takes_the_newest_few(managed: Managed) -> None:
    commits = [managed.repository.commit(f"{n}.c") for n in range(6)]
    report = managed.manage(CommitSettings(fresh=3))
    assert report.queued == tuple(commits[-3:])
    assert report.fresh


def test_a_rename_out_of_code_or_into_it_counts_as_code(managed: Managed) -> None:
    managed.repository.commit("a.cpp", "b.txt", "c.txt")
    managed.manage()
    away = managed.repository.rename("a.cpp", "a.txt")
    plain = managed.repository.rename("b.txt", "d.txt")
    into = managed.repository.rename("c.txt", "c.cpp")
    assert managed.manage().queued == (away, into)
    assert plain not in managed.queue().queue


def test_what_was_merged_counts_as_its_merge(managed: Managed) -> None:
    managed.repository.commit("a.cpp")
    managed.manage()
    inner, merge = managed.repository.merge("b.cpp")
    assert managed.manage().queued == (merge,)
    assert inner not in managed.queue().queue


def test_a_forced_push_starts_from_the_newest_few(managed: Managed) -> None:
    base = managed.repository.commit("a.cpp")
    managed.repository.commit("b.cpp")
    managed.manage()
    managed.repository.git("reset", "--hard", "--quiet", base)
    other = managed.repository.commit("c.cpp")
    report = managed.manage(CommitSettings(fresh=1))
    assert "moved" in report.fresh
    assert report.queued == (other,)
    assert managed.checked() == other


def test_an_unknown_last_commit_starts_from_the_newest_few(managed: Managed) -> None:
    newest = managed.repository.commit("a.cpp")
    unknown = "f" * 40
    managed.run(managed.pipeline.state.update(lambda s: s._replace(last_checked_commit=unknown)))
    report = managed.manage()
    assert "no longer in the repository" in report.fresh
    assert managed.checked() == newest


def test_commits_around_midnight_are_not_lost(managed: Managed) -> None:
    managed.repository.commit("a.cpp", at_s=MIDNIGHT_S - 3600)
    managed.clock.ms = (MIDNIGHT_S - 600) * 1000
    managed.manage()
    before = managed.repository.commit("b.cpp", at_s=MIDNIGHT_S - 60)
    after = managed.repository.commit("c.cpp", at_s=MIDNIGHT_S + 60)
    managed.clock.ms = (MIDNIGHT_S + 900) * 1000
    assert managed.manage().queued == (before, after)
    # Made before midnight, pushed after it and after the first look of the day.
    late = managed.repository.commit("d.cpp", at_s=MIDNIGHT_S - 30)
    managed.clock.ms = (MIDNIGHT_S + 1800) * 1000
    assert managed.manage().queued == (late,)


def test_a_manager_that_stood_still_for_days_loses_nothing(managed: Managed) -> None:
    managed.repository.commit("a.cpp")
    managed.manage()
    commits = [managed.repository.commit(f"{n}.c", at_s=START_S + n * DAY_S) for n in range(1, 4)]
    managed.clock.ms = (START_S + 4 * DAY_S) * 1000
    assert managed.manage().queued == tuple(commits)


def test_old_commits_that_arrive_today_are_passed_over_unless_all_are_wanted(
    managed: Managed,
) -> None:
    managed.repository.commit("a.cpp")
    managed.manage()
    old = managed.repository.commit("b.cpp", at_s=START_S - 30 * DAY_S)
    new = managed.repository.commit("c.cpp", at_s=START_S + 60)
    assert managed.manage(CommitSettings(window="all")).queued == (old, new)

    second = managed.repository.commit("d.cpp", at_s=START_S - 20 * DAY_S)
    report = managed.manage()
    assert (report.queued, report.passed_over) == ((), (second,))


def test_built_commits_with_both_binaries_move_to_the_schedule(managed: Managed) -> None:
    managed.repository.commit("README.md")
    managed.put_built("c1")
    managed.upload("c1")
    assert managed.manage().scheduled == ("c1",)
    assert managed.schedule() == [("c1", 0)]
    assert managed.queue().built == ()


def test_built_commits_without_binaries_are_dropped(managed: Managed) -> None:
    managed.repository.commit("README.md")
    managed.put_built("c1")
    assert managed.manage().dropped == ("c1",)
    assert (managed.schedule(), managed.queue().built) == ([], ())


def test_scheduled_commits_whose_binaries_are_gone_are_dropped(managed: Managed) -> None:
    managed.repository.commit("README.md")
    managed.put_schedule(Entry("c1", 1), Entry("c2"))
    managed.upload("c2")
    assert managed.manage().dropped == ("c1",)
    assert managed.schedule() == [("c2", 0)]


def test_for_each_new_one_the_oldest_fuzzed_goes(managed: Managed) -> None:
    managed.repository.commit("README.md")
    managed.put_schedule(Entry("c1"), Entry("c2", 1), Entry("c3", 2), Entry("c4", 1))
    managed.put_built("c5", "c6")
    managed.upload("c1", "c2", "c3", "c4", "c5", "c6")
    report = managed.manage()
    assert report.made_room == ("c2", "c3")
    assert managed.schedule() == [("c1", 0), ("c4", 1), ("c5", 0), ("c6", 0)]


def test_how_far_it_looked_is_noted_after_all_else(managed: Managed) -> None:
    """A run that could not write the schedule has not checked anything."""
    managed.repository.commit("a.cpp")
    managed.manage()
    before = managed.checked()
    new = managed.repository.commit("b.cpp")
    managed.put_built("c1")
    managed.upload("c1")
    troubled = Scripted(managed.bucket, None, *[ConcurrentWrite("409")] * 4)
    with pytest.raises(Conflict, match="fuzzing-schedule"):
        managed.run(managed.manager(troubled).run_once())
    assert managed.checked() == before
    assert new in managed.queue().queue
    managed.manage()
    assert managed.checked() == new
    assert managed.queue().queue.count(new) == 1
    assert managed.schedule() == [("c1", 0)]


def test_a_slow_manager_does_not_take_back_what_a_faster_one_noted(managed: Managed) -> None:
    managed.repository.commit("a.cpp")
    managed.manage()
    managed.repository.commit("b.cpp")

    async def faster() -> None:
        managed.repository.commit("c.cpp")
        await managed.manager().run_once()

    slow = Scripted(managed.bucket, faster)
    managed.run(managed.manager(slow).run_once())
    assert managed.checked() == managed.repository.git("rev-parse", "main")
    assert len(managed.queue().queue) == 3


def test_a_commit_by_hand_is_queued_whatever_it_changes(managed: Managed) -> None:
    plain = managed.repository.commit("README.md")
    name, added = managed.run(managed.manager().add(plain[:10]))
    assert (name, added) == (plain, True)
    assert managed.queue().queue == (plain,)


def test_a_commit_by_hand_leaves_failed(managed: Managed) -> None:
    commit = managed.repository.commit("a.cpp")
    managed.run(managed.pipeline.queue.update(lambda queue: queue._replace(failed=(commit,))))
    managed.run(managed.manager().add(commit))
    assert (managed.queue().queue, managed.queue().failed) == ((commit,), ())


def test_an_unknown_commit_by_hand_changes_nothing(managed: Managed) -> None:
    managed.repository.commit("a.cpp")
    with pytest.raises(NotFound, match="commit"):
        managed.run(managed.manager().add("e" * 40))
    assert managed.queue() == BuildQueue()


def test_a_deleted_branch_is_an_error_and_the_state_is_unharmed(managed: Managed) -> None:
    managed.repository.commit("a.cpp")
    managed.manage()
    before = managed.queue(), managed.checked()
    managed.repository.git("branch", "--move", "main", "trunk")
    with pytest.raises(WindlassError, match="branch main"):
        managed.manage()
    assert (managed.queue(), managed.checked()) == before
    managed.repository.git("branch", "--move", "trunk", "main")
    managed.repository.commit("b.cpp")
    assert len(managed.manage().queued) == 1


def test_a_missing_repository_is_an_error(managed: Managed) -> None:
    shutil.rmtree(managed.repository.folder)
    with pytest.raises(WindlassError, match="repository"):
        managed.manage()


def test_a_shallow_clone_that_ends_before_the_last_commit_says_so(managed: Managed) -> None:
    managed.repository.commit("a.cpp")
    managed.manage()
    for n in range(3):
        managed.repository.commit(f"{n}.cpp")
    shallow = managed.folder / "shallow"
    address = f"file://{managed.repository.folder}"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", address, shallow], check=True)
    mirror = Mirror(f"file://{shallow}", managed.folder / "other.git")
    source = GitCommitSource(mirror, "main", str(shallow))
    manager = Manager(managed.pipeline, source, CommitSettings())
    before = managed.checked()
    with pytest.raises(WindlassError, match="shallow"):
        managed.run(manager.run_once())
    assert managed.checked() == before


def test_after_quiet_days_the_newest_commits_are_built_again(managed: Managed) -> None:
    commits = [managed.repository.commit("a.c") for _ in range(6)]
    managed.manage(CommitSettings(window="all", fresh=6))
    managed.run(managed.pipeline.queue.update(lambda queue: queue._replace(queue=())))
    managed.put_schedule(*(Entry(commit, 1) for commit in commits[2:]))
    managed.upload(commits[5])
    assert managed.manage().queued == tuple(commits[2:5])
    assert managed.queue().queue == tuple(commits[2:5])
    assert managed.schedule() == [(commits[5], 1)]
    assert managed.manage().queued == (), "they are queued once"


def test_the_schedule_is_in_the_order_of_history_whatever_was_built_first(
    managed: Managed,
) -> None:
    commits = [managed.repository.commit("a.c") for _ in range(3)]
    managed.manage()
    for number in (2, 1, 0):  # three builders; the newest commit was built first
        managed.put_built(commits[number])
        managed.upload(commits[number])
        managed.manage()
    assert managed.schedule() == [(commit, 0) for commit in commits]
    assert managed.run(managed.pipeline.fuzzing_order()) == commits


def test_a_clock_that_was_wrong_does_not_change_the_order(managed: Managed) -> None:
    commits = [managed.repository.commit("a.c", at_s=START_S - n * 60) for n in range(3)]
    managed.manage()
    managed.put_built(*reversed(commits))
    managed.upload(*commits)
    managed.manage()
    assert managed.schedule() == [(commit, 0) for commit in commits]


def test_a_commit_that_was_merged_comes_before_its_merge(managed: Managed) -> None:
    managed.repository.commit("a.c")
    inner, merge = managed.repository.merge("b.c")
    last = managed.repository.commit("c.c")
    managed.manage()
    managed.put_built(last, inner, merge)
    managed.upload(last, inner, merge)
    managed.manage()
    assert managed.schedule() == [(inner, 0), (merge, 0), (last, 0)]


def test_after_a_loss_built_commits_fill_the_schedule_at_once(managed: Managed) -> None:
    commits = [managed.repository.commit("a.c") for _ in range(7)]
    managed.manage(CommitSettings(window="all", fresh=7))
    managed.run(managed.pipeline.queue.update(lambda queue: queue._replace(queue=())))
    managed.upload(*commits)
    managed.put_schedule(*(Entry(commit, 1) for commit in commits[3:]))
    managed.lose(commits[4], commits[5])
    new = managed.repository.commit("b.c")
    report = managed.manage()
    assert (report.dropped, report.queued) == ((commits[4], commits[5]), (new,))
    assert managed.schedule() == [
        (commits[1], 0), (commits[2], 0), (commits[3], 1), (commits[6], 1),
    ], "the newest that are built, although a commit waits for its build"  # fmt: skip


def test_commits_that_were_passed_over_do_not_come_back(managed: Managed) -> None:
    managed.repository.commit("a.c")
    managed.manage()
    managed.run(managed.pipeline.queue.update(lambda queue: queue._replace(queue=(), seen=())))
    assert managed.manage().queued == ()
