"""The commands of `windlass fuzz` as groups, and the options that they share."""

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
from windlass.client.settings import data_directory
from windlass.fuzzing.board import Board
from windlass.fuzzing.opening import open_board
from windlass.fuzzing.solver import Solver, load_named
from windlass.fuzzing.workplace import default_root

T = TypeVar("T")

PLACE: Final = Group("Place", sort_key=5)
BUCKET_VARIABLE: Final = "WINDLASS_FUZZ_BUCKET"

fuzz = App(name="fuzz", help="Fuzz the commits of a solver: find, build, fuzz, report.")
builder = App(name="builder", help="Build commits of the queue.")
fuzzer = App(name="fuzzer", help="Fuzz commits of the schedule.")
queue = App(name="queue", help="Add, remove and retry commits by hand.")
for part in (builder, fuzzer, queue):
    fuzz.command(part)

SolverName = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="The solver's file, the name of one in this folder or in solvers/, or - to read it "
        "from standard input.",
    ),
]
CommitName = Annotated[str, Parameter(help="The hash of a commit, or its beginning.")]
DryRun = Annotated[
    bool,
    Parameter(name="--dry-run", show_default=False, help="Show what would be done; write nothing."),
]
Token = Annotated[
    str | None,
    Parameter(help="What `next` or `select` told with the commit. Default: whoever holds it."),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the pipeline keeps its state, and where it works."""

    bucket: Annotated[
        str | None,
        Parameter(
            group=PLACE,
            metavar="URL",
            help="s3://BUCKET/PREFIX or a directory. Default: WINDLASS_FUZZ_BUCKET, else what "
            "the solver's file names, else `fuzzing` in the data directory.",
        ),
    ] = None
    work: Annotated[
        Path | None,
        Parameter(
            group=PLACE,
            metavar="DIR",
            help="Where repositories and builds are kept between runs. Default: "
            "WINDLASS_FUZZ_WORK, else a folder of your cache.",
        ),
    ] = None

    def bucket_of(self, solver: Solver) -> str:
        """The address of the bucket."""
        named = self.bucket or os.environ.get(BUCKET_VARIABLE) or solver.bucket
        return named or str(data_directory() / "fuzzing")

    def work_root(self) -> Path:
        """The folder that all solvers share."""
        return self.work or default_root()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Manner(Place):
    """The place of a step, whether it is only shown, and for whom."""

    dry_run: DryRun = False
    json: Json = False


HERE: Final = Place()
PLAINLY: Final = Manner()


class Opened(NamedTuple):
    """A solver, its state, and where this machine works."""

    solver: Solver
    board: Board
    work: Path


@asynccontextmanager
async def opened(
    name: str, at: Place, *, dry_run: bool = False, reading: bool = False
) -> AsyncIterator[Opened]:
    """Everything a step needs; closed in the end."""
    solver = load_named(name)
    url = at.bucket_of(solver)
    board = await open_board(url, solver.name, dry_run=dry_run, reading=reading)
    try:
        yield Opened(solver, board, at.work_root())
    finally:
        await board.bucket.close()


def run_step(
    name: str,
    at: Place,
    step: Callable[[Opened], Coroutine[Any, Any, T]],
    *,
    dry_run: bool = False,
    reading: bool = False,
) -> T:
    """Open a solver's state, take a step, close it; `reading` changes nothing."""

    async def work() -> T:
        async with opened(name, at, dry_run=dry_run, reading=reading) as there:
            return await step(there)

    return asyncio.run(work())


def warn(text: str) -> None:
    """Something that a person should know of and that stops nothing, on standard error."""
    errors.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


def tell_workflow(**outputs: str) -> None:
    """Outputs of a step of GitHub Actions, where this is one."""
    file = os.environ.get("GITHUB_OUTPUT")
    if file:
        with Path(file).open("a") as output:
            output.writelines(f"{name}={value}\n" for name, value in outputs.items())
