"""What inputs reach together, what is new of it, and the HTML report, with both compilers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.debian import missing_reason
from tests.support.running import run
from windlass.clock import RealClock
from windlass_fuzz.coverage.collector import Collector
from windlass_fuzz.coverage.html import INDEX, flatten, make_html
from windlass_fuzz.coverage.tools import CoverageBuild, CoverageTools
from windlass_fuzz.processes.runner import Limits

FILES = {
    "solver.cc": """\
#include <cstdio>
#include "sub dir/other.h"
static int zero() {
  return 0;
}
static int more() { return other(3); }
int main(int count, char **words) {
  FILE *file = fopen(words[count - 1], "r");
  return fgetc(file) == '0' ? zero() : more() * 0;
}
""",
    "sub dir/other.h": """\
inline int other(int number) {
  // <script>alert(1)</script>
  if (number > 5)
    return 6;
  return 7;
}
""",
}
COMPILERS = {
    "g++": ["--coverage"],
    "clang": ["-lstdc++", "-fprofile-instr-generate", "-fcoverage-mapping"],
}
LATER = 2**60


def collector_for(folder: Path, compiler: str) -> Collector:
    """Builds the solver in one folder, and leaves its sources in another, `sources`."""
    if shutil.which(compiler) is None:
        pytest.skip(missing_reason(compiler) or "")
    root = folder / "root"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    words = [compiler, "-O0", *COMPILERS[compiler], "-o", "solver", "solver.cc"]
    subprocess.run(words, cwd=root, check=True)
    binaries = folder / "binaries"
    shutil.copytree(root, binaries)
    shutil.move(root, folder / "sources")
    build = CoverageBuild(binaries, root, "solver")
    (folder / "counts").mkdir()
    return Collector(CoverageTools(build, RealClock()), folder / "counts", Limits(60_000), 2)


def commands(folder: Path, *inputs: str) -> list[list[str]]:
    found = []
    for text in inputs:
        path = folder / f"input-{text}"
        path.write_text(text)
        found.append([str(folder / "binaries" / "solver"), str(path)])
    return found


@pytest.mark.parametrize("compiler", list(COMPILERS))
def test_what_inputs_reach_what_is_new_and_the_report(tmp_path: Path, compiler: str) -> None:
    collector = collector_for(tmp_path, compiler)

    async def scenario() -> None:
        assert await collector.run(commands(tmp_path, "0", "0"), LATER)
        before = await collector.read()
        assert await collector.run(commands(tmp_path, "1"), LATER)
        after = await collector.read()
        news = after.beyond(before)
        names = [(f.path, f.signature.partition("(")[0]) for f in news.functions]
        assert names == [("solver.cc", "more"), ("sub dir/other.h", "other")]
        # gcov does not count the lines of closing brackets.
        assert news.lines == {"g++": 4, "clang": 5}[compiler]
        assert after.beyond(after) == ([], 0)
        share = after.share()
        assert (share.functions, share.all_functions) == (4, 4)
        assert before.share().functions == 2
        assert share.lines == share.all_lines - 1, "return 6"
        pages = tmp_path / "pages"
        pages.mkdir()
        made = await make_html(
            collector.tools, collector.folder, after, tmp_path / "sources", pages
        )
        assert made == ({"g++": "gcovr", "clang": "llvm-cov"}[compiler], INDEX)
        check_pages(pages)

    run(scenario())


def check_pages(pages: Path) -> None:
    """All pages are in one folder, without scripts, and the index leads to all sources."""
    index = (pages / INDEX).read_text()
    texts = {path.name: path.read_text() for path in pages.glob("*.html")}
    assert not any("<script" in text.lower() for text in texts.values())
    other = [name for name, text in texts.items() if "alert(1)" in text]
    assert len(other) == 1
    assert f'href="{other[0]}"' in index
    (style,) = (path.name for path in pages.glob("*.css"))
    assert all(f'href="{style}"' in text for text in texts.values())


def test_a_link_out_of_the_checkout_is_not_shown(tmp_path: Path) -> None:
    collector = collector_for(tmp_path, "g++")
    secret = tmp_path / "secret"
    secret.write_text("the password\n" * 10)
    (tmp_path / "sources" / "sub dir" / "other.h").unlink()
    (tmp_path / "sources" / "sub dir" / "other.h").symlink_to(secret)

    async def scenario() -> None:
        await collector.run(commands(tmp_path, "1"), LATER)
        pages = tmp_path / "pages"
        pages.mkdir()
        reach = await collector.read()
        await make_html(collector.tools, collector.folder, reach, tmp_path / "sources", pages)
        assert not any("password" in path.read_text() for path in pages.iterdir())

    run(scenario())


def test_a_build_without_counts_is_given_up_after_some_inputs(tmp_path: Path) -> None:
    build = CoverageBuild(tmp_path, tmp_path, "solver")
    counts = tmp_path / "counts"
    counts.mkdir()
    collector = Collector(CoverageTools(build, RealClock()), counts, Limits(60_000))
    notes = tmp_path / "notes"
    words = [["/bin/sh", "-c", f"echo run >> {notes}"]] * 20
    assert run(collector.run(words, LATER)) is False
    assert len(notes.read_text().splitlines()) == 5


def test_an_input_that_does_not_end_takes_no_longer_than_there_is_time(tmp_path: Path) -> None:
    build = CoverageBuild(tmp_path, tmp_path, "solver")
    counts = tmp_path / "counts"
    counts.mkdir()
    (counts / "a.gcda").write_bytes(b"")
    clock = RealClock()
    collector = Collector(CoverageTools(build, clock), counts, Limits(600_000))
    began = clock.now_ms()
    assert run(collector.run([["sleep", "600"]], began + 100)) is False
    assert clock.now_ms() - began < 60_000
    assert run(collector.run([["true"]], clock.now_ms() + 600_000)) is True


def test_pages_keep_their_anchors_and_foreign_links(tmp_path: Path) -> None:
    made, into = tmp_path / "made", tmp_path / "into"
    (made / "deep").mkdir(parents=True)
    into.mkdir()
    (made / "index.html").write_text(
        "<SCRIPT>one()</script ><a href='deep/a%20b.html#L3'>x</a><a href=\"https://e.org/\">y</a>"
        "<a href='#top'>z</a><a href='../../outside.html'>w</a>"
    )
    (made / "deep" / "a b.html").write_text("<a href='../index.html'>up</a>")
    (made / "control.js").write_text("bad()")
    flatten(made, into)
    assert sorted(path.name for path in into.iterdir()) == ["index.html", "page1.html"]
    assert (into / "index.html").read_text() == (
        '<a href="page1.html#L3">x</a><a href="https://e.org/">y</a>'
        "<a href='#top'>z</a><a href='../../outside.html'>w</a>"
    )
    assert (into / "page1.html").read_text() == '<a href="index.html">up</a>'
