"""A solver's description: one small file, YAML or TOML, that says all the pipeline has to know.

```yaml
name: toy
repository: /srv/toy.git        # an address or a path that git understands
branch: main
bucket: s3://fuzzing            # default: a directory of this machine
build:
  production: [./build.sh, production]
  coverage: [./build.sh, coverage]
binaries: [toy]                 # made by the build, named from the top of the repository
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
from windlass.domain.schedules.cron import Cron
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms, parse_size
from windlass.fuzzing.layout import check_name
from windlass.fuzzing.rules import EXTENSIONS

Role = Literal["manager", "builder", "fuzzer", "coverage"]

LONGEST: Final = 1024 * 1024
STANDARD_INPUT: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".toml")
FOLDERS: Final = (".", "solvers")
CRON: Final[Mapping[Role, str]] = {
    "manager": "*/15 * * * *",
    "builder": "5,35 * * * *",
    "fuzzer": "45 0,6,12,18 * * *",
    "coverage": "0 0 1 * *",
}
ROLES: Final[tuple[Role, ...]] = ("manager", "builder", "fuzzer", "coverage")


class Commits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where new commits are looked for, and which of them count.

    `source` git asks the repository itself, github the API at `api` (for `project`,
    OWNER/NAME, by default taken from the repository's address). `window` today passes over
    commits from before the day of the last look and the one before it; all takes every one.
    `fresh` is how many of the newest are looked at when there is nothing to go on from.
    """

    source: Literal["git", "github"] = "git"
    api: str = "https://api.github.com"
    project: str = ""
    window: Literal["today", "all"] = "today"
    fresh: int = 4
    extensions: tuple[str, ...] = EXTENSIONS


class Build(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How both binaries are built: one command each, an argv; `timeout` is for each of them.

    A build that crashes with its builder is begun again, at most `tries` times in all.
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


class Place(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the jobs of a role ask of the fleet, and when they run.

    `runs_on` and `setup` are for GitHub Actions: the runner, and lines of shell that prepare it
    for builds and targets. `secrets` are the fleet's, or those of the project there.
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
    """One solver. `budget` is how long a fuzzer's run takes, setting up included."""

    name: str
    repository: str
    build: Build
    binaries: tuple[str, ...]
    engine: Mapping[str, Any]
    branch: str = "main"
    bucket: str = ""
    commits: Commits = Commits()
    tests: tuple[str, ...] = ()
    coverage: Mapping[str, Any] = {}
    budget: str = "6h"
    input_timeout: str = "10s"
    memory: str = "2GiB"
    cores: int = 0
    issues: Mapping[str, Any] = {}
    roles: Mapping[Role, Place] = {}

    @property
    def budget_ms(self) -> int:
        return parse_duration_ms(self.budget, "budget")

    @property
    def input_timeout_ms(self) -> int:
        return parse_duration_ms(self.input_timeout, "input_timeout")

    @property
    def memory_bytes(self) -> int:
        return parse_size(self.memory, "memory")

    def place(self, role: Role) -> Place:
        """Where a role runs; its cron line is the usual one unless another is given."""
        place = self.roles.get(role, Place())
        return place if place.cron else msgspec.structs.replace(place, cron=CRON[role])


def load_named(name: str) -> Solver:
    """The solver of a file, of a name, or of standard input."""
    if name == STANDARD_INPUT:
        return parse_solver(sys.stdin.buffer.read(LONGEST), Path("standard input"))
    return load_solver(find_solver(name))


def find_solver(name_or_path: str) -> Path:
    """A file, or the name of one in this folder or in `solvers/`."""
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
        expected = "a solver's file, or the name of one in this folder or in solvers/"
        raise InvalidInput("solver", f"{expected} (.yaml, .toml)", name_or_path)
    return found[0]


def load_solver(path: Path) -> Solver:
    """The solver that a file describes; a relative repository is seen from the file."""
    solver = parse_solver(_content(path), path)
    repository = path.parent / solver.repository
    if not _is_address(solver.repository) and repository.exists():
        return msgspec.structs.replace(solver, repository=str(repository.absolute()))
    return solver


def parse_solver(content: bytes, path: Path) -> Solver:
    """The same from what a file holds; every mistake is named with its field."""
    try:
        text = content.decode()
        data = tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except (UnicodeDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        kind = "TOML" if path.suffix == ".toml" else "YAML"
        raise InvalidInput(str(path), kind, " ".join(str(error).split())) from None
    try:
        solver = msgspec.convert(data, Solver)
    except msgspec.ValidationError as error:
        raise InvalidInput(str(path), "the description of a solver", str(error)) from None
    _check(solver)
    return solver


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
    except OSError as error:
        raise InvalidInput("solver", f"a readable file ({error.strerror})", str(path)) from None
    if len(content) > LONGEST:
        raise InvalidInput("solver", f"a file of at most {LONGEST} bytes", str(path))
    return content


def _is_address(repository: str) -> bool:
    return "://" in repository or Path(repository).is_absolute()


def _check(solver: Solver) -> None:
    check_name(solver.name)
    if not solver.repository or solver.repository.startswith("-"):
        raise InvalidInput("repository", "an address or a path", solver.repository)
    if not solver.branch or solver.branch.startswith("-"):
        raise InvalidInput("branch", "the name of a branch", solver.branch)
    for field, command in (
        ("build.production", solver.build.production),
        ("build.coverage", solver.build.coverage),
        ("binaries", solver.binaries),
    ):
        if not command:
            raise InvalidInput(field, "a list that is not empty", list(command))
    if not isinstance(solver.engine.get("name"), str):
        raise InvalidInput("engine.name", "the name of an engine", solver.engine.get("name"))
    for least, field, number in (
        (1, "commits.fresh", solver.commits.fresh),
        (1, "build.tries", solver.build.tries),
        (0, "cores", solver.cores),
    ):
        if number < least:
            raise InvalidInput(field, f"at least {least}", number)
    for wrong in (e for e in solver.commits.extensions if not e.startswith(".")):
        raise InvalidInput("commits.extensions", "extensions such as .cpp", wrong)
    _check_quantities(solver)


def _check_quantities(solver: Solver) -> None:
    """Reading them once is checking them."""
    for field, value in (
        ("budget", solver.budget_ms),
        ("input_timeout", solver.input_timeout_ms),
        ("build.timeout", solver.build.timeout_ms),
    ):
        if value == 0:
            raise InvalidInput(field, "more than nothing", 0)
    _ = solver.memory_bytes, solver.build.memory_bytes
    for role in ROLES:
        place = solver.place(role)
        Cron(place.cron, field=f"roles.{role}.")
        for clause in place.requires:
            parse_clause(clause, f"roles.{role}.requires")
