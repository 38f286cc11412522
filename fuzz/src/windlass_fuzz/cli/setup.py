"""Commands that set up a pipeline: in a bucket, on a fleet, on GitHub Actions."""

import asyncio
import os
import shlex
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Flag, Json
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.text import print_json, say
from windlass.messages.schedules import SchedulePut
from windlass.messages.workers import Changed
from windlass_fuzz.buckets.expiry import DAYS, set_expiry_rule
from windlass_fuzz.buckets.layout import builds_prefix
from windlass_fuzz.cli.app import (
    DEFAULT_LOCATION,
    DryRun,
    FuzzContext,
    Location,
    SolverName,
    check_options,
    fuzz,
    run_step,
    warn,
)
from windlass_fuzz.cli.progress import Progress
from windlass_fuzz.cli.report_output import say_built, say_fuzzed
from windlass_fuzz.cli.roles import RELEASED, parse_budget_ms, stop_on_sigterm
from windlass_fuzz.config.fleet_schedules import WorkerCommand, schedules_of
from windlass_fuzz.config.github_workflows import check_file, plain_check, workflows_of
from windlass_fuzz.config.recognition import current_branch, recognise, solver_file
from windlass_fuzz.config.solver_file import SUFFIXES, find_solver, load_named
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.processes.workspace import workspace
from windlass_fuzz.roles.builder import Builder, BuildReport
from windlass_fuzz.roles.fuzzer import Fuzzer, FuzzReport
from windlass_fuzz.sources.mirror import check_repository
from windlass_fuzz.state.open import check_bucket_name


@fuzz.command
def init(
    solver: Annotated[str, Parameter(help="The solver file, its name, or a project's folder.")],
    /,
    *,
    budget: Annotated[
        str | None,
        Parameter(help="Of a project's folder: also fuzz its newest commit for so long."),
    ] = None,
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Check the solver file and its bucket, and make builds expire after seven days.

    For a folder with CMake, Meson, Autotools, a Makefile or scripts for OSS-Fuzz, writes the solver
    file first, builds the newest commit, and exits with 1 if that fails.
    """
    if Path(solver).is_dir() and not any(Path(f"{solver}{end}").is_file() for end in SUFFIXES):
        name = _describe(Path(solver))
        _init(name, location, json)
        _try_out(name, budget, location, json)
    else:
        _init(solver, location, json)


def _describe(folder: Path) -> str:
    """Writes a solver file for a project, unless there is one; returns its name."""
    project = recognise(folder)
    file = Path(f"{project.name}.yaml")
    if file.exists():
        warn(f"{file} is already there and stays as it is; remove it to write another")
        return str(file)
    file.write_text(solver_file(project, os.path.relpath(folder), current_branch(folder)))
    targets = ", ".join(f"{name} ({source})" for name, source in project.harnesses.items())
    warn(f"{file}: {project.system}, targets {targets}")
    return str(file)


def _try_out(name: str, budget: str | None, location: Location, json: bool) -> None:
    """Builds the newest commit, and fuzzes it if there is a budget."""

    async def step(context: FuzzContext) -> tuple[BuildReport, FuzzReport | None]:
        progress = Progress(context.pipeline.runtime.clock, json)
        solver, pipeline = context.solver, context.pipeline
        with workspace(context.work, solver.name, "builder") as folder:
            building = Builder(solver, pipeline, folder, progress.notify).run_once(solver.branch)
            built = await stop_on_sigterm(building, RELEASED)
        if built.outcome != "built" or budget is None:
            return built, None
        with workspace(context.work, solver.name, "fuzzer") as folder, progress.live():
            fuzzer = Fuzzer(
                solver, pipeline, folder, progress.notify, progress.fuzzing_progress,
                budget_ms=parse_budget_ms(budget),
            )  # fmt: skip
            return built, await stop_on_sigterm(fuzzer.run_once(built.commit), RELEASED)

    built, fuzzed = run_step(name, location, step)
    if json:
        print_json({"built": built, "fuzzed": fuzzed})
    else:
        say_built(built, name)
        if fuzzed is not None:
            say_fuzzed(fuzzed, name)
        elif built.outcome == "built":
            say(f"next: windlass fuzz run {name} --budget 10m")
    if built.outcome == "failed":
        raise SystemExit(FAILED)


def _init(solver: str, location: Location, json: bool) -> None:
    described = load_named(solver)
    check_options(described)
    asyncio.run(check_repository(described.repository, *described.branch_names))
    url = location.bucket_of(described)
    schedules_of(described, WorkerCommand(_absolute(url)))  # refuses what `install` would
    parts = urlsplit(url)
    applied = False
    if parts.scheme == "s3":
        check_bucket_name(parts.netloc)
    if parts.scheme == "s3":
        applied = set_expiry_rule(parts.netloc, described.name, parts.path.strip("/"))

    async def step(context: FuzzContext) -> str:
        return context.pipeline.bucket.name

    name = run_step(solver, location, step)
    if json:
        print_json({"solver": described.name, "bucket": name, "rule_set": applied})
        return
    say(f"{described.name} keeps its state in {name}")
    who = "by its lifecycle rule" if parts.scheme == "s3" else "by the manager"
    say(f"{builds_prefix(described.name)}: removed after {DAYS} days {who}")


@fuzz.command
def install(
    solver: SolverName,
    /,
    *,
    remove: Flag = False,
    program: str = "windlass",
    namespace: str | None = None,
    dry_run: DryRun = False,
    location: Location = DEFAULT_LOCATION,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Register schedules for manager, builder, fuzzer and coverage on the fleet.

    Parameters
    ----------
    remove
        Remove the schedules instead.
    program
        The command that starts windlass on the workers.
    namespace
        Where the jobs run. Default: the token's namespace.
    """
    described = load_named(solver)
    check_options(described)
    work = None if location.work is None else str(location.work.absolute())
    start = WorkerCommand(_absolute(location.bucket_of(described)), work, program)
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
    output: Path | None = None,
    check: Flag = False,
    plain: Flag = False,
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Write GitHub Actions workflows that run the pipeline and check pull requests.

    Parameters
    ----------
    output
        The folder to write to; existing files are replaced. Default: .github/workflows, with
        --plain this folder.
    check
        Write only the workflow that checks pull requests; it needs no bucket.
    plain
        Write only a shell script that checks changes, for other CI; it needs no bucket.
    """
    file = find_solver(solver)
    if file.is_absolute() or ".." in file.parts:
        message = f"{file} is outside this folder; run this in the top folder of the repository"
        raise InvalidSetting("solver", message, str(file))
    described = load_named(solver)
    check_options(described)
    path = shlex.quote(file.as_posix())
    if plain:
        made = plain_check(described, path)
    elif check:
        made = check_file(described, path)
    else:
        made = workflows_of(described, location.bucket_of(described), path)
    output = output or Path("." if plain else ".github/workflows")
    output.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        (output / name).write_text(content)
        if plain:
            # A script that anybody may run and only its owner may change.
            (output / name).chmod(0o755)  # nosec B103
    repository = Path(described.repository)
    if repository.is_absolute() and repository.resolve() != Path.cwd().resolve():
        warn(
            f"{repository} is a folder of this machine, which runners do not have: give the "
            "repository's URL, or set `repository: .` and run this in its top folder"
        )
    if json:
        print_json([str(output / name) for name in made])
        return
    for name in made:
        say(output / name)


def _absolute(bucket: str) -> str:
    """Makes a directory's path absolute: jobs start in other folders."""
    parts = urlsplit(bucket)
    return bucket if parts.scheme else str(Path(bucket).absolute())
