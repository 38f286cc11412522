"""Messages about many jobs at once, version 1."""

from typing import Literal

import msgspec

from windlass.messages.jobs import Where
from windlass.messages.numbers import Cursor, Id

Action = Literal["cancel", "retry", "prioritize"]


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Applies an action to the next jobs that match `where`, from the cursor `after` on.

    `where` needs at least one filter. Without `state` it applies to the jobs that the action can
    change: open jobs, or failed ones to retry. `dry_run` only counts them. If the reply has `next`,
    send it as `after` to continue. `at_most` bounds how many jobs this call changes.
    """

    action: Action
    where: Where
    reason: str = "Canceled"
    adjustment: int | None = None
    dry_run: bool = False
    after: Cursor = 0
    at_most: Id | None = None


class RefusedJob(msgspec.Struct, frozen=True):
    id: int
    reason: str


class BulkReply(msgspec.Struct, frozen=True, kw_only=True):
    """What one call did; `refused` lists the first few of `refusals`."""

    matched: int
    applied: int
    refusals: int = 0
    refused: list[RefusedJob] = []
    next: int | None = None


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks how many jobs an action on `where` would change."""

    action: Action
    where: Where


class PreviewReply(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs an action would change, and how certain that is: see `JobCount`.

    Only jobs that the action can change are counted; `only_own` means that the caller may change
    only its own submissions. To change what was counted, send `where` and `after` with the action:
    they leave out other jobs, and those submitted since.
    """

    count: int
    exact: bool
    looked: int
    estimate: int | None = None
    only_own: bool = False
    where: Where = Where()
    after: Cursor = 0
