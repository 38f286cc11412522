"""Calls between simulated agents or clients and servers, over a network that fails.

A request may be late, lost, duplicated or overtaken, and so may its reply. A partition works in one
direction. A closed connection may go unnoticed at the other end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from windlass.domain.values.errors import Unreachable, WindlassError
from windlass.engine.engine import Engine
from windlass.simulator.server import Server
from windlass.simulator.world import World

Request = Callable[[Engine], Awaitable[Any]]
Answer = Callable[[Any], None]


class Weather(Struct, frozen=True):
    """How often calls fail, as probabilities, and how long they take."""

    lost: float = 0.0
    reply_lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    late_ms: int = 8_000
    delay_ms: int = 30
    hang_up_unnoticed: float = 0.0


class Call:
    """One request in flight; its answer comes at most once, and never after `hang_up`."""

    def __init__(self, network: "Network", answer: Answer) -> None:
        self._network = network
        self._answer: Answer | None = answer
        self._tasks: list[asyncio.Task[Any]] = []

    @property
    def over(self) -> bool:
        """Returns True if nobody waits for the answer any more."""
        return self._answer is None

    def serve(self, task: "asyncio.Task[Any]") -> None:
        """Counts a request that a server works on."""
        self._tasks.append(task)

    def give(self, answer: Any) -> None:
        """Delivers the answer."""
        if self._answer is not None:
            take, self._answer = self._answer, None
            take(answer)

    def hang_up(self) -> None:
        """Stops waiting; the server may notice, and stop."""
        if self._answer is None:
            return
        self._answer = None
        if not self._network.misses_hang_up():
            for task in self._tasks:
                task.cancel()


class Network:
    """All connections."""

    def __init__(self, world: World, weather: Weather) -> None:
        self._world = world
        self._weather = weather
        self._cut: dict[tuple[str, str], float] = {}  # (from, to) → until when

    def cut(self, source: str, target: str, duration_ms: int) -> None:
        """Drops all messages in this direction for a while."""
        self._world.faults["partition"] += 1
        self._cut[source, target] = self._world.loop.time() + duration_ms / 1000

    def heal(self) -> None:
        """Ends all partitions."""
        self._cut.clear()

    def misses_hang_up(self) -> bool:
        """Returns whether a closed connection goes unnoticed."""
        return self._world.fault("hang_up_unnoticed", self._weather.hang_up_unnoticed)

    def call(self, source: str, server: Server, request: Request, answer: Answer) -> Call:
        """Sends a request; `answer` gets the reply or the error, or is never called."""
        call = Call(self, answer)
        if self._arrives(source, server.name, "request_lost", self._weather.lost):
            self._world.after(self._delay(), self._deliver, call, source, server, request)
        if self._world.fault("request_doubled", self._weather.doubled):
            self._world.after(self._delay(), self._deliver, call, source, server, request)
        return call

    async def ask(self, source: str, server: Server, request: Request, patience_ms: int) -> Any:
        """Returns the reply, for callers that wait for it; raises `Unreachable` if none comes."""
        replied: asyncio.Future[Any] = self._world.loop.create_future()
        call = self.call(source, server, request, lambda reply: _settle(replied, reply))
        timer = self._world.after(patience_ms, _settle, replied, Unreachable("no reply"))
        try:
            reply = await replied
        finally:
            timer.cancel()
            call.hang_up()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _arrives(self, source: str, target: str, name: str, rate: float) -> bool:
        if self._cut.get((source, target), 0.0) > self._world.loop.time():
            return False
        return not self._world.fault(name, rate)

    def _delay(self) -> int:
        if self._world.fault("message_late", self._weather.late):
            return self._world.between(self._weather.delay_ms, self._weather.late_ms)
        return self._world.between(1, self._weather.delay_ms)

    def _deliver(self, call: Call, source: str, server: Server, request: Request) -> None:
        if server.engine is None:
            self._reply(call, server.name, source, Unreachable("connection refused"))
            return
        task = server.context.run(self._world.loop.create_task, _serve(server.engine, request))
        call.serve(task)
        task.add_done_callback(lambda done: self._served(call, server.name, source, done))

    def _served(self, call: Call, server: str, source: str, task: "asyncio.Task[Any]") -> None:
        if not task.cancelled() and task.exception() is None:
            self._reply(call, server, source, task.result())

    def _reply(self, call: Call, server: str, source: str, reply: Any) -> None:
        if not call.over and self._arrives(server, source, "reply_lost", self._weather.reply_lost):
            self._world.after(self._delay(), call.give, reply)


async def _serve(engine: Engine, request: Request) -> Any:
    try:
        return await request(engine)
    except WindlassError as error:
        return error


def _settle(replied: "asyncio.Future[Any]", reply: Any) -> None:
    if not replied.done():
        replied.set_result(reply)
