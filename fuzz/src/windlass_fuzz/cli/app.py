"""The command groups of `windlass fuzz`, and the options that they share."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from cyclopts import App, Group, Parameter

from windlass.cli.options.flags import Json
from windlass.cli.output.consoles import errors
from windlass.cli.output.text import escape
from windlass.client.settings import data_directory
from windlass_fuzz.config.combinations import combination_names
from windlass_fuzz.config.coverage_settings import check_coverage_options
from windlass_fuzz.config.solver_file import Solver, load_named
from windlass_fuzz.engines.engine import check_engines
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.processes.workspace import default_root
from windlass_fuzz.sources.mirror import check_repository
from windlass_fuzz.state.open import directory_of, open_pipeline
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.trackers.options import issue_options

T = TypeVar("T")

LOCATION: Final = Group("Location", sort_key=5)
BUCKET_VARIABLE: Final = "WINDLASS_FUZZ_BUCKET"

fuzz = App(name="fuzz", help="Fuzz the commits of a solver: find, build, fuzz, report.")
builder = App(name="builder", help="Build queued commits.")
fuzzer = App(name="fuzzer", help="Fuzz scheduled commits.")
queue = App(name="queue", help="Add, remove and retry commits by hand.")
for part in (builder, fuzzer, queue):
    fuzz.command(part)

SolverName = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="The solver file, its name if it is in this folder or in solvers/, or - for standard "
        "input.",
    ),
]
CommitName = Annotated[str, Parameter(help="The hash of a commit, or a prefix of it.")]
DryRun = Annotated[
    bool,
    Parameter(name="--dry-run", show_default=False, help="Show what would happen; write nothing."),
]
Token = Annotated[
    str | None,
    Parameter(
        help="The token that `next` or `select` printed. Default: ignore who holds the lease."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Location:
    """Where the pipeline stores its state, and where it works on this machine."""

    bucket: Annotated[
        str | None,
        Parameter(
            group=LOCATION,
            metavar="URL",
            help="s3://BUCKET/PREFIX or a directory. Default: WINDLASS_FUZZ_BUCKET, else the "
            "solver file's bucket, else `fuzzing` in the data directory.",
        ),
    ] = None
    work: Annotated[
        Path | None,
        Parameter(
            group=LOCATION,
            metavar="DIR",
            help="Folder for repositories and builds, reused between runs. Default: "
            "WINDLASS_FUZZ_WORK, else a folder in your cache.",
        ),
    ] = None

    def bucket_of(self, solver: Solver) -> str:
        """Returns the URL of the bucket."""
        if self.bucket == "":
            message = "--bucket is empty; name a bucket, or leave the option out for the default"
            raise InvalidSetting("bucket", message)
        named = self.bucket or os.environ.get(BUCKET_VARIABLE) or solver.bucket
        return named or str(data_directory() / "fuzzing")

    def work_root(self) -> Path:
        """Returns the work folder that all solvers share."""
        return self.work or default_root()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StepOptions(Location):
    """The options of a single step: its location, `--dry-run` and `--json`."""

    dry_run: DryRun = False
    json: Json = False


DEFAULT_LOCATION: Final = Location()
DEFAULT_OPTIONS: Final = StepOptions()


class FuzzContext(NamedTuple):
    """A solver, its state, and the work folder on this machine."""

    solver: Solver
    pipeline: Pipeline
    work: Path


def check_options(solver: Solver) -> None:
    """Raises if an option that only some runs need does not exist or makes no sense."""
    check_engines(solver)
    check_coverage_options(solver)
    issue_options(solver.issues)


@asynccontextmanager
async def open_context(
    name: str, location: Location, *, dry_run: bool = False, reading: bool = False
) -> AsyncIterator[FuzzContext]:
    """Opens everything that a step needs, and closes it at the end."""
    solver = load_named(name)
    if not reading:
        check_options(solver)
    if dry_run:
        await check_repository(solver.repository, *solver.branch_names)
    url = location.bucket_of(solver)
    pipeline = await open_pipeline(
        url, solver.name, dry_run=dry_run, reading=reading, matrix=combination_names(solver)
    )
    folder = directory_of(url) if reading else None
    if folder is not None and not folder.exists():
        warn(f"{folder} does not exist; check the name of the bucket, or run windlass fuzz init")
    try:
        yield FuzzContext(solver, pipeline, location.work_root())
    finally:
        await pipeline.bucket.close()


def run_step(
    name: str,
    location: Location,
    step: Callable[[FuzzContext], Coroutine[Any, Any, T]],
    *,
    dry_run: bool = False,
    reading: bool = False,
) -> T:
    """Opens a solver's state, runs a step and closes the state; `reading` changes nothing."""

    async def work() -> T:
        async with open_context(name, location, dry_run=dry_run, reading=reading) as context:
            return await step(context)

    return asyncio.run(work())


def warn(text: str) -> None:
    """Prints a warning on standard error."""
    errors.print(escape(text), style="yellow", markup=False, highlight=False, soft_wrap=True)


def set_workflow_outputs(**outputs: str) -> None:
    """Sets the outputs of a GitHub Actions step, if this runs in one."""
    file = os.environ.get("GITHUB_OUTPUT")
    if file:
        with Path(file).open("a") as output:
            output.writelines(f"{name}={value}\n" for name, value in outputs.items())
