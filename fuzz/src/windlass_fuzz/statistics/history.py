"""The history of runs: one state file of limited size.

The newest runs are kept one by one. Older ones are summed up by day, target and engine, and the
oldest days are dropped.
"""

from typing import Final

import msgspec

from windlass.domain.values.quantities import format_moment
from windlass_fuzz.buckets.layout import state_key
from windlass_fuzz.state.documents import struct_codec
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.state_file import StateFile

RUNS: Final = 500
DAYS: Final = 1_000
PROBLEMS: Final = 5
MAX_PROBLEM: Final = 200


class RunPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a combination. `coverage` is the engine's count, -1 if it does not report one.

    `new_findings` were first found by this run, `closed` are findings that it closed.
    `new_functions` and `new_lines` were first reached by this run, -1 if unknown.
    """

    at_ms: int
    commit: str
    engine: str
    target: str
    combination: str = ""
    healthy: bool = True
    executions: int = 0
    seconds: float = 0.0
    coverage: int = -1
    corpus: int = 0
    new_inputs: int = 0
    findings: int = 0
    new_findings: int = 0
    closed: int = 0
    new_functions: int = -1
    new_lines: int = -1
    problems: list[str] = []


class DayPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one day with one target and engine, or one combination."""

    day: str
    engine: str
    target: str
    combination: str = ""
    runs: int = 0
    executions: int = 0
    seconds: float = 0.0
    coverage: int = -1
    corpus: int = 0
    new_findings: int = 0
    closed: int = 0

    def plus(self, run: RunPoint) -> "DayPoint":
        return msgspec.structs.replace(
            self, runs=self.runs + 1, executions=self.executions + run.executions,
            seconds=self.seconds + run.seconds, coverage=max(self.coverage, run.coverage),
            corpus=run.corpus, new_findings=self.new_findings + run.new_findings,
            closed=self.closed + run.closed,
        )  # fmt: skip


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Runs and days, the oldest first."""

    runs: list[RunPoint] = []
    days: list[DayPoint] = []


def day_of(at_ms: int) -> str:
    return format_moment(at_ms)[:10]


def add_run(history: History, run: RunPoint) -> History:
    """Returns the history with a run, within its limits."""
    problems = [text[:MAX_PROBLEM] for text in run.problems[:PROBLEMS]]
    runs = [*history.runs, msgspec.structs.replace(run, problems=problems)]
    runs.sort(key=lambda one: one.at_ms)
    days = list(history.days)
    for old in runs[:-RUNS]:
        days = add_to_day(days, old)
    return History(runs=runs[-RUNS:], days=days[-DAYS:])


def kind_of(one: RunPoint | DayPoint) -> tuple[str, str, str]:
    """Returns what runs are compared by: target, engine and combination."""
    return one.target, one.engine, one.combination


def add_to_day(days: list[DayPoint], run: RunPoint) -> list[DayPoint]:
    """Returns the days with a run added to its own."""
    day = day_of(run.at_ms)
    for place in range(len(days) - 1, -1, -1):
        one = days[place]
        if (one.day, *kind_of(one)) == (day, *kind_of(run)):
            return [*days[:place], one.plus(run), *days[place + 1 :]]
    fresh = DayPoint(
        day=day, engine=run.engine, target=run.target, combination=run.combination
    ).plus(run)
    return sorted([*days, fresh], key=lambda one: one.day)


HISTORY: Final = struct_codec("history.json", History, History(), indented=False)


def history_file(pipeline: Pipeline) -> StateFile[History]:
    """Returns the file with a solver's history."""
    key = state_key(pipeline.solver, HISTORY.file)
    return StateFile(pipeline.bucket, key, HISTORY, pipeline.runtime)


async def record_run(pipeline: Pipeline, run: RunPoint) -> None:
    """Adds a run to the history."""
    await history_file(pipeline).update(lambda history: add_run(history, run))
