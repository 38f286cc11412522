"""Records the reactions to ends of workflows in the same transaction as the end.

So no end loses its reactions, and a reaction fires once per run, even after a crash.
"""

from collections.abc import Sequence
from typing import Any

from windlass.domain.lifecycle.workflow_state import Details, WorkflowState, decode_details
from windlass.domain.schedules import ReactionKind, ReactionRow, ReactionState, Trigger, triggers
from windlass.store.sql.transaction import WriteTx


async def note_ends(tx: WriteTx, ends: Sequence[tuple[int, int, WorkflowState]]) -> None:
    """Records the reactions to these ends: workflow, run, and final state."""
    about = await tx.workflows.about([workflow for workflow, _, _ in ends])
    rows: list[ReactionRow] = []
    for workflow, run, state in ends:
        details = decode_details(about[workflow].body)
        for trigger in triggers(state):
            for place, value in enumerate(reactions_for(details, trigger)):
                rows.append(
                    ReactionRow(
                        0, workflow, run, int(trigger), place, _kind(value),
                        ReactionState.PENDING, 0, tx.now, tx.now, None, int(state), None, None,
                    )
                )  # fmt: skip
    if rows:
        await tx.reactions.add(rows)


def reactions_for(details: Details, trigger: int) -> list[Any]:
    """Returns the reactions of a workflow to one kind of end, as they were submitted."""
    chosen = {
        Trigger.SUCCESS: details.on_success,
        Trigger.FAILURE: details.on_failure,
        Trigger.END: details.on_end,
    }
    return chosen[Trigger(trigger)]


def _kind(value: Any) -> int:
    if value.get("webhook") is not None:
        return ReactionKind.WEBHOOK
    return ReactionKind.SUBMIT if value.get("retry") is None else ReactionKind.RETRY
