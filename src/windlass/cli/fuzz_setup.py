"""Commands that set a pipeline up: in a bucket, on a fleet, at GitHub."""

import shlex
from pathlib import Path
from urllib.parse import urlsplit

from windlass.cli.fuzz_app import HERE, DryRun, Opened, Place, SolverName, fuzz, run_step
from windlass.cli.options.connection import HERE as THERE
from windlass.cli.options.connection import Connection
from windlass.cli.options.flags import Flag, Json
from windlass.cli.output.text import print_json, say
from windlass.domain.values.errors import InvalidInput
from windlass.fuzzing.actions import workflows_of
from windlass.fuzzing.fleet import Start, schedules_of
from windlass.fuzzing.layout import builds_prefix
from windlass.fuzzing.lifecycle import DAYS, set_rule
from windlass.fuzzing.solver import find_solver, load_named
from windlass.wire.schedules import SchedulePut
from windlass.wire.workers import Changed


@fuzz.command
def init(solver: SolverName, /, *, at: Place = HERE, json: Json = False) -> None:
    """Check the solver's file and its bucket, and let builds there go after seven days."""
    described = load_named(solver)
    url = at.bucket_of(described)
    parts = urlsplit(url)
    applied = False
    if parts.scheme == "s3":
        applied = set_rule(parts.netloc, described.name, parts.path.strip("/"))

    async def step(there: Opened) -> str:
        return there.board.bucket.name

    name = run_step(solver, at, step)
    if json:
        print_json({"solver": described.name, "bucket": name, "rule_set": applied})
        return
    say(f"{described.name} keeps its state in {name}")
    who = "by its lifecycle rule" if parts.scheme == "s3" else "by the manager"
    say(f"{builds_prefix(described.name)}: removed after {DAYS} days, {who}")


@fuzz.command
def install(
    solver: SolverName,
    /,
    *,
    remove: Flag = False,
    program: str = "windlass",
    namespace: str | None = None,
    dry_run: DryRun = False,
    place: Place = HERE,
    at: Connection = THERE,
    json: Json = False,
) -> None:
    """Register schedules for manager, builder, fuzzer and coverage on the fleet.

    Parameters
    ----------
    remove
        Take the schedules away instead.
    program
        How workers call this program.
    namespace
        Where the jobs run. Default: the token's own.
    """
    described = load_named(solver)
    work = None if place.work is None else str(place.work.absolute())
    start = Start(_for_all(place.bucket_of(described)), work, program)
    planned = schedules_of(described, start)
    if dry_run:
        print_json({one.name: one.request for one in planned})
        return
    if remove:
        for one in planned:
            path = f"/api/v1/schedules/{one.name}"
            at.call("DELETE", path, Changed, namespace=namespace)
            say(f"{one.name} removed")
        return
    made = [
        at.call("PUT", f"/api/v1/schedules/{one.name}", SchedulePut, one.request,
                namespace=namespace)
        for one in planned
    ]  # fmt: skip
    if json:
        print_json(made)
        return
    for put in made:
        say(f"{put.schedule.name}: {put.schedule.cron}, next at {put.schedule.next_at}")


@fuzz.command
def workflows(
    solver: SolverName,
    /,
    *,
    output: Path = Path(".github/workflows"),
    at: Place = HERE,
    json: Json = False,
) -> None:
    """Write workflows of GitHub Actions that run the pipeline.

    Parameters
    ----------
    output
        The folder to write to; files that are there already are replaced.
    """
    file = find_solver(solver)
    if file.is_absolute() or ".." in file.parts:
        expected = "below the folder where the repository begins: run this there"
        raise InvalidInput("solver", expected, str(file))
    described = load_named(solver)
    path = shlex.quote(file.as_posix())
    made = workflows_of(described, at.bucket_of(described), path)
    output.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        (output / name).write_text(content)
    if json:
        print_json([str(output / name) for name in made])
        return
    for name in made:
        say(output / name)


def _for_all(bucket: str) -> str:
    """A directory by its whole path, for jobs start elsewhere."""
    parts = urlsplit(bucket)
    return bucket if parts.scheme else str(Path(bucket).absolute())
