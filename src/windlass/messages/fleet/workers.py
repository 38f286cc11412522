"""Messages about many workers at once, version 1."""

import msgspec


class FleetWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as a grid shows it. `kind` is its pool, or its system and architecture."""

    id: int
    name: str
    status: str
    kind: str
    pool: str | None
    slots: int
    held: int
    reason: str | None


class FleetPage(msgspec.Struct, frozen=True, kw_only=True):
    """Workers by name, one page; `next` is the `after` of the next page.

    `statuses` counts all workers that match the other filters, `kinds` those of each kind by
    status, regardless of the filters on state and kind.
    """

    workers: list[FleetWorker]
    total: int
    statuses: dict[str, int]
    kinds: dict[str, dict[str, int]]
    next: str | None = None
