"""Messages about commit fuzzing, version 1."""

from typing import Any, TypeVar

import msgspec

M = TypeVar("M", bound=msgspec.Struct)


def message_of(kind: type[M], about: object, **other: Any) -> M:
    """Returns a message with what an object has under the names of its fields, and other values."""
    names = [name for name in kind.__struct_fields__ if name not in other and hasattr(about, name)]
    return kind(**{name: getattr(about, name) for name in names}, **other)


class FuzzCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit of the schedule and how often it was fuzzed; `branches` if there are several."""

    commit: str
    fuzz_count: int
    branches: list[str] = []


class FuzzBranch(msgspec.Struct, frozen=True, kw_only=True):
    """One of several branches: `watched`, `left out` for newer ones, or `gone`."""

    name: str
    state: str
    last_checked_commit: str | None
    checked_at: str | None
    scheduled: int


class FuzzOnBranch(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a bug on one of several branches.

    It is `alive`, `fixed` or `unsure` there, or the branch is `unwatched`; `text` says since which
    commit, and through which merge.
    """

    name: str
    state: str
    text: str


class FuzzWork(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that somebody builds or fuzzes now."""

    commit: str
    work: str
    holder: str
    until: str
    tries: int


class FuzzFindingLine(msgspec.Struct, frozen=True, kw_only=True):
    """A finding in a list; `branches` has its state on each of several watched branches."""

    key: str
    title: str
    state: str
    introduced_by: str | None
    branches: dict[str, str] = {}


class FuzzAlarm(msgspec.Struct, frozen=True, kw_only=True):
    """A commit whose build cannot be fuzzed, or whose last runs (`runs` in a row) did nothing."""

    commit: str
    runs: int
    why: str
    at: str


class FuzzLostAlarm(msgspec.Struct, frozen=True, kw_only=True):
    """An alarm that did not reach its `place`; without `next_at` it is no longer repeated."""

    commit: str
    place: str
    tries: int
    why: str
    next_at: str | None


class FuzzShare(msgspec.Struct, frozen=True, kw_only=True):
    """The time that the next run gives to a combination of a matrix; 0 if it cannot run."""

    combination: str
    seconds: float
    percent: int
    why: str


class FuzzStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one solver's pipeline. Lists are cut; `counts` has their full lengths.

    `unreadable` says what is wrong with findings that cannot be read. `branches` is empty if the
    solver has only one, and `shares` if it has no matrix. `lost_alarms` did not arrive by webhook
    or e-mail.
    """

    solver: str
    bucket: str
    read_at: str
    last_checked_commit: str | None
    checked_at: str | None
    queue: list[str]
    built: list[str]
    failed: list[str]
    schedule: list[FuzzCommit]
    at_work: list[FuzzWork]
    findings: list[FuzzFindingLine]
    unreadable: list[str]
    counts: dict[str, int]
    coverage_mapped_at: str | None
    coverage_bytes: int
    branches: list[FuzzBranch] = []
    shares: list[FuzzShare] = []
    unhealthy: list[FuzzAlarm] = []
    lost_alarms: list[FuzzLostAlarm] = []
    untriaged: int = 0
    last_run_at: str | None = None


class FuzzSolver(msgspec.Struct, frozen=True, kw_only=True):
    """A solver that this server shows; `problem` says why its state cannot be read.

    `branches` are the names and patterns in its file. `unhealthy` counts commits in the schedule
    that raised an alarm.
    """

    name: str
    repository: str
    branch: str
    queue: int = 0
    scheduled: int = 0
    runs: int = 0
    open_findings: int = 0
    unhealthy: int = 0
    problem: str | None = None
    branches: list[str] = []
    counts: dict[str, int] = {}
    last_run_at: str | None = None


class FuzzSolverList(msgspec.Struct, frozen=True):
    solvers: list[FuzzSolver]


class FuzzFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding with its report in Markdown; `input_name` is the name of the download."""

    key: str
    title: str
    state: str
    engine: str
    introduced_by: str | None
    found_in: str
    found_at: str
    times: int
    size: int
    excerpt: str
    output: str
    issue: str
    report: str
    input_name: str
    branches: list[FuzzOnBranch] = []


class FuzzCoverageFile(msgspec.Struct, frozen=True, kw_only=True):
    """A source file: how many of its functions are reached, and by how many tests."""

    path: str
    functions: int
    tests: int


class FuzzCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """Which functions the tests of a solver reach, as of one commit; `files` is cut."""

    commit: str | None
    mapped_at: str | None
    functions: int
    tests: int
    files: list[FuzzCoverageFile]
    file_count: int


class FuzzDay(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one day. `coverage` is the engine's count, None if it does not report one."""

    day: str
    runs: int
    executions: int
    seconds: float
    coverage: int | None
    corpus: int
    new_findings: int
    closed: int


class FuzzSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One target with one engine: totals of all runs, and its last days, the oldest first.

    In a matrix, each `combination` has its own.
    """

    target: str
    engine: str
    combination: str = ""
    runs: int
    executions: int
    seconds: float
    coverage: int | None
    corpus: int
    new_findings: int
    closed: int
    days: list[FuzzDay]


class FuzzCommitRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one commit with one target and engine.

    `gained` is how much more coverage they reached than all earlier runs, as the engine counts it;
    `new_functions` and `new_lines` were first reached by them. None means unknown.
    """

    commit: str
    target: str
    engine: str
    combination: str = ""
    runs: int
    unhealthy: int
    executions: int
    coverage: int | None
    gained: int | None
    new_functions: int | None
    new_lines: int | None
    new_inputs: int
    new_findings: int
    closed: int
    last_run_at: str


class FuzzReportTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a coverage report about one target: its first page, or the `problem` with it."""

    target: str
    page: str
    inputs: int
    complete: bool
    functions: int
    all_functions: int
    lines: int
    all_lines: int
    problem: str = ""


class FuzzReportInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The newest HTML coverage report; `complete` means that all inputs ran.

    In a matrix, each of the `targets` has its own part; the figures cover all of them.
    """

    commit: str
    made_at: str
    inputs: int
    complete: bool
    functions: int
    all_functions: int
    lines: int
    all_lines: int
    targets: list[FuzzReportTarget] = []


class FuzzStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What fuzzing did over time; `commits` are cut, the newest first.

    `problems` say which seeds the last run could not use.
    """

    solver: str
    series: list[FuzzSeries]
    commits: list[FuzzCommitRuns]
    commit_count: int
    problems: list[str]
    report: FuzzReportInfo | None


class FuzzTargetReached(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of one target were the first to reach: some functions as path:signature, and
    counts.
    """

    target: str
    functions: list[str]
    function_count: int
    line_count: int
    runs: int


class FuzzReached(msgspec.Struct, frozen=True, kw_only=True):
    """What the fuzzing of one commit was the first to reach."""

    commit: str
    targets: list[FuzzTargetReached]
