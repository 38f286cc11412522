"""Reads what fuzzing did over time, for the pages of a server."""

from typing import Final

from windlass.domain.values.errors import NotFound
from windlass.domain.values.quantities import format_moment
from windlass_fuzz.buckets.layout import is_commit
from windlass_fuzz.reach.html_store import HtmlStore, ReportInfo
from windlass_fuzz.reach.records import ReachRecords
from windlass_fuzz.server.messages import (
    FuzzCommitRuns,
    FuzzDay,
    FuzzReached,
    FuzzReportInfo,
    FuzzReportTarget,
    FuzzSeries,
    FuzzStatistics,
    FuzzTargetReached,
)
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.statistics.history import DayPoint, history_file
from windlass_fuzz.statistics.summary import CommitSummary, Series, summarise

DAYS: Final = 90
COMMITS: Final = 50
SERIES: Final = 100


async def read_statistics(pipeline: Pipeline) -> FuzzStatistics:
    """Returns executions, coverage, corpus and findings over time, and what commits added."""
    found = summarise(pipeline.solver, await history_file(pipeline).read())
    newest = sorted(found.commits, key=lambda one: -one.last_at_ms)
    report = await HtmlStore(pipeline).info()
    return FuzzStatistics(
        solver=pipeline.solver,
        series=[_series(one) for one in found.series[:SERIES]],
        commits=[_commit(one) for one in newest[:COMMITS]],
        commit_count=len(newest),
        problems=found.problems,
        report=None if report is None else _report(report),
    )


async def read_reached(pipeline: Pipeline, commit: str) -> FuzzReached:
    """Returns which functions the fuzzing of a commit reached first."""
    if not is_commit(commit):
        raise NotFound("commit", commit)
    known = await ReachRecords(pipeline).get(commit)
    return FuzzReached(
        commit=commit,
        targets=[
            FuzzTargetReached(
                target=target,
                functions=one.functions,
                function_count=one.function_count,
                line_count=one.line_count,
                runs=one.runs,
            )
            for target, one in known.targets.items()
        ],
    )


async def read_last_run(pipeline: Pipeline) -> str | None:
    """Returns when the last run ended."""
    runs = (await history_file(pipeline).read()).runs
    return format_moment(runs[-1].at_ms) if runs else None


def _series(one: Series) -> FuzzSeries:
    return FuzzSeries(
        target=one.target, engine=one.engine, combination=one.combination, runs=one.runs,
        executions=one.executions, seconds=one.seconds, coverage=_known(one.coverage),
        corpus=one.corpus, new_findings=one.new_findings, closed=one.closed,
        days=[_day(day) for day in one.days[-DAYS:]],
    )  # fmt: skip


def _day(one: DayPoint) -> FuzzDay:
    return FuzzDay(
        day=one.day, runs=one.runs, executions=one.executions, seconds=one.seconds,
        coverage=_known(one.coverage), corpus=one.corpus, new_findings=one.new_findings,
        closed=one.closed,
    )  # fmt: skip


def _commit(one: CommitSummary) -> FuzzCommitRuns:
    return FuzzCommitRuns(
        commit=one.commit, target=one.target, engine=one.engine, combination=one.combination,
        runs=one.runs, unhealthy=one.unhealthy, executions=one.executions,
        coverage=_known(one.coverage), gained=one.gained,
        new_functions=one.new_functions, new_lines=one.new_lines,
        new_inputs=one.new_inputs, new_findings=one.new_findings, closed=one.closed,
        last_run_at=format_moment(one.last_at_ms),
    )  # fmt: skip


def _report(one: ReportInfo) -> FuzzReportInfo:
    return FuzzReportInfo(
        commit=one.commit, made_at=format_moment(one.made_at_ms), inputs=one.inputs,
        complete=one.complete, functions=one.functions, all_functions=one.all_functions,
        lines=one.lines, all_lines=one.all_lines,
        targets=[
            FuzzReportTarget(
                target=part.target, page=part.page, inputs=part.inputs, complete=part.complete,
                functions=part.functions, all_functions=part.all_functions, lines=part.lines,
                all_lines=part.all_lines, problem=part.problem,
            )
            for part in one.targets
        ],
    )  # fmt: skip


def _known(count: int) -> int | None:
    return count if count >= 0 else None
