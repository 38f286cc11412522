"""Explains that no job is assigned, because the store was restored from a backup."""

from windlass.domain.explain.explanation import Step, Waiting
from windlass.domain.values.quantities import readable_duration
from windlass.domain.values.times import format_moment
from windlass.engine.explain.reasons import Reasons
from windlass.engine.fleet.epochs import HOLD
from windlass.engine.transaction.catalog import Catalog
from windlass.ports.store import ReadTx


async def after_restore(tx: ReadTx, catalog: Catalog) -> Reasons:
    """Returns why no job at all is assigned now; empty if jobs are."""
    if catalog.behind:
        text = "the new epoch: workers know a newer one than the store, which is an old backup"
        step = Step(
            action="begin_epoch", text="stop the servers, begin a new epoch, start them again",
            command="windlass db restored",
        )  # fmt: skip
        return Reasons((Waiting(kind="restored", text=text),), (step,))
    hold_until = (await tx.catalog.meta()).get(HOLD, 0)
    left = hold_until - tx.now
    if left <= 0:
        return Reasons()
    until = format_moment(hold_until)
    text = (
        "the grace period of the new epoch after a restore, in which workers end their old jobs: "
        f"{readable_duration(left)} left, until {until}"
    )
    step = Step(action="wait", text=f"wait until {until}", until=until)
    return Reasons((Waiting(kind="restored", text=text, until=until),), (step,))
