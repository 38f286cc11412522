"""Messages about many jobs at once, version 1."""

from typing import Annotated, Literal

import msgspec

Action = Literal["cancel", "retry", "prioritize"]


class Where(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs: the filters of a list, at least one of them.

    Without `state` an edit is for those it can change: open jobs, or failed ones to retry.
    """

    state: list[str] = []
    queue: str | None = None
    namespace: str | None = None
    task: str | None = None
    name: str | None = None
    label: list[str] = []
    workflow: Annotated[int, msgspec.Meta(ge=1, le=2**62)] | None = None
    submitted_by: str | None = None
    dead: bool = False


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Do this to the next jobs that pass `where`, from the cursor `after` on.

    `dry_run` only counts them. A reply with `next` has left some: ask again, `after` it.
    """

    action: Action
    where: Where
    reason: str = "Canceled"
    adjustment: int | None = None
    dry_run: bool = False
    after: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0


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
