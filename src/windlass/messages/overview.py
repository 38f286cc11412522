"""Messages about the whole system: counts over time, and what needs attention, version 1."""

from typing import Any, Final, Literal

import msgspec

LOST_COMMITS: Final = "lost_commits"  # a kind of `AttentionItem`


class QueueFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to the jobs of a queue in each slot; None where nothing is known.

    `queue` is None for several queues together. `now` is how many jobs are in each open state.
    Waits (of first attempts) and run times (of completed jobs) are in seconds.
    """

    queue: str | None
    now: dict[str, int]
    submitted: list[int]
    started: list[int]
    completed: list[int]
    failed: list[int]
    stopped: list[int]  # canceled, aborted or rejected
    rejected: list[int]
    canceled: list[int]
    retried: list[int]
    lost: list[int]  # attempts whose worker was lost
    queued: list[int | None]
    blocked: list[int | None]
    running: list[int | None]
    wait_p50: list[float | None]
    wait_p90: list[float | None]
    run_p50: list[float | None]
    run_p90: list[float | None]


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """A farm at a glance, in slots of `step` seconds.

    `times` are the starts of the slots, in seconds since 1970. Counts include everything before
    `counted_until`, and nothing later. `queues` are the busiest ones; `others` are the rest
    together.
    """

    since: str
    until: str
    step: int
    times: list[int]
    counted_until: str
    as_of: str | None = None
    total: QueueFigures
    queues: list[QueueFigures]
    others: QueueFigures | None = None
    failures: dict[str, list[int]]  # jobs that failed, by class
    workers_now: dict[str, int]
    workers: dict[str, list[int | None]]  # by state
    pools: dict[str, list[int | None]]  # living workers, by pool


class Help(msgspec.Struct, frozen=True, kw_only=True):
    """A request that would help, for callers who have the right `needs`."""

    label: str
    method: Literal["POST"]
    path: str
    needs: str
    body: dict[str, Any] | None = None


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The dashboard view where a person continues, and what they do there."""

    label: str
    link: str


class AttentionItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person should check.

    `exact` is False if there may be more than `count`. `link` is a dashboard view with the filter
    that shows them. An item that no request can fix has a `look`. `first_at` and `last_at` are when
    the first and the last of them failed. `key` stays the same while the cause does.
    """

    kind: str
    severity: Literal["error", "warning", "info"]
    title: str
    reason: str
    count: int
    exact: bool = True
    link: str
    key: str = ""
    first_at: str | None = None
    last_at: str | None = None
    help: Help | None = None
    look: Look | None = None


class AttentionList(msgspec.Struct, frozen=True):
    """What needs attention, the most severe first."""

    items: list[AttentionItem]
