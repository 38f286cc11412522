"""`windlass fuzz queue`: commits that a person adds, removes or puts back."""

from windlass.cli.fuzz_app import (
    PLAINLY,
    CommitName,
    Manner,
    Opened,
    SolverName,
    queue,
)
from windlass.cli.fuzz_steps import building, carry_out, known_commit, standing
from windlass.domain.values.errors import NotFound
from windlass.fuzzing import rules


@queue.command
def add(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    how: Manner = PLAINLY,
) -> None:
    """Put a commit into the build queue, whatever it changes; out of `failed` if it is there."""

    async def step(there: Opened) -> bool:
        return await building(there).add(await known_commit(there, commit))

    carry_out(solver, how, step)


@queue.command
def remove(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    how: Manner = PLAINLY,
) -> None:
    """Take a commit out of the build queue, `built`, `failed` and the schedule."""

    async def step(there: Opened) -> bool:
        name = await standing(there, commit)
        queued = await there.board.queue.update(lambda known: rules.remove_by_hand(known, name))
        scheduled = await there.board.schedule.update(
            lambda known: rules.drop_from_schedule(known, (name,))
        )
        return queued.applied or scheduled.applied

    carry_out(solver, how, step)


@queue.command
def retry(
    solver: SolverName,
    commit: CommitName,
    /,
    *,
    how: Manner = PLAINLY,
) -> None:
    """Put a failed commit back into the build queue."""

    async def step(there: Opened) -> bool:
        name = await standing(there, commit)
        chain = there.board.queue
        written = await chain.update(lambda known: rules.retry_failed(known, name))
        if not written.applied and name not in written.value.queue:
            raise NotFound("failed commit", name)
        return written.applied

    carry_out(solver, how, step)
