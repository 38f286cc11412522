"""Messages about many jobs at once, version 1."""

from typing import Literal

import msgspec

from windlass.wire.numbers import Cursor, Id

Action = Literal["cancel", "retry", "prioritize"]


class Where(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Selects jobs by the filters of a list; at least one is required.

    Without `state`, the jobs that the action can change: open jobs, or failed ones to retry.
    """

    state: list[str] = []
    queue: str | None = None
    namespace: str | None = None
    task: str | None = None
    name: str | None = None
    label: list[str] = []
    workflow: Id | None = None
    submitted_by: str | None = None
    dead: bool = False


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Applies an action to the next jobs that match `where`, from the cursor `after` on.

    `dry_run` only counts them. If the reply has `next`, send it as `after` to continue.
    """

    action: Action
    where: Where
    reason: str = "Canceled"
    adjustment: int | None = None
    dry_run: bool = False
    after: Cursor = 0


class RefusedJob(msgspec.Struct, frozen=True):
    id: int
    reason: str


class BulkReply(msgspec.Struct, frozen=True, kw_only=True):
    """What one call did; `refused` holds the first of `refusals`."""

    matched: int
    applied: int
    refusals: int = 0
    refused: list[RefusedJob] = []
    next: int | None = None
