"""Finding records after repeated sightings, and bisection over builds."""

from pathlib import Path
from typing import Any

import pytest

from tests.fuzzing.findings.test_issues import a_finding
from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from windlass.domain.values.errors import NotFound
from windlass.fuzzing.builds.build_cache import BuildCache
from windlass.fuzzing.engines.engine import Engine, Verdict
from windlass.fuzzing.findings.bisect import Bisector, Origin
from windlass.fuzzing.findings.record import excerpt_of, mark_closed, seen_again
from windlass.fuzzing.findings.report import render
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.sources.mirror import Mirror


def test_the_smaller_input_stays() -> None:
    known = seen_again(None, a_finding(size=10, input="ten", found_in="a" * 40))
    larger = seen_again(known, a_finding(size=20, input="twenty", found_in="b" * 40))
    assert (larger.input, larger.times, larger.seen_in) == ("ten", 2, ["a" * 40, "b" * 40])
    smaller = seen_again(larger, a_finding(size=5, input="five", found_in="a" * 40))
    assert (smaller.input, smaller.seen_in) == ("five", ["b" * 40, "a" * 40])


def test_the_first_word_about_the_origin_stays() -> None:
    known = seen_again(None, a_finding(introduced_by="a" * 40, last_good="9" * 40))
    again = seen_again(known, a_finding(introduced_by="b" * 40, last_good=None))
    assert (again.introduced_by, again.last_good) == ("a" * 40, "9" * 40)


def test_closing_twice_keeps_the_first_time() -> None:
    once = mark_closed(a_finding(), "d" * 40, 5)
    assert mark_closed(once, "e" * 40, 9) == once


def test_a_record_and_its_input_are_kept_and_an_older_input_goes(tmp_path: Path) -> None:
    world = World(tmp_path)
    store = FindingStore(world.pipeline)

    async def work() -> None:
        for data in (b"a long input", b"short"):
            name = await store.put_input("k" * 16, data, ".smt2")
            new = a_finding(input=name, size=len(data))
            await store.update("k" * 16, lambda known, n=new: seen_again(known, n))  # type: ignore[misc]
        found = await store.get("kkk")
        assert await store.fetch_input(found, tmp_path / "input")
        with pytest.raises(NotFound):
            await store.get("zzz")

    run(work())
    assert (tmp_path / "input").read_bytes() == b"short"
    names = [key.rpartition("/")[2] for key in world.objects("findings")]
    assert sorted(name.partition("-")[0] for name in names) == [
        "finding.json", "input", "report.md",
    ]  # fmt: skip


def test_a_report_says_where_it_came_from_and_how_to_see_it() -> None:
    page = render(a_finding(old=True), "scripted", "solvers/scripted/findings/k/input-1")
    for words in ("introduced by cccccccccccc", "not introduced by", "findings reproduce scripted"):
        assert words in page
    assert "## Input" not in page
    shown = render(a_finding(excerpt="```\nlimit 0\n"), "scripted", "x")
    assert "## Input\n\n````\n```\nlimit 0\n````\n" in shown
    ancient = render(a_finding(last_good=None), "scripted", "x")
    assert "as old as the oldest build" in ancient


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
    """An engine that knows which builds are bad, and records which were run."""

    def __init__(self, folder: Path, bad: set[str], asked: list[str]) -> None:
        self._commit = folder.name
        self._bad = bad
        self._asked = asked

    async def classify(self, path: Path) -> Verdict:
        self._asked.append(self._commit)
        return Verdict("bug", "title") if self._commit in self._bad else Verdict("fine")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def test_the_origin_is_found_by_halving(tmp_path: Path) -> None:
    world = World(tmp_path)
    commits = [world.commit(f"commit {n}") for n in range(16)]
    asked: list[str] = []

    async def origin(first_bad: int) -> Origin:
        asked.clear()
        bad = set(commits[first_bad:])
        mirror = Mirror(str(world.repository), tmp_path / "mirror.git")
        await mirror.fetch()
        builds = BuildCache(world.pipeline, tmp_path / "builds")

        def engine(folder: Path) -> Engine:
            return Remembering(folder, bad, asked)

        judge = Bisector(builds, mirror, engine, tries=1)
        return await judge.origin(commits[-1], tmp_path / "input", "title")

    async def work() -> None:
        await world.enqueue(*commits)
        for _ in commits:
            await world.build()
        assert await origin(9) == Origin(commits[9], commits[8])
        assert len(asked) <= 6
        assert await origin(15) == Origin(commits[15], commits[14])
        assert asked == [commits[14]], "the build before is asked first"
        assert await origin(0) == Origin(commits[0], None)

    run(work())
