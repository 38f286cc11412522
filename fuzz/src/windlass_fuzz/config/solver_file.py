"""The solver file: a small YAML or TOML file with everything the pipeline needs to know.

```yaml
name: toy
repository: /srv/toy.git        # a URL or path for git
branch: main                    # or branches: [main, 'release/*']
bucket: s3://fuzzing            # default: a directory on this machine
build:
  production: [./build.sh, production]
  coverage: [./build.sh, coverage]
binaries: [toy]                 # what the build makes, relative to the repository
tests: ['tests/*.txt']
engine: {name: command, argv: ['{binaries}/toy', '{input}']}
budget: 6h
```
"""

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import yaml

from windlass.domain.matching.clauses import parse_clause
from windlass.domain.schedules import Cron
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import did_you_mean
from windlass.domain.values.quantities import parse_duration_ms, parse_size
from windlass_fuzz.buckets.layout import check_name
from windlass_fuzz.config.alarm_settings import AlarmSettings, check_alarm_settings
from windlass_fuzz.config.branch_names import check_branches, is_pattern
from windlass_fuzz.config.finding_settings import (
    FailureKind,
    FindingSettings,
    HealthSettings,
    SignatureSettings,
    check_finding_settings,
)
from windlass_fuzz.config.matrix_settings import MatrixSettings, choose_combinations
from windlass_fuzz.config.seed_settings import SeedSettings, check_seed_settings
from windlass_fuzz.config.settings import convert_settings
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.state.rules import EXTENSIONS, Order

Role = Literal["manager", "builder", "fuzzer", "triage", "coverage"]

MAX_BYTES: Final = 1024 * 1024
STANDARD_INPUT: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".toml")
FOLDERS: Final = (".", "solvers")
CRON: Final[Mapping[Role, str]] = {
    "manager": "*/15 * * * *",
    "builder": "5,35 * * * *",
    "fuzzer": "45 0,6,12,18 * * *",
    "triage": "*/5 * * * *",
    "coverage": "0 0 1 * *",
}
ROLES: Final[tuple[Role, ...]] = ("manager", "builder", "fuzzer", "triage", "coverage")


class CommitSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the manager finds new commits, and which of them count.

    `source: git` reads the repository itself; `github` uses the API at `api`, for `project`
    (OWNER/NAME, by default from the repository's URL). `window: today` skips commits older than the
    day before the last check; `all` takes every commit. `fresh` is how many of the newest commits
    to take when there is no last checked commit to continue from.
    """

    source: Literal["git", "github"] = "git"
    api: str = "https://api.github.com"
    project: str = ""
    window: Literal["today", "all"] = "today"
    fresh: int = 4
    extensions: tuple[str, ...] = EXTENSIONS


class BuildSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to build both binaries: one command (argv) each; `timeout` applies to each of them.

    If the builder crashes during a build, the build is started again, at most `tries` times in
    total.
    """

    production: tuple[str, ...]
    coverage: tuple[str, ...]
    timeout: str = "1h"
    memory: str = "0"
    tries: int = 3
    env: Mapping[str, str] = {}

    @property
    def timeout_ms(self) -> int:
        return parse_duration_ms(self.timeout, "build.timeout")

    @property
    def memory_bytes(self) -> int:
        return parse_size(self.memory, "build.memory")


class RoleSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the jobs of a role run, and what they need from the fleet.

    `runs_on` and `setup` are for GitHub Actions: the runner, and shell lines that prepare it
    for builds and targets. `secrets` are names of the fleet's or the GitHub project's secrets.
    """

    cron: str = ""
    queue: str = "batch"
    requires: tuple[str, ...] = ()
    resources: Mapping[str, int | str] = {}
    secrets: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    runs_on: str = "ubuntu-latest"
    setup: tuple[str, ...] = ()


class Solver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One solver. `budget` is how long a fuzzer's run takes, including setup.

    `until_quiet` ends a run before that, once it has found nothing new for so long. `order` says
    which of the least fuzzed commits comes first.
    `branches` lists names and patterns; the first is a name, and `branch` repeats it.
    `bisect: build` also builds commits that have no build to find out which one introduced a
    bug. `engine` may be left out if each combination of the matrix has one.
    """

    name: str
    repository: str
    build: BuildSettings
    binaries: tuple[str, ...]
    engine: Mapping[str, Any] = {}
    matrix: MatrixSettings | None = None
    branch: str = "main"
    branches: tuple[str, ...] = ()
    bucket: str = ""
    commits: CommitSettings = CommitSettings()
    tests: tuple[str, ...] = ()
    seeds: SeedSettings = SeedSettings()
    coverage: Mapping[str, Any] = {}
    budget: str = "6h"
    until_quiet: str = ""
    order: Order = "oldest"
    input_timeout: str = "10s"
    memory: str = "2GiB"
    cores: int = 0
    issues: Mapping[str, Any] = {}
    signature: SignatureSettings = SignatureSettings()
    findings: FindingSettings = FindingSettings()
    health: HealthSettings = HealthSettings()
    alarms: AlarmSettings = AlarmSettings()
    bisect: Literal["builds", "build"] = "builds"
    roles: Mapping[Role, RoleSettings] = {}

    @property
    def watched(self) -> tuple[str, ...]:
        """Returns the names and patterns of the branches to watch, at least one."""
        return self.branches or (self.branch,)

    @property
    def has_branches(self) -> bool:
        """Returns whether the file names more than one branch."""
        return len(self.branches) > 1

    @property
    def branch_names(self) -> tuple[str, ...]:
        """Returns the branches that are named without a pattern."""
        return tuple(name for name in self.watched if not is_pattern(name))

    @property
    def budget_ms(self) -> int:
        return parse_duration_ms(self.budget, "budget")

    @property
    def quiet_ms(self) -> int:
        """Returns how long a run may find nothing new; 0 if until its budget ends."""
        return parse_duration_ms(self.until_quiet, "until_quiet") if self.until_quiet else 0

    @property
    def kinds(self) -> tuple[FailureKind, ...]:
        """Returns the kinds of failures to report."""
        return self.findings.kinds_with(str(self.engine.get("name", "")))

    @property
    def input_timeout_ms(self) -> int:
        return parse_duration_ms(self.input_timeout, "input_timeout")

    @property
    def memory_bytes(self) -> int:
        return parse_size(self.memory, "memory")

    def role_settings(self, role: Role) -> RoleSettings:
        """Returns the settings of a role, with the default cron line if the file gives none.

        Triage needs what fuzzers need, unless the file says otherwise.
        """
        settings = self.roles.get(role, RoleSettings())
        if role == "triage" and role not in self.roles:
            settings = msgspec.structs.replace(self.role_settings("fuzzer"), cron="")
        return settings if settings.cron else msgspec.structs.replace(settings, cron=CRON[role])


def load_named(name: str) -> Solver:
    """Loads a solver from a file, by name, or from standard input."""
    if name == STANDARD_INPUT:
        return parse_solver(sys.stdin.buffer.read(MAX_BYTES), Path("standard input"))
    return load_solver(find_solver(name))


def find_solver(name_or_path: str) -> Path:
    """Finds a solver file by path, or by name in this folder or in `solvers/`."""
    path = Path(name_or_path)
    if path.suffix in SUFFIXES:
        return path
    found = [
        file
        for folder in FOLDERS
        for suffix in SUFFIXES
        if (file := Path(folder, name_or_path + suffix)).is_file()
    ]
    if not found:
        known = sorted({file.stem for folder in FOLDERS for file in _solver_files(folder)})
        raise InvalidSetting(
            "solver",
            f"solver {name_or_path} does not exist: there is no {name_or_path}.yaml or .toml in "
            f"this folder or in solvers/{did_you_mean(name_or_path, known)}",
            name_or_path,
        )
    return found[0]


def _solver_files(folder: str) -> list[Path]:
    return [file for suffix in SUFFIXES for file in Path(folder).glob(f"*{suffix}")]


def load_solver(path: Path) -> Solver:
    """Loads a solver file; a relative repository path is relative to the file."""
    solver = parse_solver(_content(path), path)
    repository = path.parent / solver.repository
    if not _is_address(solver.repository) and repository.exists():
        return msgspec.structs.replace(solver, repository=str(repository.absolute()))
    return solver


def parse_solver(content: bytes, path: Path) -> Solver:
    """Parses the content of a solver file; errors name the key that is wrong."""
    try:
        text = content.decode()
        data = tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "YAML"
        problem = " ".join(str(error).split())
        raise InvalidSetting(str(path), f"{path} is not valid {kind}: {problem}") from None
    if data is None:
        raise InvalidSetting(str(path), f"{path} is empty; docs/guides/fuzzing.md shows one")
    solver = convert_settings(data, Solver, str(path))
    if solver.matrix is None and not (isinstance(data, dict) and "engine" in data):
        raise InvalidSetting(str(path), f"{path}: key engine is missing", data)
    _check_branches(solver, data)
    _check(solver)
    return msgspec.structs.replace(solver, branch=solver.watched[0])


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise InvalidSetting("solver", message, str(path)) from None
    if len(content) > MAX_BYTES:
        raise InvalidInput("solver", f"a file of at most {MAX_BYTES} bytes", str(path))
    return content


def _is_address(repository: str) -> bool:
    return "://" in repository or Path(repository).is_absolute()


def _check_branches(solver: Solver, data: Mapping[str, Any]) -> None:
    """Checks `branches`; jobs of a fleet get both keys, where `branch` repeats the first one."""
    if not solver.branches:
        if "branches" in data and "branch" not in data:
            raise InvalidInput("branches", "a non-empty list", [])
        return
    check_branches(solver.branches)
    if "branch" in data and solver.branch != solver.branches[0]:
        message = (
            f"the file has branch {solver.branch} and branches that start with "
            f"{solver.branches[0]}; remove branch, and list all of them in branches"
        )
        raise InvalidSetting("branches", message, list(solver.branches))


def _check(solver: Solver) -> None:
    check_name(solver.name)
    if not solver.repository or solver.repository.startswith("-"):
        raise InvalidInput("repository", "a URL or a path", solver.repository)
    if not solver.branch or solver.branch.startswith("-"):
        raise InvalidInput("branch", "the name of a branch", solver.branch)
    for field, command in (
        ("build.production", solver.build.production),
        ("build.coverage", solver.build.coverage),
        ("binaries", solver.binaries),
    ):
        if not command:
            raise InvalidInput(field, "a non-empty list", list(command))
    _check_engine_names(solver)
    for least, field, number in (
        (1, "commits.fresh", solver.commits.fresh),
        (1, "build.tries", solver.build.tries),
        (0, "cores", solver.cores),
    ):
        if number < least:
            raise InvalidInput(field, f"at least {least}", number)
    for wrong in (e for e in solver.commits.extensions if not e.startswith(".")):
        raise InvalidInput("commits.extensions", "file extensions such as .cpp", wrong)
    check_finding_settings(solver.signature, solver.findings, solver.health)
    check_seed_settings(solver.seeds)
    check_alarm_settings(solver.alarms)
    _check_quantities(solver)


def _check_engine_names(solver: Solver) -> None:
    common = solver.engine.get("name")
    if solver.matrix is None:
        if not isinstance(common, str):
            raise InvalidInput("engine.name", "the name of an engine", common)
        return
    for one in choose_combinations(solver.matrix):
        name = one.overrides.options.get("name", common)
        if not isinstance(name, str):
            message = f"combination {one.names.joined} has no engine: set engine or matrix.engines"
            raise InvalidSetting("matrix", message, name)


def _check_quantities(solver: Solver) -> None:
    """Parses all durations, sizes, cron lines and requirements, to check them."""
    for field, value in (
        ("budget", solver.budget_ms),
        ("input_timeout", solver.input_timeout_ms),
        ("build.timeout", solver.build.timeout_ms),
        ("until_quiet", solver.quiet_ms or not solver.until_quiet),
    ):
        if value == 0:
            raise InvalidInput(field, "more than 0", 0)
    _ = solver.memory_bytes, solver.build.memory_bytes
    for one in () if solver.matrix is None else choose_combinations(solver.matrix):
        own = one.overrides
        if own.input_timeout and not parse_duration_ms(own.input_timeout, "matrix.input_timeout"):
            raise InvalidInput("matrix.input_timeout", "more than 0", 0)
        _ = own.memory and parse_size(own.memory, "matrix.memory")
    for role in ROLES:
        settings = solver.role_settings(role)
        Cron(settings.cron, field=f"roles.{role}.")
        for clause in settings.requires:
            parse_clause(clause, f"roles.{role}.requires")
