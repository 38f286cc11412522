"""Statistics of runs: stored within limits, and summed up by target, engine and commit."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import BROKEN, FINE, World
from tests.support.running import run
from windlass_fuzz.buckets.layout import statistics_prefix
from windlass_fuzz.cli.stats.sparklines import sparkline
from windlass_fuzz.roles import fuzzer
from windlass_fuzz.statistics.history import (
    DAYS,
    RUNS,
    History,
    RunPoint,
    add_run,
    history_file,
    record_run,
)
from windlass_fuzz.statistics.summary import by_commit, summarise

DAY_MS = 86_400_000
NOON_MS = 20_000 * DAY_MS + DAY_MS // 2


def point(at_ms: int = NOON_MS, commit: str = "c" * 40, **fields: Any) -> RunPoint:
    return RunPoint(at_ms=at_ms, commit=commit, engine="afl", target="solver", **fields)


def test_old_runs_become_days_and_nothing_is_counted_twice() -> None:
    history = History()
    for number in range(RUNS + 120):
        history = add_run(history, point(NOON_MS + number * DAY_MS // 4, executions=1))
    assert len(history.runs) == RUNS
    assert sum(day.runs for day in history.days) == 120
    [series] = summarise("s", history).series
    assert (series.runs, series.executions) == (RUNS + 120, RUNS + 120)
    assert len({day.day for day in series.days}) == len(series.days)


def test_the_file_stays_small() -> None:
    history = History()
    long = ["x" * 10_000] * 100
    for number in range(RUNS + DAYS + 50):
        history = add_run(history, point(NOON_MS + number * DAY_MS, problems=long))
    assert (len(history.runs), len(history.days)) == (RUNS, DAYS)
    assert len(msgspec.json.encode(history)) < 1_200_000


def test_runs_that_arrive_late_are_put_in_order() -> None:
    history = add_run(add_run(History(), point(NOON_MS + 5)), point(NOON_MS))
    assert [one.at_ms for one in history.runs] == [NOON_MS, NOON_MS + 5]


def test_what_a_commit_reached_that_earlier_runs_had_not() -> None:
    runs = [
        point(1, "a", coverage=100),
        point(2, "b", coverage=140),
        point(3, "a", coverage=150),
        point(4, "c", coverage=130),
        point(5, "d", coverage=-1),
    ]
    gained = {one.commit: (one.coverage, one.gained) for one in by_commit(runs)}
    assert gained == {"a": (150, None), "b": (140, 40), "c": (130, 0), "d": (-1, None)}


def test_targets_and_engines_are_apart() -> None:
    history = History(runs=[point(1, "a", coverage=5), point(2, "a", coverage=9)])
    other = msgspec.structs.replace(history.runs[1], engine="libfuzzer")
    found = summarise("s", History(runs=[history.runs[0], other]))
    assert [(one.engine, one.coverage) for one in found.series] == [("afl", 5), ("libfuzzer", 9)]
    assert [one.gained for one in found.commits] == [None, None]


def test_runs_at_the_same_time_are_all_counted(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def work() -> History:
        await asyncio.gather(*(record_run(world.pipeline, point(n)) for n in range(1, 4)))
        return await history_file(world.pipeline).read()

    assert len(run(work()).runs) == 3


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([0, 0], "▁▁"),
        ([0, 4, 7], "▁▅█"),
        ([None, 1], " █"),
        ([*range(100)], 30),
        ([-1], "▁"),
    ],
)
def test_sparklines(values: list[float | None], drawn: str | int) -> None:
    line = sparkline(values)
    assert len(line) == drawn if isinstance(drawn, int) else line == drawn


def test_the_fuzzer_records_its_runs_and_stats_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzzer, "REPORTS_KEPT", 2)
    world = World(tmp_path, more="seeds: {corpora: [/missing/corpus.zip]}")

    async def work() -> tuple[str, str]:
        bad = world.commit("bad", solver_sh=BROKEN)
        mended = world.commit("mended", solver_sh=FINE)
        await world.build_and_schedule(bad, mended)
        await world.fuzz(bad, until_bug=True, budget_ms=120_000)
        await world.fuzz(bad, until_bug=True, budget_ms=120_000)
        await world.fuzz(mended, budget_ms=1_000)
        return bad, mended

    bad, mended = run(work())
    assert len(world.objects(statistics_prefix("scripted").rpartition("/")[2])) == 2
    code, out, _ = Commands(world).run("stats", "scripted", "--json")
    found = json.loads(out)
    assert code == 0
    assert [one["commit"] for one in found["runs"]] == [bad, bad, mended]
    assert [one["new_findings"] for one in found["runs"]] == [1, 0, 0], "counted when found first"
    assert [one["closed"] for one in found["runs"]] == [0, 0, 1]
    assert all(one["executions"] > 0 for one in found["runs"])
    assert "/missing/corpus.zip" in found["problems"][0]
    code, out, err = Commands(world).run("stats", "scripted")
    assert code == 0
    assert "build/solver with command: 3 runs" in out
    assert "█" in out
    assert mended[:12] in out
    assert "/missing/corpus.zip" in err
    code, out, _ = Commands(world).run("stats", "scripted", "--commit", mended[:8], "--json")
    assert [one["commit"] for one in json.loads(out)["runs"]] == [mended]


def test_every_day_has_its_place_in_the_lines_of_bars(tmp_path: Path) -> None:
    world = World(tmp_path)
    for day in (-40, 0, 1, 5):
        run(record_run(world.pipeline, point(NOON_MS + day * DAY_MS, executions=1_000)))
    other = point(NOON_MS + 2 * DAY_MS, executions=7)
    run(record_run(world.pipeline, msgspec.structs.replace(other, target="other")))
    out = Commands(world).run("stats", "scripted")[1].splitlines()
    assert out[0].endswith(
        "4 runs since 2024-08-25; a bar for each day from 2024-09-10 to 2024-10-09"
    )
    assert out[1] == f"  executions   {' ' * 24}██   █  4,000"
    assert out[9] == f"  executions   {' ' * 26}█     7"


def test_the_newest_commits_are_shown_with_all_their_targets(tmp_path: Path) -> None:
    world = World(tmp_path)
    for number in range(5):
        for target in "abc":
            done = point(NOON_MS + number, f"{number}" * 40)
            done = msgspec.structs.replace(done, target=target)
            run(record_run(world.pipeline, done))
    out = Commands(world).run("stats", "scripted")[1]
    counts = [out.count(f"{number}" * 12) for number in range(5)]
    assert counts == [0, 3, 3, 3, 3]
    assert "and 1 earlier commit (--commit shows one" in out


def test_stats_without_runs(tmp_path: Path) -> None:
    world = World(tmp_path)
    before = sorted((tmp_path / "bucket").rglob("*"))
    assert Commands(world).run("stats", "scripted")[:2] == (0, "no runs\n")
    said = "no runs of HEAD: give the hash of a fuzzed commit, or a prefix of it\n"
    assert Commands(world).run("stats", "scripted", "--commit", "HEAD")[:2] == (0, said)
    assert sorted((tmp_path / "bucket").rglob("*")) == before
