"""The single steps of builders and fuzzers, for those who put a pipeline together themselves."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Annotated, Any

from cyclopts import Parameter

from windlass.cli.fuzz_app import (
    HERE,
    PLAINLY,
    CommitName,
    Manner,
    Opened,
    Place,
    SolverName,
    Token,
    builder,
    fuzzer,
    run_step,
    tell_workflow,
    warn,
)
from windlass.cli.output.consoles import errors
from windlass.cli.output.text import print_json, say
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.quantities import parse_duration_ms
from windlass.domain.values.times import format_moment
from windlass.fuzzing.layout import build_log_key, check_commit
from windlass.fuzzing.leases import Held
from windlass.fuzzing.opening import open_commits
from windlass.fuzzing.steps_build import BuildSteps
from windlass.fuzzing.steps_fuzz import FuzzSteps
from windlass.fuzzing.workplace import workplace

Commit = Annotated[
    str | None, Parameter(help="Add this commit by hand and take it. Default: the next one.")
]
Lease = Annotated[
    str | None,
    Parameter(help="How long the commit is held, such as 2h. Default: what the work may take."),
]


@builder.command(name="next")
def next_commit(
    solver: SolverName,
    /,
    *,
    commit: Commit = None,
    lease: Lease = None,
    how: Manner = PLAINLY,
) -> None:
    """Take the next commit to build and print it; print nothing if there is none."""

    async def step(there: Opened) -> Held | None:
        steps = building(there)
        wanted = None if commit is None else await known_commit(there, commit)
        if wanted is not None:
            await steps.add(wanted)
        length = _length(lease, 2 * there.solver.build.timeout_ms + 600_000)
        took = await steps.take(length, wanted)
        for gone in took.given_up:
            warn(f"{gone} failed: its builds crashed too often")
        return took.held

    _print_held(run_step(solver, how, step, dry_run=how.dry_run), "nothing to build", how)


@builder.command
def mark_built(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    token: Token = None,
    how: Manner = PLAINLY,
) -> None:
    """Both binaries are uploaded: move a commit from the queue to `built`."""

    async def step(there: Opened) -> bool:
        return await building(there).mark_built(await standing(there, commit), token)

    carry_out(solver, how, step)


@builder.command
def mark_failed(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    token: Token = None,
    how: Manner = PLAINLY,
) -> None:
    """A build failed: move a commit from the queue to `failed`."""

    async def step(there: Opened) -> bool:
        return await building(there).mark_failed(await standing(there, commit), token)

    carry_out(solver, how, step)


@builder.command
def log(solver: SolverName, commit: CommitName, /, *, at: Place = HERE) -> None:
    """Print what the builds of a commit said; the beginning of its hash is enough."""
    name = check_commit(commit)

    async def step(there: Opened) -> str:
        start = build_log_key(there.solver.name, name).removesuffix(".log")
        known = [item.key async for item in there.board.bucket.list(start.rpartition("/")[0])]
        key = one_of(known, start, "commit")
        stored = None if key is None else await there.board.bucket.get(key)
        if stored is None:
            raise NotFound("build log of commit", name)
        return stored.body.decode(errors="replace")

    say(run_step(solver, at, step, reading=True).rstrip())


@fuzzer.command
def select(
    solver: SolverName,
    /,
    *,
    commit: Commit = None,
    lease: Lease = None,
    how: Manner = PLAINLY,
) -> None:
    """Take the least fuzzed commit and print it; print nothing if there is none."""

    async def step(there: Opened) -> Held | None:
        steps = FuzzSteps(there.board)
        wanted = None if commit is None else await known_commit(there, commit)
        if wanted is not None:
            await steps.add(wanted)
        length = _length(lease, there.solver.budget_ms + 1_800_000)
        selected = await steps.select(length, wanted)
        for gone in selected.removed:
            warn(f"{gone} left the schedule: its binary is gone")
        return selected.held

    _print_held(run_step(solver, how, step, dry_run=how.dry_run), "nothing to fuzz", how)


@fuzzer.command
def increment(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    token: Token = None,
    how: Manner = PLAINLY,
) -> None:
    """A commit was fuzzed: count it, and let it go if it has been fuzzed enough."""

    async def step(there: Opened) -> Any:
        return await FuzzSteps(there.board).increment(await standing(there, commit), token)

    counted = run_step(solver, how, step, dry_run=how.dry_run)
    done = "would be done" if how.dry_run else "done"
    if how.json:
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
    how: Manner = PLAINLY,
) -> None:
    """A run failed to fuzz: give its commit back, uncounted."""

    async def step(there: Opened) -> bool:
        return await FuzzSteps(there.board).give_back(await standing(there, commit), token)

    carry_out(solver, how, step)


async def known_commit(there: Opened, commit: str) -> str:
    """The full hash of a commit that a person names; refused if the repository has none such."""
    check_commit(commit)
    with workplace(there.work, there.solver.name, "manager") as folder:
        commits = open_commits(there.solver, folder, there.board.around)
        try:
            return await commits.resolve(commit)
        finally:
            await commits.close()


async def standing(there: Opened, commit: str) -> str:
    """The full hash of a commit in the state that begins so, as `status` shows it; else itself."""
    check_commit(commit)
    queue = await there.board.queue.read()
    scheduled = [entry.hash for entry in await there.board.schedule.read()]
    known = dict.fromkeys((*queue.queue, *queue.built, *queue.failed, *scheduled))
    return commit if commit in known else one_of(list(known), commit, "commit") or commit


def one_of(known: Iterable[str], beginning: str, what: str) -> str | None:
    """The only one that begins so; None if there is none, refused if there are several."""
    fitting = [name for name in known if name.startswith(beginning)]
    if len(fitting) > 1:
        raise InvalidInput(what, f"more of it: {len(fitting)} begin so", beginning)
    return fitting[0] if fitting else None


def building(there: Opened) -> BuildSteps:
    """The steps of a builder of this solver."""
    return BuildSteps(there.board, there.solver.build.tries)


def _length(lease: str | None, usual_ms: int) -> int:
    return usual_ms if lease is None else parse_duration_ms(lease, "lease")


def _print_held(held: Held | None, nothing: str, how: Manner) -> None:
    """The commit; its token too, unless it was only looked for and nobody holds it."""
    token = "" if held is None or how.dry_run else held.token
    if not how.dry_run:
        tell_workflow(commit=held.commit if held else "", token=token)
    if held is None:
        if how.json:
            print_json({"commit": None})
        else:
            errors.print(nothing, style="dim", highlight=False)
    elif how.dry_run and how.json:
        print_json({"commit": held.commit, "tries": held.tries, "dry_run": True})
    elif how.json:
        until = format_moment(held.until_ms)
        told = {"commit": held.commit, "token": token, "until": until, "tries": held.tries}
        print_json(told)
    else:
        say(held.commit)
        if how.dry_run:
            warn("it would be taken; nothing was written")


def carry_out(
    solver: str, how: Manner, step: Callable[[Opened], Coroutine[Any, Any, bool]]
) -> None:
    """Take a step, and tell whether it changed something, or would."""
    applied = run_step(solver, how, step, dry_run=how.dry_run)
    if how.json:
        print_json({"applied": applied, "dry_run": True} if how.dry_run else {"applied": applied})
    elif not applied:
        say("nothing to do")
    else:
        say("would be done; nothing was written" if how.dry_run else "done")
