"""Renders steps and questions as clients see them."""

from collections.abc import Sequence

import msgspec

from windlass.domain.rows.records import Attempt, ShownNumbers
from windlass.domain.rows.steps import StepKind, StepRow, StepState
from windlass.domain.values.quantities import format_moment
from windlass.messages.jobs import StepInfo
from windlass.messages.steps import Question


def show_question(row: StepRow) -> Question:
    """Renders an open question."""
    body = msgspec.json.decode(row.body or b"{}")
    return Question(
        job=row.job,
        key=row.key,
        namespace=row.namespace,
        question=body.get("question", ""),
        schema=body.get("schema"),
        asked_at=format_moment(row.asked_at),
        until=None if row.until is None else format_moment(row.until),
    )


def show_steps(rows: Sequence[StepRow], attempts: Sequence[Attempt]) -> list[StepInfo]:
    """Renders the steps of a job, without their values."""
    numbers = ShownNumbers(attempts)
    return [_show_step(row, numbers) for row in rows]


def _show_step(row: StepRow, numbers: ShownNumbers) -> StepInfo:
    asked = msgspec.json.decode(row.body).get("question") if row.body else None
    return StepInfo(
        key=row.key,
        kind=StepKind(row.kind).name.lower(),
        state=StepState(row.state).name.lower(),
        attempt=numbers(row.attempt),
        asked_at=format_moment(row.asked_at),
        until=None if row.until is None else format_moment(row.until),
        ended_at=None if row.ended_at is None else format_moment(row.ended_at),
        name=row.name,
        question=asked,
        actor=row.actor,
    )
