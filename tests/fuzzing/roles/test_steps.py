"""The steps of builders and fuzzers: who gets which commit, and what happens if one dies."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzzing.support.rig import KINDS_OF_BUCKETS, Rig, Scripted, open_bucket
from windlass.domain.values.errors import Conflict
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.buckets.layout import build_key, build_log_key
from windlass_fuzz.roles.build_steps import BuildSteps
from windlass_fuzz.roles.fuzz_steps import CountResult, FuzzSteps
from windlass_fuzz.state.documents import BuildQueue, Entry, Lease
from windlass_fuzz.state.leases import is_live, process_name

HOUR_MS = 3_600_000


class Stepped(Rig):
    """A queue and a schedule, and several workers."""

    def builder(self, name: str = "one", tries: int = 3) -> BuildSteps:
        return BuildSteps(self.another_pipeline(name), tries)

    def fuzzer(self, name: str = "one") -> FuzzSteps:
        return FuzzSteps(self.another_pipeline(name))

    def put_queue(self, *commits: str) -> None:
        self.run(self.pipeline.queue.update(lambda queue: queue._replace(queue=commits)))

    def put_schedule(self, *entries: Entry) -> None:
        self.run(self.pipeline.schedule.update(lambda _: entries))
        self.upload(*(entry.hash for entry in entries))

    def queue(self) -> BuildQueue:
        return self.run(self.pipeline.queue.read())

    def schedule(self) -> list[tuple[str, int]]:
        return [(e.hash, e.fuzz_count) for e in self.run(self.pipeline.schedule.read())]

    def take(self, name: str = "one", commit: str | None = None) -> str | None:
        held = self.run(self.builder(name).take(HOUR_MS, commit)).held
        return None if held is None else held.commit

    def select(self, name: str = "one", commit: str | None = None) -> str | None:
        held = self.run(self.fuzzer(name).select(HOUR_MS, commit)).held
        return None if held is None else held.commit


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Stepped]:
    made = Stepped(DirectoryBucket(tmp_path / "bucket"))
    yield made
    made.close()


@pytest.fixture(params=KINDS_OF_BUCKETS)
def each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stepped]:
    made = Stepped(open_bucket(request.param, request, tmp_path), request.param)
    yield made
    made.close()


def test_a_builder_takes_the_first_of_the_queue(each: Stepped) -> None:
    each.put_queue("c1", "c2")
    assert each.take() == "c1"


def test_a_commit_stays_in_the_queue_until_its_build_ends(rig: Stepped) -> None:
    rig.put_queue("c1")
    rig.take()
    assert rig.queue().queue == ("c1",)


def test_two_builders_never_take_the_same_commit(each: Stepped) -> None:
    each.put_queue("c1", "c2")
    assert [each.take("one"), each.take("two"), each.take("three")] == ["c1", "c2", None]


def test_a_crashed_build_is_taken_again(rig: Stepped) -> None:
    rig.put_queue("c1", "c2")
    assert rig.take("crashes") == "c1"
    rig.clock.ms += HOUR_MS + 1
    assert rig.take("next") == "c1"


def test_after_a_limit_a_crashing_build_has_failed_and_the_log_says_why(rig: Stepped) -> None:
    rig.put_queue("c1", "c2")
    for _ in range(3):
        assert rig.take("crashes") == "c1"
        rig.clock.ms += HOUR_MS + 1
    took = rig.run(rig.builder().take(HOUR_MS))
    assert took.given_up == ("c1",)
    assert took.held is not None
    assert took.held.commit == "c2"
    assert (rig.queue().queue, rig.queue().failed) == (("c2",), ("c1",))
    log = rig.run(rig.bucket.get(build_log_key("toy", "c1")))
    assert log is not None
    assert b"3 times" in log.body


def test_a_commit_taken_by_name_does_not_forgive_the_crashes_of_others(rig: Stepped) -> None:
    rig.put_queue("c1", "c2")
    for _ in range(3):
        assert rig.take("crashes") == "c1"
        rig.clock.ms += HOUR_MS + 1
    assert rig.run(rig.builder().take(HOUR_MS, "c2")).held
    assert rig.run(rig.builder().take(HOUR_MS)).given_up == ("c1",)


def test_a_retried_commit_starts_with_no_tries(rig: Stepped) -> None:
    rig.put_queue("c1")
    for _ in range(3):
        rig.take("crashes")
        rig.clock.ms += HOUR_MS + 1
    rig.take("gives up")
    assert rig.queue().failed == ("c1",)
    rig.run(rig.builder().add("c1"))
    assert rig.take() == "c1"


def test_a_commit_is_built_only_once_both_binaries_are_there(rig: Stepped) -> None:
    rig.put_queue("c1")
    held = rig.run(rig.builder().take(HOUR_MS)).held
    assert held is not None
    rig.run(rig.bucket.put(build_key("toy", "production", "c1"), b"binary"))
    with pytest.raises(Conflict, match="a binary of"):
        rig.run(rig.builder().mark_built("c1", held.token))
    assert rig.queue().queue == ("c1",)
    rig.run(rig.bucket.put(build_key("toy", "coverage", "c1"), b"binary"))
    assert rig.run(rig.builder().mark_built("c1", held.token))
    assert (rig.queue().queue, rig.queue().built) == ((), ("c1",))


def test_a_failed_build_moves_the_commit_to_failed(rig: Stepped) -> None:
    rig.put_queue("c1")
    held = rig.run(rig.builder().take(HOUR_MS)).held
    assert held is not None
    assert rig.run(rig.builder().mark_failed("c1", held.token))
    assert (rig.queue().queue, rig.queue().failed) == ((), ("c1",))
    assert not rig.run(rig.builder().mark_failed("c1", held.token))


def test_a_builder_that_lost_its_lease_marks_nothing(rig: Stepped) -> None:
    rig.put_queue("c1")
    slow = rig.run(rig.builder("slow").take(HOUR_MS)).held
    assert slow is not None
    rig.clock.ms += HOUR_MS + 1
    assert rig.take("other") == "c1"
    rig.upload("c1")
    for mark in (rig.builder("slow").mark_built, rig.builder("slow").mark_failed):
        with pytest.raises(Conflict, match="other"):
            rig.run(mark("c1", slow.token))
    with pytest.raises(Conflict, match="other"):
        rig.run(rig.builder("slow").renew(slow, HOUR_MS))
    assert rig.queue().queue == ("c1",)


def test_a_renewed_lease_is_not_given_away(rig: Stepped) -> None:
    rig.put_queue("c1")
    builder = rig.builder("slow")
    held = rig.run(builder.take(HOUR_MS)).held
    assert held is not None
    rig.clock.ms += HOUR_MS - 1
    rig.run(builder.renew(held, HOUR_MS))
    rig.clock.ms += 2
    assert rig.take("other") is None


def test_a_commit_that_others_finished_meanwhile_is_not_taken(rig: Stepped) -> None:
    """The queue was read, then another builder finished, and then the lease was taken."""
    rig.put_queue("c1", "c2")
    rig.upload("c1")

    async def finish() -> None:
        other = BuildSteps(rig.another_pipeline("other"))
        held = (await other.take(HOUR_MS)).held
        assert held is not None
        await other.mark_built(held.commit, held.token)

    late = BuildSteps(rig.another_pipeline("late", Scripted(rig.bucket, finish)))
    held = rig.run(late.take(HOUR_MS)).held
    assert held is not None
    assert held.commit == "c2"


def test_a_commit_by_hand_is_built_in_this_run(rig: Stepped) -> None:
    rig.put_queue("c1")
    rig.run(rig.builder().add("c9"))
    assert rig.take(commit="c9") == "c9"


def test_two_fuzzers_take_different_commits(each: Stepped) -> None:
    each.put_schedule(Entry("c1"), Entry("c2"), Entry("c3", 1))
    assert [each.select(name) for name in ("1", "2", "3", "4")] == ["c1", "c2", "c3", None]


def test_a_commit_without_a_binary_leaves_the_schedule_and_the_next_is_taken(
    each: Stepped,
) -> None:
    each.put_schedule(Entry("c1"), Entry("c2"), Entry("c3"))
    each.lose("c1", "c2")
    selected = each.run(each.fuzzer().select(HOUR_MS))
    assert selected.removed == ("c1", "c2")
    assert selected.held is not None
    assert selected.held.commit == "c3"
    assert each.schedule() == [("c3", 0)]


def test_fuzzing_is_counted_and_the_lease_given_back(each: Stepped) -> None:
    each.put_schedule(Entry("c1"))
    held = each.run(each.fuzzer().select(HOUR_MS)).held
    assert held is not None
    assert each.run(each.fuzzer().increment("c1", held.token)) == CountResult(True, 1)
    assert each.select("again") == "c1"


def test_the_removal_rule_is_applied_when_it_is_counted(rig: Stepped) -> None:
    rig.put_schedule(*(Entry(f"c{n}") for n in range(5)))
    held = rig.run(rig.fuzzer().select(HOUR_MS)).held
    assert held is not None
    assert rig.run(rig.fuzzer().increment("c0", held.token)) == CountResult(True, None)
    assert [commit for commit, _ in rig.schedule()] == ["c1", "c2", "c3", "c4"]


def test_the_same_run_is_not_counted_twice(rig: Stepped) -> None:
    rig.put_schedule(Entry("c1"))
    held = rig.run(rig.fuzzer().select(HOUR_MS)).held
    assert held is not None
    rig.run(rig.fuzzer().increment("c1", held.token))
    with pytest.raises(Conflict, match="nobody"):
        rig.run(rig.fuzzer().increment("c1", held.token))
    assert rig.schedule() == [("c1", 1)]


def test_a_run_that_failed_to_fuzz_does_not_count(rig: Stepped) -> None:
    rig.put_schedule(Entry("c1"))
    held = rig.run(rig.fuzzer().select(HOUR_MS)).held
    assert held is not None
    rig.run(rig.fuzzer().release(held))
    assert rig.schedule() == [("c1", 0)]
    assert rig.select("next") == "c1"


def test_a_crashed_fuzzer_gives_way_after_its_lease(rig: Stepped) -> None:
    rig.put_schedule(Entry("c1"))
    assert rig.select("crashes") == "c1"
    assert rig.select("next") is None
    rig.clock.ms += HOUR_MS + 1
    assert rig.select("next") == "c1"


def test_a_commit_by_hand_is_fuzzed_in_this_run_if_its_binary_exists(rig: Stepped) -> None:
    rig.put_schedule(Entry("c1"))
    rig.run(rig.fuzzer().add("c9"))
    rig.upload("c9")
    assert rig.select(commit="c9") == "c9"
    assert rig.schedule() == [("c1", 0), ("c9", 0)]
    rig.run(rig.fuzzer().add("c8"))
    assert rig.select(commit="c8") is None
    assert rig.schedule() == [("c1", 0), ("c9", 0)]


def test_a_lease_ends_with_its_process_and_is_fenced(rig: Stepped) -> None:
    rig.put_queue("c1")
    rig.put_schedule(Entry("c9"))
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as worker:
        name = process_name(worker.pid)
        building = BuildSteps(rig.another_pipeline("killed"), process=name)
        fuzzing = FuzzSteps(rig.another_pipeline("killed"), process=name)
        build, fuzz = rig.run(building.take(HOUR_MS)).held, rig.run(fuzzing.select(HOUR_MS)).held
        assert build is not None
        assert fuzz is not None
        assert (rig.take("two"), rig.select("two")) == (None, None), "it still runs"
        rig.run(building.renew(build, HOUR_MS))
        worker.kill()
        worker.wait()
    assert (rig.take("two"), rig.select("two")) == ("c1", "c9")
    with pytest.raises(Conflict, match="two holds it"):
        rig.run(building.renew(build, HOUR_MS))
    with pytest.raises(Conflict, match="two holds it"):
        rig.run(fuzzing.increment("c9", fuzz.token))


def test_a_process_of_another_machine_never_counts_as_gone() -> None:
    boot, space, number, start = process_name(1).split()
    for process in (f"other {space} 99999999 1", f"{boot} 1 99999999 1", ""):
        assert is_live(Lease("a", "t", 1, process=process), 0)
    assert is_live(Lease("a", "t", 1, process=f"{boot} {space} {number} {start}"), 0)
    for process in (f"{boot} {space} 99999999 1", f"{boot} {space} {number} {int(start) + 1}"):
        assert not is_live(Lease("a", "t", 1, process=process), 0)
