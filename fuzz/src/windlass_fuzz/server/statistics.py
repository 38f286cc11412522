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
    message_of,
)
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.statistics.history import history_file
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
    targets = [
        message_of(FuzzTargetReached, one, target=target) for target, one in known.targets.items()
    ]
    return FuzzReached(commit=commit, targets=targets)


async def read_last_run(pipeline: Pipeline) -> str | None:
    """Returns when the last run ended."""
    runs = (await history_file(pipeline).read()).runs
    return format_moment(runs[-1].at_ms) if runs else None


def _series(one: Series) -> FuzzSeries:
    days = [message_of(FuzzDay, day, coverage=_known(day.coverage)) for day in one.days[-DAYS:]]
    return message_of(FuzzSeries, one, coverage=_known(one.coverage), days=days)


def _commit(one: CommitSummary) -> FuzzCommitRuns:
    ended = format_moment(one.last_at_ms)
    return message_of(FuzzCommitRuns, one, coverage=_known(one.coverage), last_run_at=ended)


def _report(one: ReportInfo) -> FuzzReportInfo:
    parts = [message_of(FuzzReportTarget, part) for part in one.targets]
    return message_of(FuzzReportInfo, one, made_at=format_moment(one.made_at_ms), targets=parts)


def _known(count: int) -> int | None:
    return count if count >= 0 else None
