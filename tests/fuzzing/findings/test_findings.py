"""Finding records after repeated sightings, and bisection over builds."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fuzzing.histories.planted import History as Planted
from tests.fuzzing.histories.planted import PlantedWorld, Step, program
from tests.fuzzing.support.scripted_solver import World
from tests.fuzzing.trackers.servers import a_finding
from tests.support.running import run
from windlass.domain.values.errors import NotFound
from windlass_fuzz.buckets.layout import build_key
from windlass_fuzz.builds.archive import BuildMetadata, pack
from windlass_fuzz.builds.build_cache import BuildCache, LocalBuild
from windlass_fuzz.config.finding_settings import ALWAYS
from windlass_fuzz.engines.engine import Verdict
from windlass_fuzz.engines.signature import Signature
from windlass_fuzz.findings.bisect import Bisector, Question
from windlass_fuzz.findings.judge import Judge, tries_for
from windlass_fuzz.findings.known import Catalogue
from windlass_fuzz.findings.record import LATE, Origin, excerpt_of, shorten
from windlass_fuzz.findings.report import render
from windlass_fuzz.findings.sightings import mark_closed, release, seen_again, with_origin
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.sources.mirror import Mirror


def test_the_smallest_input_stands_for_all_and_none_that_fails_is_lost() -> None:
    known = seen_again(None, a_finding(size=10, input="ten", found_in="a" * 40))
    larger = seen_again(known, a_finding(size=20, input="twenty", found_in="b" * 40))
    assert (larger.input, larger.times, larger.seen_in) == ("ten", 2, ["a" * 40, "b" * 40])
    smaller = seen_again(larger, a_finding(size=5, input="five", found_in="a" * 40))
    assert (smaller.input, smaller.seen_in) == ("five", ["b" * 40, "a" * 40])
    assert [one.name for one in smaller.inputs] == ["five", "ten", "twenty"]


def test_of_many_inputs_those_that_differ_and_fail_stay() -> None:
    known = seen_again(None, a_finding(size=1, input="fine"))
    fine = msgspec.structs.replace(known.inputs[0], checked="fine", checked_in="b" * 40)
    known = msgspec.structs.replace(known, inputs=[fine])
    for size in range(2, 9):
        known = seen_again(known, a_finding(size=size, input=f"same-{size}"), limit=4)
    other = a_finding(size=99, input="other", title="another stack")
    known = seen_again(known, other, limit=4)
    assert [one.name for one in known.inputs] == ["same-2", "other", "same-3", "same-4"]
    assert (known.input, "another stack" in known.names) == ("same-2", True)


def test_a_report_shows_input_and_output_of_one_run(tmp_path: Path) -> None:
    prints = program(
        "  parse();",
        'static void parse(void) { fprintf(stderr, "read %s\\n", text); assert(!has("X")); }',
    )
    planted = PlantedWorld(tmp_path, Planted("prints", {"bug": prints}, (), ()))

    async def search() -> None:
        await planted.fuzz(Step("bug", ("some long X",)))
        (found,) = await planted.findings()
        page = render(found, "scripted", "there")
        assert (found.excerpt, "read X\n" in found.output) == ("X", True)
        assert "some long X" not in page
        assert f"Output of {found.input} with the build of {planted.names['bug'][:12]}" in page
        # The commit that showed a smaller input later is the one to run it with.
        other = msgspec.structs.replace(
            found, input="small", size=0, output_of="small", output_in="e" * 40, found_in="e" * 40,
            inputs=[],
        )  # fmt: skip
        assert f"build of `{'e' * 12}`" in render(seen_again(found, other), "scripted", "there")

    run(search())


def test_an_origin_is_one_search_and_each_time_has_its_own() -> None:
    known = seen_again(None, a_finding())
    known = with_origin(known, Origin(first_bad="a" * 40, last_good="9" * 40))
    known = mark_closed(known, "d" * 40, 5)
    assert known.origins[0].gone_in == "d" * 40
    again = with_origin(seen_again(known, a_finding()), Origin(first_bad="f" * 40))
    assert (again.introduced_by, again.last_good) == ("f" * 40, None)
    assert [one.first_bad[0] for one in again.origins] == ["a", "f"]


def test_a_finding_shares_no_frames_with_itself() -> None:
    known = Catalogue()
    known.put(a_finding("first", frames=["parse"]))
    known.put(a_finding("second", frames=["parse"], group="first"))
    assert known.group_of("first", ("parse",)) == ""
    assert known.group_of("third", ("parse",)) == "first"


def test_a_timeout_in_the_function_of_a_live_hang_is_that_hang() -> None:
    title = "does not end in loop < parse"
    known, hang = Catalogue(), a_finding("hang", kind="hang", title=title, frames=["loop", "parse"])
    known.put(a_finding("crash", title="SIGSEGV in loop < parse"))
    assert known.hang_in(("loop", "other")) is None, "a crash is no hang"
    known.put(hang)
    assert known.hang_in(("loop", "other")) == Signature("hang", title, ("loop", "parse"), "stack")
    assert known.hang_in(("called", "loop")) is None, "it may be another one"
    assert known.hang_in(()) is None
    known.put(mark_closed(hang, "d" * 40, 5))
    assert known.hang_in(("loop", "other")) is None


def test_inputs_that_time_out_wait_for_hangs_and_not_for_crashes() -> None:
    known = Catalogue(waiting=[Signature("timeout", "needs too much time")])
    assert known.may_wait(a_finding(kind="hang", title="does not end in loop"))
    assert not known.may_wait(a_finding(kind="crash", title="SIGSEGV in loop"))
    known.unseen = True
    assert known.may_wait(a_finding(kind="crash", title="SIGSEGV in loop"))


def test_a_finding_that_comes_back_too_often_is_set_aside() -> None:
    known = seen_again(None, a_finding())
    for _ in range(5):
        known = seen_again(mark_closed(known, "d" * 40, 5), a_finding())
    assert (known.state, known.note) == ("quarantined", "it came back 5 times")
    assert release(known).state == "open"


def test_a_finding_that_fails_sometimes_is_flaky_until_an_input_always_fails() -> None:
    known = seen_again(None, a_finding(shown=2, tried=5))
    assert known.state == "flaky"
    assert seen_again(known, a_finding(shown=5, tried=5, input="sure")).state == "open"
    assert tries_for(5, 5, 3) == 3
    assert tries_for(1, 5, 3) == 100
    assert tries_for(100, 500, 3) < 50


def test_closing_twice_keeps_the_first_time() -> None:
    once = mark_closed(a_finding(), "d" * 40, 5)
    assert mark_closed(once, "e" * 40, 9) == once


def test_a_record_and_its_inputs_are_kept_and_one_too_many_goes(tmp_path: Path) -> None:
    world = World(tmp_path)
    store = FindingStore(world.pipeline)

    async def work() -> None:
        for data in (b"a long input", b"shorter", b"short"):
            name = await store.put_input("k" * 16, data, ".smt2")
            new = a_finding(input=name, size=len(data))
            await store.update("k" * 16, lambda known, n=new: seen_again(known, n, 2))  # type: ignore[misc]
        found = await store.get("kkk")
        assert await store.fetch_input(found, tmp_path / "input")
        assert await store.fetch_input(found, tmp_path / "other", found.inputs[1].name)
        with pytest.raises(NotFound):
            await store.get("zzz")

    run(work())
    assert (tmp_path / "input").read_bytes() == b"short"
    assert (tmp_path / "other").read_bytes() == b"shorter"
    names = [key.rpartition("/")[2] for key in world.objects("findings")]
    assert sorted(name.partition("-")[0] for name in names) == [
        "finding.json", "input", "input", "report.md",
    ]  # fmt: skip


def test_a_report_says_where_it_came_from_and_how_to_see_it() -> None:
    page = render(a_finding(old=True), "scripted", "solvers/scripted/findings/k/input-1")
    for words in ("introduced by cccccccccccc", "not introduced by", "fuzz reproduce scripted"):
        assert words in page
    assert "## Input" not in page
    shown = render(a_finding(excerpt="```\nlimit 0\n"), "scripted", "x")
    assert "## Input\n\n````\n```\nlimit 0\n````\n" in shown
    ancient = render(a_finding(last_good=None), "scripted", "x")
    assert "as old as the oldest build" in ancient
    cut = Origin(first_bad="c" * 40, last_good=None, subject="", assumed=[LATE])
    hasty = render(a_finding(last_good=None, origins=[cut]), "scripted", "x")
    assert "no newer than cccccccccccc, the search is not finished" in hasty
    assert "oldest build" not in hasty


def test_the_part_of_long_output_that_says_what_went_wrong_is_kept() -> None:
    progress = "".join(f"c progress {number}\n" for number in range(5_000))
    report = "==7==ERROR: AddressSanitizer: heap-use-after-free\n    #0 0x1 in parse x.c:3\n"
    shadow = "fa fb\n" * 5_000
    shown = shorten(f"{progress}{report}{shadow}SUMMARY: the end")
    assert len(shown) < 9_000
    for words in (report, "c progress 0\n", "c progress 4999\n", "SUMMARY: the end", "omitted]"):
        assert words in shown
    noisy = shorten("A" * 10**6 + "\nx.c:3: parse: Assertion `ok' failed.\n" + "B" * 10**6)
    assert "parse: Assertion `ok' failed." in noisy
    assert shorten("short\n") == "short\n"


@pytest.mark.parametrize(
    ("data", "excerpt"),
    [
        (b"limit 0\n", "limit 0\n"),
        ("größer".encode(), "größer"),
        (b"\xff\xfe", ""),
        (b"\x1b[31mred", ""),
        (b"x" * 2_000, ""),
    ],
)
def test_only_short_texts_are_shown_in_reports(data: bytes, excerpt: str) -> None:
    assert excerpt_of(data) == excerpt


class Remembering:
    """An engine that knows which builds are bad or refuse, and records which were run."""

    def __init__(self, folder: Path, history: "History") -> None:
        self._commit = folder.name
        self._history = history

    async def classify(self, path: Path) -> Verdict:
        self._history.asked.append(self._commit)
        return self._history.verdicts.get(self._commit, Verdict("fine"))

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


class History:
    """A repository whose commits are all built, and searches in it."""

    def __init__(self, folder: Path, length: int) -> None:
        self.world = World(folder)
        self.folder = folder
        self.asked: list[str] = []
        self.verdicts: dict[str, Verdict] = {}
        self.commits = [self.world.commit(f"commit {n}") for n in range(length)]

    def built(self, *commits: str) -> None:
        """Makes the builds of these commits: nobody runs them, so they may be empty."""
        for commit in commits:
            folder = self.folder / "made"
            folder.mkdir(exist_ok=True)
            (folder / "solver").write_text("")
            about = BuildMetadata(commit=commit, kind="production", root="/", built_at_ms=0)
            pack(folder, ["solver"], about, self.folder / "made.tar.gz")
            key = build_key("scripted", "production", commit)
            run(self.world.bucket.put(key, self.folder / "made.tar.gz"))

    def bad(self, *places: int) -> None:
        for place in places:
            self.verdicts[self.commits[place]] = Verdict("bug", "title")

    def origin(self, commit: str, build: Any = None, until_ms: int = 2**60) -> Origin:
        self.asked.clear()

        async def search() -> Origin:
            mirror = Mirror(str(self.world.repository), self.folder / "mirror.git")
            await mirror.fetch()
            builds = BuildCache(self.world.pipeline, self.folder / "builds")

            def judge(folder: Path) -> Judge:
                return Judge(Remembering(folder, self), ALWAYS, lambda _: Remembering(folder, self))

            searching = Bisector(builds, mirror, judge, self.world.clock, 1, [".c"], build)
            return await searching.origin(
                commit, Question(self.folder / "input", "input", 1, False, until_ms)
            )

        return run(search())


def test_the_origin_is_found_by_walking_back(tmp_path: Path) -> None:
    history = History(tmp_path, 12)
    commits = history.commits
    history.built(*commits)
    history.bad(9, 10, 11)
    found = history.origin(commits[-1])
    assert (found.first_bad, found.last_good, found.suspects) == (
        commits[9], commits[8], [commits[9]],
    )  # fmt: skip
    assert (found.exact, found.assumed) == (True, [])
    assert history.asked == [commits[10], commits[9], commits[8]]


def test_a_bug_that_went_and_came_back_is_dated_to_its_last_coming(tmp_path: Path) -> None:
    history = History(tmp_path, 12)
    commits = history.commits
    history.built(*commits)
    history.bad(1, 2, 3, 4, 5, 6, 9, 10, 11)
    found = history.origin(commits[-1])
    assert (found.first_bad, found.last_good) == (commits[9], commits[8])


def test_a_bug_in_all_builds_says_so(tmp_path: Path) -> None:
    history = History(tmp_path, 4)
    history.built(*history.commits[1:])
    history.bad(0, 1, 2, 3)
    found = history.origin(history.commits[-1])
    assert (found.first_bad, found.last_good, found.exact) == (history.commits[1], None, False)


def test_a_build_that_refuses_the_input_is_neither_good_nor_bad(tmp_path: Path) -> None:
    history = History(tmp_path, 5)
    commits = history.commits
    history.built(*commits)
    history.bad(3, 4)
    history.verdicts[commits[2]] = Verdict("unsupported")
    found = history.origin(commits[-1])
    assert (found.first_bad, found.last_good, found.exact) == (commits[3], commits[1], False)
    assert found.suspects == [commits[3], commits[2]]
    assert any(commits[2][:12] in text for text in found.assumed)


def test_a_missing_build_widens_the_range_and_building_it_narrows_it(tmp_path: Path) -> None:
    history = History(tmp_path, 8)
    commits = history.commits
    history.built(commits[0], commits[7])
    history.bad(5, 6, 7)
    found = history.origin(commits[-1])
    assert (found.first_bad, found.last_good, found.suspect_count) == (commits[7], commits[0], 7)

    async def build(commit: str) -> LocalBuild:
        about = BuildMetadata(commit=commit, kind="production", root="/", built_at_ms=0)
        return LocalBuild(tmp_path / "own" / commit, about)

    found = history.origin(commits[-1], build)
    assert (found.first_bad, found.last_good, found.exact) == (commits[5], commits[4], True)
    assert any("come and go" in text for text in found.assumed)


def test_a_search_without_time_says_so_and_blames_nobody(tmp_path: Path) -> None:
    history = History(tmp_path, 3)
    history.built(*history.commits)
    history.bad(2)
    found = history.origin(history.commits[-1], until_ms=0)
    assert (found.last_good, found.exact, history.asked) == (None, False, [])
    assert found.assumed == ["the search ran out of time"]


def test_many_builds_are_leapt_over_and_then_halved(tmp_path: Path) -> None:
    history = History(tmp_path, 80)
    commits = history.commits
    history.built(*commits)
    history.bad(*range(7, 80))
    found = history.origin(commits[-1])
    assert (found.first_bad, found.last_good, found.exact) == (commits[7], commits[6], True)
    assert len(history.asked) < 50
    assert any("come and go" in text for text in found.assumed)


def test_a_merge_that_brings_a_bug_is_entered(tmp_path: Path) -> None:
    history = History(tmp_path, 2)
    world, base = history.world, history.commits[1]
    world.git("checkout", "--quiet", "-b", "side")
    side = [world.commit(f"side {n}", **{f"side{n}.c": "x"}) for n in range(3)]
    world.git("checkout", "--quiet", "main")
    main = world.commit("main", **{"main.c": "x"})
    world.git("merge", "--quiet", "--no-ff", "--strategy-option=ours", "--message", "m", "side")
    merge = world.git("rev-parse", "HEAD")
    history.verdicts = dict.fromkeys([side[1], side[2], merge], Verdict("bug", "title"))
    history.built(base, main, merge)
    found = history.origin(merge)
    assert (found.first_bad, found.last_good, found.exact) == (merge, main, False)
    assert set(found.suspects) == {merge, *side}
    history.built(*side)
    found = history.origin(merge)
    assert (found.first_bad, found.last_good, found.exact) == (side[1], side[0], True)
