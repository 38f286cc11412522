"""Steps of jobs, and signals."""

from windlass.domain.rows.steps import SignalRow, StepRow
from windlass.store.sql.session import Role, of_ids, query


class Steps(Role):
    """Writes steps and signals."""

    __slots__ = ()

    find = query("find_step", int, str).row(StepRow)
    """Returns the step of a job with this key."""

    count = query("count_steps", int).number()
    """Returns how many steps a job has."""

    of_jobs = of_ids("steps_of_jobs").lists(StepRow)
    """Returns the steps of these jobs without their values, in the order they were begun."""

    questions = query("asked_questions", int, int).rows(StepRow)
    """Returns pending questions of suspended jobs above an id, ascending by job and key, up to a
    number.
    """

    joining = query("joining_steps", int, int).rows(StepRow)
    """Returns pending waits for jobs, of jobs above an id, up to a number.

    They ascend by job and key.
    """

    async def next_signal(
        self, namespace: str, name: str, *, after: int, since: int, until: int
    ) -> SignalRow | None:
        """Returns the oldest signal above the number `after`, sent from `since` to `until`."""
        wanted = (namespace, name, after, since, until)
        return await self._session.row(SignalRow, "next_signal", *wanted)

    signal_of_key = query("signal_of_key", str, str, str).row(SignalRow)
    """Returns a signal by namespace, name and the key that it was sent with."""

    last_signal = query("last_signal", str, str).number()
    """Returns the highest number of a namespace's signal with this name, or 0."""

    count_signals = query("count_signals", str, int).number()
    """Returns how many signals are kept in a namespace; counts up to a number."""

    open_signals = query("open_signals", int).rows(SignalRow)
    """Returns the oldest signals that some waiting jobs may not have received, up to a number."""

    async def waiting(self, signal: SignalRow, count: int) -> list[StepRow]:
        """Returns pending steps that wait for this signal.

        Steps that began after it, or whose wait ended before it, are left out.
        """
        wanted = (signal.namespace, signal.name, signal.id, signal.at, count)
        return await self._session.rows(StepRow, "waiting_steps", *wanted)

    lock_step = query("lock_step", int, str).row(StepRow)
    """Locks and reads the step of a job with this key."""

    put = query("put_step").record(StepRow)
    """Writes a step, new or changed."""

    lock_pending = of_ids("pending_steps").rows(StepRow)
    """Locks and reads the pending steps of these jobs."""

    lock_name = query("lock_name", str, str).lock()
    """Keeps others from sending a namespace's signal, or starting to wait for it, until commit."""

    add_signal = query("insert_signal").insert(SignalRow)
    """Writes a signal with a fresh id, and returns the id."""

    close_signal = query("close_signal", int).run()
    """Records that all waiting jobs have received it."""

    drop_signals = query("drop_signals", int, int).count()
    """Removes signals that were sent before a time, up to a number; returns how many."""
