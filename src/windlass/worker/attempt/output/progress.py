"""What a job says of its progress, on its way to the server: the newest, once a second."""

import asyncio
from typing import Any

from windlass.domain.values.errors import WindlassError
from windlass.ports.clock import Clock
from windlass.ports.gateway import AttemptGateway, Holder

PACE_MS = 1_000


class Progress:
    """The progress of one attempt."""

    def __init__(self, gateway: AttemptGateway, holder: Holder, clock: Clock) -> None:
        self._gateway = gateway
        self._holder = holder
        self._clock = clock
        self._values: list[Any] = []  # the newest, if it was not sent yet
        self._task: asyncio.Task[None] | None = None

    def tell(self, value: Any) -> None:
        """Sends this soon, unless a newer value comes before."""
        self._values = [value]
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._values:
            value = self._values.pop()
            try:
                await self._gateway.progress(self._holder, value)
            except WindlassError:
                pass  # Progress that nobody heard of is told again with the next.
            await self._clock.sleep_ms(PACE_MS)
