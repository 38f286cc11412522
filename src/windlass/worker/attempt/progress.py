"""A job's progress and signs of life: sends the newest, at most once a second."""

import asyncio
from typing import Any, Protocol

from windlass.domain.values.errors import WindlassError
from windlass.messages.steps import StepRequest
from windlass.ports.clock import Clock
from windlass.ports.gateway import AttemptGateway, Holder

PACE_MS = 1_000
ALIVE = StepRequest(do="alive")


class Context(Protocol):
    """The server, and time."""

    @property
    def gateway(self) -> AttemptGateway: ...

    @property
    def clock(self) -> Clock: ...


class Progress:
    """The progress of one attempt."""

    def __init__(self, context: Context, holder: Holder) -> None:
        self._gateway = context.gateway
        self._holder = holder
        self._clock = context.clock
        self._values: list[Any] = []  # the newest, if it was not sent yet
        self._alive = False  # whether there is a sign of life to pass on
        self._task: asyncio.Task[None] | None = None

    def tell(self, value: Any) -> None:
        """Sends this soon, unless a newer value comes first."""
        self._values = [value]
        self._begin()

    def note_alive(self) -> None:
        """Passes on a sign of life soon."""
        self._alive = True
        self._begin()

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._values or self._alive:
            self._alive = False
            try:
                if self._values:
                    await self._gateway.progress(self._holder, self._values.pop())
                else:
                    await self._gateway.step(self._holder, ALIVE)
            except WindlassError:
                pass  # Progress that could not be sent goes out with the next.
            await self._clock.sleep_ms(PACE_MS)
