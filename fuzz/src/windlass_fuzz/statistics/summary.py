"""Sums up a history: by target and engine over time, and by commit."""

from collections.abc import Iterable, Sequence

import msgspec

from windlass_fuzz.statistics.history import (
    DayPoint,
    History,
    RunPoint,
    add_to_day,
    kind_of,
)


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One target with one engine, or one combination: totals, and its days, the oldest first."""

    target: str
    engine: str
    combination: str = ""
    runs: int
    executions: int
    seconds: float
    coverage: int
    corpus: int
    new_findings: int
    closed: int
    days: list[DayPoint]


class CommitSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one commit with one target and engine, or one combination.

    `gained` is how much more coverage its runs reached than all runs before its first one, None if
    unknown. Builds differ, so it is exact only if the engine numbers its coverage the same way in
    both. `new_functions` and `new_lines` were first reached by its runs, None if no run could tell;
    they are measured with one build, so they are exact.
    """

    commit: str
    target: str
    engine: str
    combination: str = ""
    runs: int
    unhealthy: int
    executions: int
    seconds: float
    coverage: int
    gained: int | None
    new_functions: int | None
    new_lines: int | None
    new_inputs: int
    new_findings: int
    closed: int
    last_at_ms: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `windlass fuzz stats` shows."""

    solver: str
    series: list[Series]
    commits: list[CommitSummary]
    runs: list[RunPoint]
    problems: list[str]


def summarise(solver: str, history: History, commit: str = "") -> Summary:
    """Returns the summary; with a commit or a prefix of it, only of its runs."""
    runs = [run for run in history.runs if run.commit.startswith(commit)]
    days = [] if commit else list(history.days)
    for run in runs:
        days = add_to_day(days, run)
    commits = [one for one in by_commit(history.runs) if one.commit.startswith(commit)]
    last = runs[-1].problems if runs else []
    return Summary(solver=solver, series=_series(days), commits=commits, runs=runs, problems=last)


def by_commit(runs: Sequence[RunPoint]) -> list[CommitSummary]:
    """Returns commits by their first run; `runs` are ordered oldest first."""
    groups: dict[tuple[str, str, str, str], list[RunPoint]] = {}
    best: dict[tuple[str, str, str], int] = {}
    earlier: dict[tuple[str, str, str, str], int] = {}
    for run in runs:
        kind = kind_of(run)
        groups.setdefault((*kind, run.commit), []).append(run)
        earlier.setdefault((*kind, run.commit), best.get(kind, -1))
        best[kind] = max(best.get(kind, -1), run.coverage)
    found = []
    for (target, engine, combination, commit), group in groups.items():
        reached = max(run.coverage for run in group)
        before = earlier[target, engine, combination, commit]
        known = reached >= 0 and before >= 0
        found.append(
            CommitSummary(
                commit=commit, target=target, engine=engine, combination=combination,
                runs=len(group),
                unhealthy=sum(not run.healthy for run in group),
                executions=sum(run.executions for run in group),
                seconds=sum(run.seconds for run in group), coverage=reached,
                gained=max(reached - before, 0) if known else None,
                new_functions=_sum_known([run.new_functions for run in group]),
                new_lines=_sum_known([run.new_lines for run in group]),
                new_inputs=sum(run.new_inputs for run in group),
                new_findings=sum(run.new_findings for run in group),
                closed=sum(run.closed for run in group), last_at_ms=group[-1].at_ms,
            )
        )  # fmt: skip
    return found


def _sum_known(counts: Sequence[int]) -> int | None:
    known = [count for count in counts if count >= 0]
    return sum(known) if known else None


def _series(days: Iterable[DayPoint]) -> list[Series]:
    groups: dict[tuple[str, str, str], list[DayPoint]] = {}
    for day in days:
        groups.setdefault(kind_of(day), []).append(day)
    return [
        Series(
            target=target, engine=engine, combination=combination,
            runs=sum(day.runs for day in group),
            executions=sum(day.executions for day in group),
            seconds=sum(day.seconds for day in group),
            coverage=max(day.coverage for day in group), corpus=group[-1].corpus,
            new_findings=sum(day.new_findings for day in group),
            closed=sum(day.closed for day in group), days=group,
        )
        for (target, engine, combination), group in groups.items()
    ]  # fmt: skip
