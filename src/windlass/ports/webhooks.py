"""Who carries webhooks to their receivers."""

from typing import NamedTuple, Protocol


class Delivery(NamedTuple):
    """One webhook; `id` is the same each time it is sent."""

    id: str
    url: str
    secret: str
    body: bytes


class Delivered(NamedTuple):
    """What came of it: `status` is what the receiver answered with, 0 if nobody did.

    `final` says that it is no use to try again.
    """

    ok: bool
    status: int
    message: str | None
    final: bool = False


class Courier(Protocol):
    """Sends webhooks; it raises nothing."""

    async def deliver(self, delivery: Delivery) -> Delivered: ...

    async def close(self) -> None: ...
