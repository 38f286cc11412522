"""The port that delivers webhooks."""

from typing import NamedTuple, Protocol


class Delivery(NamedTuple):
    """One webhook; `id` is the same each time it is sent."""

    id: str
    url: str
    secret: str
    body: bytes


class Delivered(NamedTuple):
    """The outcome: `status` is the receiver's HTTP status, if there was an answer.

    `final` means that another try is useless.
    """

    ok: bool
    status: int | None
    message: str | None
    final: bool = False


class Courier(Protocol):
    """Sends webhooks; never raises."""

    async def deliver(self, delivery: Delivery) -> Delivered: ...

    async def close(self) -> None: ...
