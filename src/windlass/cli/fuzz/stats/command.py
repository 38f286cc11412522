"""`windlass fuzz stats`: executions, coverage, corpus and findings over time."""

from collections.abc import Callable
from typing import Annotated, Final

from cyclopts import Parameter

from windlass.cli.fuzz.app import (
    DEFAULT_LOCATION,
    FuzzContext,
    Location,
    SolverName,
    fuzz,
    run_step,
    warn,
)
from windlass.cli.fuzz.stats.sparklines import WIDEST, sparkline
from windlass.cli.options.flags import Json
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_json, say
from windlass.domain.values.times import format_moment
from windlass.fuzzing.statistics.history import DayPoint, history_file
from windlass.fuzzing.statistics.summary import CommitSummary, Series, Summary, summarise

SHORT: Final = 12
SHOWN: Final = 10  # commits

Figure = Callable[[DayPoint], float | None]


@fuzz.command
def stats(
    solver: SolverName,
    /,
    *,
    commit: Annotated[
        str, Parameter(help="Only runs of this commit: its hash, or a prefix of it.")
    ] = "",
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Show executions, coverage, corpus and findings over time, and what each commit added."""

    async def step(context: FuzzContext) -> Summary:
        history = await history_file(context.pipeline).read()
        return summarise(context.solver.name, history, commit)

    found = run_step(solver, location, step, reading=True)
    if json:
        print_json(found)
        return
    for problem in found.problems:
        warn(f"seeds of the last run: {problem}")
    if not found.runs and not found.series:
        say("no runs")
    for one in found.series:
        _show(one)
    if found.commits:
        columns = ("commit", "last run", "target", "runs", "executions", "coverage", "gained",
                   "inputs", "findings", "fixed")  # fmt: skip
        newest = sorted(found.commits, key=lambda one: one.last_at_ms)[-SHOWN:]
        print_table(columns, [_row(one) for one in reversed(newest)], "no runs")


def _show(series: Series) -> None:
    days = series.days[-WIDEST:]
    span = days[0].day if len(days) == 1 else f"{days[0].day} to {days[-1].day}"
    say(f"{series.target} with {series.engine}: {series.runs} runs, {span}")
    figures: list[tuple[str, Figure, str]] = [
        ("executions", lambda day: day.executions, str(series.executions)),
        ("per second", _speed, _number(_rate(series.executions, series.seconds))),
        ("coverage", lambda day: _known(day.coverage), _number(_known(series.coverage))),
        ("corpus", lambda day: day.corpus, str(series.corpus)),
        ("new findings", lambda day: day.new_findings, str(series.new_findings)),
        ("fixed", lambda day: day.closed, str(series.closed)),
    ]
    for name, figure, total in figures:
        line = sparkline([figure(day) for day in days])
        say(f"  {name:<13}{line}  {total}")
    say("")


def _row(one: CommitSummary) -> tuple[object, ...]:
    runs = f"{one.runs} ({one.unhealthy} unhealthy)" if one.unhealthy else str(one.runs)
    gained = "" if one.gained is None else f"+{one.gained}"
    return (
        one.commit[:SHORT], format_moment(one.last_at_ms), one.target, runs, one.executions,
        _number(_known(one.coverage)), gained, one.new_inputs, one.new_findings, one.closed,
    )  # fmt: skip


def _speed(day: DayPoint) -> float | None:
    return _rate(day.executions, day.seconds)


def _rate(executions: int, seconds: float) -> float | None:
    return executions / seconds if seconds > 0 else None


def _known(count: int) -> int | None:
    return count if count >= 0 else None


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.0f}"
