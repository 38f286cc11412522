"""Searches for origins get some of the time of every run, and go on where the last one ended."""

from pathlib import Path

from tests.fuzzing.histories.bookkeeping import BUG
from tests.fuzzing.histories.dating import STRICT
from tests.fuzzing.histories.planted import FINE, History, PlantedWorld, Step, program
from tests.fuzzing.support.scripted_solver import ShiftedClock
from tests.support.running import run
from windlass_fuzz.buckets.layout import Kind
from windlass_fuzz.builds.build_cache import BuildCache, LocalBuild
from windlass_fuzz.findings.record import Origin

SECOND_MS = 1_000
FETCH_MS = 100 * SECOND_MS  # far more than a run of the program takes on any machine
LONG_MS = 10_000 * SECOND_MS
LETTERS = "ABCDEF"
MANY_BUGS = program(
    "".join(f"  in_{letter}();\n" for letter in LETTERS),
    "".join(
        f'static void in_{letter}(void) {{ assert(!has("{letter}")); }}\n' for letter in LETTERS
    ),
)
BUILDS = [f"c{number}" for number in range(12)]
HISTORY = History(
    "bugs in all builds but the first",
    {name: FINE if name == "c0" else MANY_BUGS for name in BUILDS},
    (),
    (),
)


class FarBuilds(BuildCache):
    """Builds in a bucket that is far away: each takes its time when it is first asked for."""

    clock: ShiftedClock

    async def fetch(self, commit: str, kind: Kind = "production") -> LocalBuild | None:
        if (kind, commit) not in self._fetched:
            self.clock.ahead_ms += FETCH_MS
        return await super().fetch(commit, kind)


async def origins(planted: PlantedWorld) -> list[Origin]:
    return [finding.origins[-1] for finding in await planted.findings()]


def test_a_search_without_enough_time_goes_on_in_the_next_runs(tmp_path: Path) -> None:
    planted = PlantedWorld(tmp_path, HISTORY)

    class Builds(FarBuilds):
        clock = planted.world.clock

    async def search() -> None:
        await planted.fuzz(Step("c11", ("A",)), 3 * FETCH_MS, Builds)
        (first,) = await origins(planted)
        assert first.cut_short
        assert planted.name_of(first.first_bad) not in {"c0", "c1", "c2"}
        for _ in range(8):
            await planted.fuzz(Step("c11"), 4 * FETCH_MS, Builds)
        (found,) = await origins(planted)
        assert found.exact
        assert planted.name_of(found.first_bad) == "c1"

    run(search())


def test_a_run_with_too_many_failures_still_searches_for_origins(tmp_path: Path) -> None:
    planted = PlantedWorld(tmp_path, HISTORY)
    clock = planted.world.clock

    def take_long(said: str) -> None:
        if said.startswith("triaging"):
            clock.ahead_ms += LONG_MS // 5

    async def search() -> None:
        await planted.fuzz(Step("c11", ("A",), late=True))
        assert [one.cut_short for one in await origins(planted)] == [True]
        await planted.fuzz(Step("c11", tuple(LETTERS[1:])), LONG_MS, notify=take_long)
        found = await origins(planted)
        assert [one.exact for one in found] == [True] * len(found)
        assert {planted.name_of(one.first_bad) for one in found} == {"c1"}
        assert 1 < len(found) < len(LETTERS)  # the others wait for the next run

    run(search())


def test_an_input_is_only_reduced_to_what_the_last_good_build_accepts(tmp_path: Path) -> None:
    planted = PlantedWorld(tmp_path, History("strict", {"good": STRICT, "bug": BUG}, (), ()))

    async def search() -> None:
        await planted.fuzz(Step("bug", ("H and X",)))
        (found,) = await planted.findings()
        assert found.excerpt == "HX"
        sources = {one.size: one.source for one in found.inputs}
        whole = next(one.name for one in found.inputs if one.name != found.input)
        assert sources == {len("HX"): whole, len("H and X"): ""}

    run(search())
