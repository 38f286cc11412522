"""Explains that no job is assigned, because a restore or a failover lost commits."""

from windlass.domain.explain.explanation import Step, Waiting
from windlass.domain.values.quantities import format_moment, readable_duration
from windlass.engine.explain.reasons import Reasons
from windlass.engine.fleet.epochs import HOLD
from windlass.store.sql.transaction import ReadTx


async def after_restore(tx: ReadTx) -> Reasons:
    """Returns why no job at all is assigned now; empty if jobs are."""
    hold_until = (await tx.catalog.meta()).get(HOLD, 0)
    left = hold_until - tx.now
    if left <= 0:
        return Reasons()
    until = format_moment(hold_until)
    text = (
        "the grace period of the new epoch after a restore or a lossy failover, in which workers "
        f"end their old jobs: {readable_duration(left)} left, until {until}"
    )
    step = Step(action="wait", text=f"wait until {until}", until=until)
    return Reasons((Waiting(kind="restored", text=text, until=until),), (step,))
