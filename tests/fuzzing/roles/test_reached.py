"""What a run reached that nothing had before, and the HTML report in the bucket."""

import shutil
from pathlib import Path

import pytest

from tests.fuzzing.roles.test_coverage import BUILD, SOURCE
from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import World
from tests.support.debian import missing_reason
from tests.support.running import run
from windlass.domain.values.errors import NotFound
from windlass_fuzz.builds.build_cache import BuildCache
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.reach.html_store import HtmlStore
from windlass_fuzz.reach.records import ReachRecords
from windlass_fuzz.reach.run_measure import RunMeasure, RunReach
from windlass_fuzz.roles import fuzzer
from windlass_fuzz.roles.corpus import Corpus, name_of
from windlass_fuzz.statistics.history import RunPoint, history_file, record_run

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason=missing_reason("g++") or "")

FILES = {"solver.c": SOURCE, "build.sh": BUILD, "tests/a.txt": "0"}
LONG_MS = 600_000


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world with one built commit whose only test reaches `zero` but not `more`."""
    made = World(tmp_path_factory.mktemp("reached"))
    run(made.build_and_schedule(made.commit("one", **FILES)))
    return made


def head(world: World) -> str:
    return world.git("rev-parse", "HEAD")


def measured(
    world: World, folder: Path, corpus: dict[str, bytes], fetched: set[str],
    length_ms: int = LONG_MS, solver: Solver | None = None,
) -> RunReach | None:  # fmt: skip
    """Measures a run that ended with this corpus."""
    inputs, scratch = folder / "inputs", folder / "scratch"
    for one in (inputs, scratch):
        one.mkdir(parents=True)
    for name, data in corpus.items():
        (inputs / name).write_bytes(data)
    builds = BuildCache(world.pipeline, folder / "builds")
    measure = RunMeasure(solver or world.solver, world.pipeline, builds, scratch, 2)
    tests = [world.repository / "tests" / "a.txt"]
    return run(measure.run(head(world), "solver", tests, inputs, fetched, length_ms))


def test_a_run_says_which_functions_it_reached_first(world: World, tmp_path: Path) -> None:
    old, new = name_of(b"0"), name_of(b"1")
    corpus = {old: b"0", new: b"1"}
    found = measured(world, tmp_path / "one", corpus, {old})
    assert found is not None
    assert [name.partition("(")[0] for name in found.functions] == ["solver.c:more"]
    assert (found.function_count, found.line_count) == (1, 1)
    # What the corpus had before the run is not news, and neither is a test's content.
    again = measured(world, tmp_path / "two", corpus, {old, new})
    same = measured(world, tmp_path / "three", {"any": b"0"}, set())
    assert again == same == RunReach(functions=[], function_count=0, line_count=0)
    record = run(ReachRecords(world.pipeline).get(head(world)))
    assert record.targets["solver"].function_count == 1


def test_what_is_not_known_is_not_guessed(world: World, tmp_path: Path) -> None:
    corpus = {name_of(b"1"): b"1"}
    assert measured(world, tmp_path / "late", corpus, set(), length_ms=0) is None


def test_stats_name_the_functions_of_a_commit(world: World, tmp_path: Path) -> None:
    measured(world, tmp_path / "one", {name_of(b"1"): b"1"}, set())
    point = RunPoint(
        at_ms=1, commit=head(world), engine="command", target="solver", new_functions=1,
        new_lines=1,
    )  # fmt: skip
    run(record_run(world.pipeline, point))
    commands = Commands(world)
    found = commands.ask("stats", "scripted", "--commit", head(world)[:10])
    assert [one["new_functions"] for one in found["commits"]] == [1]
    named = found["reached"][head(world)]["solver"]["functions"]
    assert any(name.startswith("solver.c:more") for name in named)
    code, said, _ = commands.run("stats", "scripted", "--commit", head(world)[:10])
    assert (code, "reached first with solver" in said, "solver.c:more" in said) == (0, True, True)


def test_the_report_is_made_from_tests_and_corpus_and_kept(world: World, tmp_path: Path) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "one").write_bytes(b"1")
    run(Corpus(world.pipeline).merge(inputs))
    commands, pages = Commands(world), tmp_path / "pages"
    made = commands.ask("coverage", "scripted", "--html", str(pages))["report"]
    assert (made["tool"], made["inputs"], made["complete"]) == ("gcovr", 2, True)
    assert (made["functions"], made["all_functions"]) == (3, 3), "the corpus reaches `more`"
    store = HtmlStore(world.pipeline)
    assert run(store.page("index.html")) == (pages / "index.html").read_bytes()
    first = set(world.objects("coverage-report"))
    assert len(first) == made["pages"] + 1
    commands.ask("coverage", "scripted", "--html", str(pages))
    second = set(world.objects("coverage-report"))
    assert (len(second), len(first & second)) == (len(first), 1), "the old pages are gone"
    for name in ("../report.json", "report.json", "index.html.gz", "page1.js", ""):
        with pytest.raises(NotFound):
            run(store.page(name))
    report = commands.ask("stats", "scripted")["report"]
    assert (report["commit"], report["lines"]) == (head(world), made["lines"])


def test_a_fuzzers_run_measures_itself(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzzer, "MEASURING", 1)
    report = run(world.fuzz(head(world), budget_ms=3_000))
    assert report.reached is not None
    (point,) = run(history_file(world.pipeline).read()).runs[-1:]
    assert (point.commit, point.new_lines) == (head(world), report.reached.line_count)
