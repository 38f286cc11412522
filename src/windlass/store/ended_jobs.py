"""Which jobs of a walk have ended, the same way on every store."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from windlass.ports.store.records.retention import Ended


class Passed(NamedTuple):
    """A job that the walk came by."""

    job: int
    shape: int
    workflow: int | None
    created_at: int
    state: int | None
    finished_at: int | None


def judge_rows(
    rows: Sequence[Iterable[Any]], created_before: int, count: int
) -> tuple[list[Ended], int]:
    """Returns the ended ones up to the first that is too young, and where to go on (0: nowhere)."""
    ended: list[Ended] = []
    last = 0
    for row in map(Passed._make, rows):
        if row.created_at >= created_before:
            return ended, 0
        if row.finished_at is not None:
            ended.append(Ended(row.job, row.shape, row.workflow, row.finished_at))
        last = row.job
    return ended, last if len(rows) == count else 0
