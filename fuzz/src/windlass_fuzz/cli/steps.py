"""The single steps of builders and fuzzers, for custom pipelines."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Annotated, Any

from cyclopts import Parameter

from windlass.cli.output.consoles import errors
from windlass.cli.output.text import print_json, say
from windlass.domain.values.errors import NotFound
from windlass.domain.values.quantities import format_moment, parse_duration_ms
from windlass_fuzz.buckets.layout import build_log_key, check_commit
from windlass_fuzz.cli.app import (
    DEFAULT_LOCATION,
    DEFAULT_OPTIONS,
    CommitName,
    FuzzContext,
    Location,
    SolverName,
    StepOptions,
    Token,
    builder,
    fuzzer,
    run_step,
    set_workflow_outputs,
    warn,
)
from windlass_fuzz.config.fleet_schedules import builds_ms
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.processes.workspace import workspace
from windlass_fuzz.roles.build_steps import BuildSteps
from windlass_fuzz.roles.fuzz_steps import FuzzSteps
from windlass_fuzz.sources.open import open_commit_source
from windlass_fuzz.state.leases import HeldLease

Change = Callable[[str, str | None], Coroutine[Any, Any, bool]]  # holder of a commit, by its token
Commit = Annotated[
    str | None, Parameter(help="Add this commit and take it. Default: the next one.")
]
Lease = Annotated[
    str | None,
    Parameter(help="How long to hold the commit, such as 2h. Default: the longest possible run."),
]


@builder.command(name="next")
def next_commit(
    solver: SolverName,
    /,
    *,
    commit: Commit = None,
    lease: Lease = None,
    options: StepOptions = DEFAULT_OPTIONS,
) -> None:
    """Take the next commit to build and print it; print nothing if there is none."""

    async def take(context: FuzzContext, wanted: str | None) -> HeldLease | None:
        steps = build_steps(context)
        if wanted is not None:
            await steps.add(wanted)
        length = _length(lease, builds_ms(context.solver) + 600_000)
        taken = await steps.take(length, wanted)
        for gone in taken.given_up:
            warn(f"{gone} failed: its builds crashed too often")
        return taken.held

    _take(solver, commit, options, take, "nothing to build")


@builder.command
def mark_built(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    token: Token = None,
    options: StepOptions = DEFAULT_OPTIONS,
) -> None:
    """Move a commit from the queue to `built`, after both binaries were uploaded."""
    _give_back(solver, commit, token, options, lambda context: build_steps(context).mark_built)


@builder.command
def mark_failed(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    token: Token = None,
    options: StepOptions = DEFAULT_OPTIONS,
) -> None:
    """Move a commit from the queue to `failed`, after its build failed."""
    _give_back(solver, commit, token, options, lambda context: build_steps(context).mark_failed)


@builder.command
def log(
    solver: SolverName, commit: CommitName, /, *, location: Location = DEFAULT_LOCATION
) -> None:
    """Print the build log of a commit; a prefix of its hash is enough."""
    name = check_commit(commit)

    async def step(context: FuzzContext) -> str:
        start = build_log_key(context.solver.name, name).removesuffix(".log")
        known = [item.key async for item in context.pipeline.bucket.list(start.rpartition("/")[0])]
        key = unique_match(known, start, "commit")
        stored = None if key is None else await context.pipeline.bucket.get(key)
        if stored is None:
            raise NotFound("build log of commit", name)
        return stored.body.decode(errors="replace")

    say(run_step(solver, location, step, reading=True).rstrip())


@fuzzer.command
def select(
    solver: SolverName,
    /,
    *,
    commit: Commit = None,
    lease: Lease = None,
    options: StepOptions = DEFAULT_OPTIONS,
) -> None:
    """Take the least fuzzed commit and print it; print nothing if there is none."""

    async def take(context: FuzzContext, wanted: str | None) -> HeldLease | None:
        steps = FuzzSteps(context.pipeline)
        if wanted is not None:
            await steps.add(wanted)
        length = _length(lease, context.solver.budget_ms + 1_800_000)
        selected = await steps.select(length, wanted)
        for gone in selected.removed:
            warn(f"{gone} left the schedule: its binary is gone")
        return selected.held

    _take(solver, commit, options, take, "nothing to fuzz")


@fuzzer.command
def increment(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    token: Token = None,
    options: StepOptions = DEFAULT_OPTIONS,
) -> None:
    """Count that a commit was fuzzed, and remove it from the schedule if that is enough."""

    async def step(context: FuzzContext) -> Any:
        return await FuzzSteps(context.pipeline).increment(
            await resolve_in_state(context, commit), token
        )

    counted = run_step(solver, options, step, dry_run=options.dry_run)
    done = "would be done" if options.dry_run else "done"
    if options.json:
        print_json({"applied": counted.applied, "fuzz_count": counted.fuzz_count})
    elif not counted.applied:
        say("nothing to do")
    elif counted.fuzz_count is None:
        say(f"{done}: it leaves the schedule")
    else:
        say(f"{done}: fuzz_count is {counted.fuzz_count}")


@fuzzer.command
def release(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    token: Token = None,
    options: StepOptions = DEFAULT_OPTIONS,
) -> None:
    """Release a commit that was not fuzzed, without counting it."""

    def release_one(context: FuzzContext) -> Change:
        return FuzzSteps(context.pipeline).release_by_name

    _give_back(solver, commit, token, options, release_one)


async def resolve_commit(context: FuzzContext, commit: str) -> str:
    """Returns the full hash of a commit that a person named; raises if it does not exist."""
    check_commit(commit)
    with workspace(context.work, context.solver.name, "manager") as folder:
        commits = open_commit_source(context.solver, folder, context.pipeline.runtime)
        try:
            return await commits.resolve(commit)
        finally:
            await commits.close()


async def resolve_in_state(context: FuzzContext, commit: str) -> str:
    """Returns the full hash of a commit in the state from a prefix, or the prefix itself."""
    check_commit(commit)
    queue = await context.pipeline.queue.read()
    scheduled = [entry.hash for entry in await context.pipeline.schedule.read()]
    known = dict.fromkeys((*queue.queue, *queue.built, *queue.failed, *scheduled))
    return commit if commit in known else unique_match(list(known), commit, "commit") or commit


def unique_match(known: Iterable[str], beginning: str, what: str) -> str | None:
    """Returns the only name with this prefix, or None; raises if there are several."""
    matches = [name for name in known if name.startswith(beginning)]
    if len(matches) > 1:
        message = f"{len(matches)} match {what} {beginning}; type more of it"
        raise InvalidSetting(what, message, beginning)
    return matches[0] if matches else None


def build_steps(context: FuzzContext) -> BuildSteps:
    """Returns the steps of a builder of this solver."""
    return BuildSteps(context.pipeline, context.solver.build.tries)


def _take(
    solver: str,
    commit: str | None,
    options: StepOptions,
    take: Callable[[FuzzContext, str | None], Coroutine[Any, Any, HeldLease | None]],
    nothing: str,
) -> None:
    """Takes the named commit or the next one and prints it, or says that there is `nothing`."""

    async def step(context: FuzzContext) -> HeldLease | None:
        wanted = None if commit is None else await resolve_commit(context, commit)
        return await take(context, wanted)

    _print_held(run_step(solver, options, step, dry_run=options.dry_run), nothing, options)


def _give_back(
    solver: str,
    commit: str,
    token: str | None,
    options: StepOptions,
    change: Callable[[FuzzContext], Change],
) -> None:
    """Ends the work on a commit, and prints whether that changed anything."""

    async def step(context: FuzzContext) -> bool:
        return await change(context)(await resolve_in_state(context, commit), token)

    run_and_report(solver, options, step)


def _length(lease: str | None, usual_ms: int) -> int:
    return usual_ms if lease is None else parse_duration_ms(lease, "lease")


def _print_held(held: HeldLease | None, nothing: str, options: StepOptions) -> None:
    """Prints the commit, and its token unless this is a dry run."""
    token = "" if held is None or options.dry_run else held.token
    if not options.dry_run:
        set_workflow_outputs(commit=held.commit if held else "", token=token)
    if held is None:
        if options.json:
            print_json({"commit": None})
        else:
            errors.print(nothing, style="dim", highlight=False)
    elif options.dry_run and options.json:
        print_json({"commit": held.commit, "tries": held.tries, "dry_run": True})
    elif options.json:
        until = format_moment(held.until_ms)
        document = {"commit": held.commit, "token": token, "until": until, "tries": held.tries}
        print_json(document)
    else:
        say(held.commit)
        if options.dry_run:
            warn("this commit would be taken; nothing was written")


def run_and_report(
    solver: str, options: StepOptions, step: Callable[[FuzzContext], Coroutine[Any, Any, bool]]
) -> None:
    """Runs a step and prints whether it changed something, or would."""
    applied = run_step(solver, options, step, dry_run=options.dry_run)
    if options.json:
        print_json(
            {"applied": applied, "dry_run": True} if options.dry_run else {"applied": applied}
        )
    elif not applied:
        say("nothing to do")
    else:
        say("would be done; nothing was written" if options.dry_run else "done")
