"""Messages about commit fuzzing, version 1."""

import msgspec


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

    It is `alive`, `fixed` or `unsure` there, or the branch is `unwatched`; `text` says since
    which commit, and through which merge.
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
    """A finding in a list; `branches` has its state on each watched branch of several."""

    key: str
    title: str
    state: str
    introduced_by: str | None
    branches: dict[str, str] = {}


class FuzzStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one solver's pipeline. Lists are cut; `counts` has their whole lengths.

    `unreadable` says what is wrong with findings that cannot be read. `branches` is empty if the
    solver has only one.
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


class FuzzSolver(msgspec.Struct, frozen=True, kw_only=True):
    """A solver that this server shows; `problem` says why its state cannot be read.

    `branches` are the names and patterns in its file.
    """

    name: str
    repository: str
    branch: str
    queue: int = 0
    scheduled: int = 0
    runs: int = 0
    open_findings: int = 0
    problem: str | None = None
    branches: list[str] = []


class FuzzSolverList(msgspec.Struct, frozen=True):
    solvers: list[FuzzSolver]


class FuzzFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding with its report in Markdown; `input_name` is that of the download."""

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
