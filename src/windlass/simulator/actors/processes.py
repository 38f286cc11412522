"""Simulated processes of jobs, and the keeper that ends them when it must (mechanics 7).

The registry of all live processes proves S7: at most one for each job, at any time.
"""

import asyncio
from collections.abc import Callable

from windlass.simulator.world.world import World

Key = tuple[int, int]  # job, attempt


class Processes:
    """Every live process of the whole fleet."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._live: dict[int, list[str]] = {}
        self.launched = 0

    def begin(self, job: int, who: str) -> None:
        """A process for this job exists from now on."""
        others = self._live.setdefault(job, [])
        if others:
            at = self._world.clock.now_ms()
            self._world.found("S7", f"at {at} {who} launched it, {others} runs it", job)
        others.append(who)
        self.launched += 1

    def end(self, job: int, who: str) -> None:
        """It exists no more."""
        self._live[job].remove(who)


class Process:
    """One process group. It ends by itself or is stopped, and tells how."""

    def __init__(
        self, world: World, processes: Processes, key: Key, who: str,
        ended: Callable[["Process", str], None],
    ) -> None:  # fmt: skip
        self.key = key
        self.live = True
        self.stopping = False
        self._world = world
        self._processes = processes
        self._who = who
        self._ended = ended
        self._timer: asyncio.TimerHandle | None = None
        processes.begin(key[0], who)

    def run(self, duration_ms: int, outcome: str) -> None:
        """End by itself after a while, in this way."""
        self._timer = self._world.after(duration_ms, self._end, outcome)

    def stop(self, outcome: str, grace_ms: int) -> None:
        """SIGTERM; it may use up the grace before it ends, or is killed."""
        if not self.live or self.stopping:
            return
        self.stopping = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._world.after(self._world.between(0, grace_ms), self._end, outcome)

    def kill(self) -> None:
        """SIGKILL to the whole group; nobody hears of it."""
        if self.live:
            self.live = False
            if self._timer is not None:
                self._timer.cancel()
            self._processes.end(self.key[0], self._who)

    def _end(self, outcome: str) -> None:
        if self.live:
            self.kill()
            self._ended(self, outcome)


class Keeper:
    """Kills the processes of one incarnation when its lease may be about to end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._processes: dict[Key, Process] = {}

    @property
    def expired(self) -> bool:
        """Whether nothing may be launched any more."""
        return self._world.loop.time() >= self._deadline

    def extend(self, sent_at: float) -> None:
        """A sync sent at this time was answered.

        The server may have noted it up to a third of a heartbeat late, and processes may
        take their grace to end: so much earlier than the server's is this deadline.
        """
        config = self._world.config
        lease = config.heartbeat_timeout_ms - config.heartbeat_interval_ms // 3
        allowed = lease - config.term_grace_ms - 5_000
        self._deadline = max(self._deadline, sent_at + allowed / 1000)
        if self._timer is None:
            self._timer = self._world.loop.call_at(self._deadline, self._look)

    def keep(self, process: Process) -> None:
        """Watch over a process."""
        self._processes[process.key] = process

    def find(self, key: Key) -> Process | None:
        """The live process of an attempt."""
        process = self._processes.get(key)
        return process if process is not None and process.live else None

    def kill_all(self) -> None:
        """Kill everything, as when the pipe to the agent closes."""
        for process in self._processes.values():
            process.kill()
        self._processes.clear()

    def _look(self) -> None:
        if not self.expired:
            self._timer = self._world.loop.call_at(self._deadline, self._look)
            return
        self._timer = None
        for process in self._processes.values():
            if process.live:
                self._world.faults["self_fenced"] += 1
                process.stop("fenced", self._world.config.term_grace_ms)
        self._processes = {k: p for k, p in self._processes.items() if p.live}
