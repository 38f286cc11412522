"""`windlass fuzz queue`: adds, removes and retries commits by hand."""

from windlass.domain.values.errors import NotFound
from windlass_fuzz.cli.app import (
    DEFAULT_OPTIONS,
    CommitName,
    FuzzContext,
    SolverName,
    StepOptions,
    queue,
)
from windlass_fuzz.cli.steps import build_steps, resolve_commit, resolve_in_state, run_and_report
from windlass_fuzz.state import rules


@queue.command
def add(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    options: StepOptions = DEFAULT_OPTIONS,
) -> None:
    """Add a commit to the build queue, whatever it changes, and even if its build failed before."""

    async def step(context: FuzzContext) -> bool:
        return await build_steps(context).add(await resolve_commit(context, commit))

    run_and_report(solver, options, step)


@queue.command
def remove(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    options: StepOptions = DEFAULT_OPTIONS,
) -> None:
    """Remove a commit from the build queue, `built`, `failed` and the schedule."""

    async def step(context: FuzzContext) -> bool:
        name = await resolve_in_state(context, commit)
        queued = await context.pipeline.queue.update(
            lambda known: rules.remove_by_hand(known, name)
        )
        scheduled = await context.pipeline.schedule.update(
            lambda known: rules.drop_from_schedule(known, (name,))
        )
        return queued.applied or scheduled.applied

    run_and_report(solver, options, step)


@queue.command
def retry(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    options: StepOptions = DEFAULT_OPTIONS,
) -> None:
    """Move a failed commit back to the build queue."""

    async def step(context: FuzzContext) -> bool:
        name = await resolve_in_state(context, commit)
        state_file = context.pipeline.queue
        written = await state_file.update(lambda known: rules.retry_failed(known, name))
        if not written.applied and name not in written.value.queue:
            raise NotFound("failed commit", name)
        return written.applied

    run_and_report(solver, options, step)
