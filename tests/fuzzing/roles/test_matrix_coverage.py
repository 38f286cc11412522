"""The HTML coverage report of a matrix: a part for each target, and figures of all together."""

import shutil
from pathlib import Path

import msgspec
import pytest

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import World
from tests.support.debian import missing_reason
from tests.support.running import run
from windlass_fuzz.reach.html_store import HtmlStore, ReportInfo, TargetReport
from windlass_fuzz.roles.corpus import Corpus
from windlass_fuzz.roles.status import read_status

MATRIX = """
matrix:
  targets: [counts, reads, silent]
"""
# `shared` is in both programs; each reaches its own function with its own test.
SHARED = "static int shared(int c) { return c; }\n"
TARGET = """\
#include <stdio.h>
#include "shared.h"
static int only_%(name)s(int c) { return c * 0; }
static int never_%(name)s(void) { return 3; }
int main(int count, char **words) {
  FILE *file = fopen(words[count - 1], "r");
  int c = shared(fgetc(file));
  return c == '%(mark)s' ? only_%(name)s(c) : c == 'z' ? never_%(name)s() : 0;
}
"""
BUILD = """#!/bin/sh
set -e
mkdir -p build
flags=
[ $1 = coverage ] && flags="%s"
for target in counts reads; do %s $flags -o build/$target $target.c; done
printf '#!/bin/sh\\n' > build/silent
chmod +x build/silent
"""
COMPILERS = {"gcc": "--coverage", "clang": "-fprofile-instr-generate -fcoverage-mapping"}


class TargetsWorld(World):
    """A world with three targets, one of which counts nothing."""

    @property
    def description(self) -> str:
        text = super().description.replace("[build/solver]", "['build/{target}']")
        return text.replace("build/solver", "build/{target}")


def a_world(folder: Path, compiler: str) -> World:
    world = TargetsWorld(folder, more=MATRIX)
    files = {f"{name}.c": TARGET % {"name": name, "mark": name[0]} for name in ("counts", "reads")}
    script = BUILD % (COMPILERS[compiler], compiler)
    commit = world.commit("one", build_sh=script, **{"shared.h": SHARED, **files})
    run(world.enqueue(commit))
    assert run(world.build()).outcome == "built"
    return world


@pytest.mark.parametrize("compiler", list(COMPILERS))
def test_each_target_has_its_own_part_of_the_report(tmp_path: Path, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(missing_reason(compiler) or "")
    world = a_world(tmp_path, compiler)
    for target in ("counts", "reads"):
        inputs = tmp_path / target
        inputs.mkdir()
        (inputs / "one").write_text(target)
        run(Corpus(world.pipeline, target).merge(inputs))
    commands, pages = Commands(world), tmp_path / "pages"
    made = commands.ask("coverage", "scripted", "--html", str(pages))["report"]
    by_target = {one["target"]: one for one in made["targets"]}
    for one in (by_target["counts"], by_target["reads"]):
        assert (one["functions"], one["all_functions"], one["inputs"]) == (3, 4, 2)
    assert by_target["silent"]["problem"] == "no input wrote any coverage"
    # `shared` is one function of both; the two `main` are two.
    assert (made["functions"], made["all_functions"]) == (5, 7)
    index = (pages / "index.html").read_text()
    for name in ("counts", "reads"):
        first = by_target[name]["page"]
        assert f'<a href="{first}">{name}</a>' in index
        assert f"{name}.c" in (pages / first).read_text()
        assert run(HtmlStore(world.pipeline).page(first)) == (pages / first).read_bytes()
    assert "silent" in index
    texts = [path.read_text() for path in pages.glob("page*.html")]
    assert not any('href="index.html"' in text for text in texts), (
        "each part has its own first page"
    )


def test_a_description_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    store = HtmlStore(world.pipeline)
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.html").write_text("x")
    info = ReportInfo(
        id="one", commit="e" * 40, made_at_ms=1, tool="gcovr", inputs=1, complete=True,
        functions=1, all_functions=1, lines=1, all_lines=1,
        targets=[TargetReport(target="a", page="page0.html")],
    )  # fmt: skip
    run(store.save(pages, info))
    assert run(store.info()) is not None
    for page in ("../../state.json", "javascript:alert(1)", "//elsewhere/page0.html"):
        wrong = msgspec.structs.replace(info, targets=[TargetReport(target="a", page=page)])
        run(store.save(pages, wrong))
        assert run(store.info()) is None


def test_status_names_the_targets_of_the_report(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip(missing_reason("gcc") or "")
    world = a_world(tmp_path, "gcc")
    commands = Commands(world)
    assert "coverage report" not in commands.run("status", "scripted")[1]
    commands.ask("coverage", "scripted", "--html", str(tmp_path / "pages"))
    report = run(read_status(world.pipeline)).coverage_report
    assert report is not None
    assert [one.target for one in report.targets] == ["counts", "reads", "silent"]
    code, said, _ = commands.run("status", "scripted")
    assert (code, "reads: 2 of 4 functions" in said) == (0, True), said
    assert "silent: no input wrote any coverage" in said
