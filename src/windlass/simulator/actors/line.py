"""An agent's line to the servers: one call in force, and nothing heard while it is stopped."""

import asyncio
from collections.abc import Callable
from typing import Any

from windlass.simulator.actors.server import Server
from windlass.simulator.world.network import Call, Network, Request
from windlass.simulator.world.world import World


class Line:
    """Belongs to one agent process at a time; what was meant for an older one is dropped."""

    def __init__(self, world: World, network: Network, servers: list[Server], name: str) -> None:
        self.alive = False
        self._world = world
        self._network = network
        self._servers = servers
        self._name = name
        self._life = 0  # which agent process this is
        self._paused = False
        self._backlog: list[Callable[[], None]] = []
        self._call: Call | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A new agent process."""
        self.alive = True
        self._life += 1

    def end(self) -> None:
        """The agent process is gone, and with it all it has not heard yet."""
        self.alive = False
        self._paused = False
        self._backlog.clear()
        self.hang_up()

    def pause(self) -> None:
        """SIGSTOP."""
        self._paused = self.alive

    def resume(self) -> None:
        """SIGCONT: everything that came in meanwhile is seen now."""
        if self._paused:
            self._paused = False
            backlog, self._backlog = self._backlog, []
            for step in backlog:
                step()

    def when_awake(self, step: Callable[..., None]) -> Callable[..., None]:
        """`step` for this life only, and not before the agent is awake."""
        life = self._life

        def run(*args: Any) -> None:
            if not self.alive or self._life != life:
                return
            if self._paused:
                self._backlog.append(lambda: run(*args))
            else:
                step(*args)

        return run

    def send(
        self, request: Request, take: Callable[[Any], None], again: Callable[[], None],
        patience_ms: int,
    ) -> None:  # fmt: skip
        """Make a call to some server; an older one is given up."""
        self.hang_up()
        server = self._world.chance.choice(self._servers)

        def taken(reply: Any) -> None:
            if self._call is call:
                self.hang_up()
                take(reply)

        def unanswered() -> None:
            if self._call is call:
                again()

        call = self._network.call(self._name, server, request, self.when_awake(taken))
        self._call = call
        self._timer = self._world.after(patience_ms, self.when_awake(unanswered))

    def later(self, delay_ms: float, step: Callable[[], None]) -> None:
        """Do this next, unless something else is done before."""
        self.hang_up()
        self._timer = self._world.after(delay_ms, self.when_awake(step))

    def hang_up(self) -> None:
        """Wait for nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._call is not None:
            call, self._call = self._call, None
            call.hang_up()
