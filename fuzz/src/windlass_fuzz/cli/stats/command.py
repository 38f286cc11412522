"""`windlass fuzz stats`: executions, coverage, corpus and findings over time."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from windlass.cli.options.flags import Json
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_json, say
from windlass.domain.values.quantities import format_moment
from windlass_fuzz.cli.app import (
    DEFAULT_LOCATION,
    FuzzContext,
    Location,
    SolverName,
    fuzz,
    run_step,
    warn,
)
from windlass_fuzz.cli.report_output import about_report
from windlass_fuzz.cli.stats.sparklines import WIDEST, sparkline
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.reach.html_store import HtmlStore, ReportInfo
from windlass_fuzz.reach.records import ReachRecords, TargetReach
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.statistics.history import DayPoint, history_file
from windlass_fuzz.statistics.summary import CommitSummary, Series, Summary, summarise

SHORT: Final = 12
SHOWN: Final = 10  # rows about commits, plus the remaining rows of the last one
FUNCTIONS: Final = 30  # functions listed for a commit

Figure = Callable[[DayPoint], float | None]


class Statistics(Summary, frozen=True, kw_only=True):
    """The summary, what the named commit's runs reached first, and the coverage report."""

    reached: dict[str, dict[str, TargetReach]] = msgspec.field(default_factory=dict)
    report: ReportInfo | None = None


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

    async def step(context: FuzzContext) -> Statistics:
        history = await history_file(context.pipeline).read()
        found = summarise(context.solver.name, history, commit)
        return await _with_reach(context.pipeline, found, commit)

    found = run_step(solver, location, step, reading=True)
    if json:
        print_json(found)
        return
    for problem in found.problems:
        warn(f"seeds of the last run: {problem}")
    if not found.runs and not found.series:
        say(
            f"no runs of {commit}: give the hash of a fuzzed commit, or a prefix of it"
            if commit
            else "no runs"
        )
    dates = _dates(found.series)
    for one in found.series:
        _show(one, dates)
    if found.commits:
        columns = ("commit", "last run", "target", "runs", "executions", "coverage", "gained",
                   "functions", "lines", "inputs", "findings", "fixed")  # fmt: skip
        newest, left = _newest(found.commits)
        print_table(columns, [_row(one) for one in newest], "no runs")
        if left:
            say(f"and {count_of(left, 'earlier commit')} (--commit shows one, --json all of them)")
    for name, targets in found.reached.items():
        for target, reached in targets.items():
            _show_reached(name, target, reached)
    if found.report is not None:
        for line in about_report(found.report):
            say(line)


async def _with_reach(pipeline: Pipeline, found: Summary, commit: str) -> Statistics:
    """Adds the coverage report, and with a commit the functions that its runs reached first."""
    named = sorted({one.commit for one in found.commits}) if commit else []
    records = ReachRecords(pipeline)
    reached = {name: (await records.get(name)).targets for name in named[:SHOWN]}
    return Statistics(
        **msgspec.structs.asdict(found), reached={n: r for n, r in reached.items() if r},
        report=await HtmlStore(pipeline).info(),
    )  # fmt: skip


def _show_reached(commit: str, target: str, reached: TargetReach) -> None:
    functions, lines = reached.function_count, reached.line_count
    say("")
    say(
        f"{commit[:SHORT]} reached first with {target}: {count_of(functions, 'function')}, "
        f"{count_of(lines, 'line')}"
    )
    for name in reached.functions[:FUNCTIONS]:
        say(f"  {name}")
    if functions > FUNCTIONS:
        say(f"  and {functions - FUNCTIONS} more (--json lists them)")


def _dates(series: Sequence[Series]) -> list[str]:
    """Returns the days that all lines of bars show: the last ones, including those without runs."""
    days = sorted(day.day for one in series for day in one.days)
    if not days:
        return []
    first, last = date.fromisoformat(days[0]), date.fromisoformat(days[-1])
    count = min((last - first).days + 1, WIDEST)
    return [(last - timedelta(days=back)).isoformat() for back in range(count - 1, -1, -1)]


def _newest(commits: Sequence[CommitSummary]) -> tuple[list[CommitSummary], int]:
    """Returns the rows of the newest commits, each with all its targets, and how many are
    omitted.
    """
    rows: dict[str, list[CommitSummary]] = {}
    for one in sorted(commits, key=lambda one: one.last_at_ms, reverse=True):
        rows.setdefault(one.commit, []).append(one)
    shown: list[CommitSummary] = []
    left = len(rows)
    for group in rows.values():
        if len(shown) >= SHOWN:
            break
        shown += group
        left -= 1
    return shown, left


def _span(series: Series, dates: Sequence[str]) -> str:
    """Returns since when there were runs, and which days the bars show."""
    first = series.days[0].day
    if len(dates) == 1:
        return f", {first}"
    return f" since {first}; a bar for each day from {dates[0]} to {dates[-1]}"


def _show(series: Series, dates: Sequence[str]) -> None:
    by_date = {day.day: day for day in series.days}
    days = [by_date.get(one) for one in dates]
    name = f"{series.combination} ({series.target} with {series.engine})"
    if not series.combination:
        name = f"{series.target} with {series.engine}"
    say(f"{name}: {count_of(series.runs, 'run')}{_span(series, dates)}")
    figures: list[tuple[str, Figure, str]] = [
        ("executions", lambda day: day.executions, f"{series.executions:,}"),
        ("per second", _speed, _number(_rate(series.executions, series.seconds))),
        ("coverage", lambda day: _known(day.coverage), _number(_known(series.coverage))),
        ("corpus", lambda day: day.corpus, f"{series.corpus:,}"),
        ("new findings", lambda day: day.new_findings, str(series.new_findings)),
        ("fixed", lambda day: day.closed, str(series.closed)),
    ]
    for name, figure, total in figures:
        line = sparkline([None if day is None else figure(day) for day in days])
        say(f"  {name:<13}{line}  {total}")
    say("")


def _row(one: CommitSummary) -> tuple[object, ...]:
    runs = f"{one.runs} ({one.unhealthy} unhealthy)" if one.unhealthy else str(one.runs)
    gained, functions, lines = (
        "" if count is None else f"+{count}"
        for count in (one.gained, one.new_functions, one.new_lines)
    )
    return (
        one.commit[:SHORT], format_moment(one.last_at_ms), one.combination or one.target, runs,
        f"{one.executions:,}", _number(_known(one.coverage)), gained, functions, lines,
        one.new_inputs, one.new_findings, one.closed,
    )  # fmt: skip


def _speed(day: DayPoint) -> float | None:
    return _rate(day.executions, day.seconds)


def _rate(executions: int, seconds: float) -> float | None:
    return executions / seconds if seconds > 0 else None


def _known(count: int) -> int | None:
    return count if count >= 0 else None


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.0f}"
