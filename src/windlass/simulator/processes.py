"""Simulated processes of jobs, and the keeper that ends them when its deadline passes.

The registry of all live processes checks S7: at any time at most one process for each job. It also
checks that two processes of one worker never hold the same index of a resource.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from typing import Any

from windlass.domain.matching.indices import variable_of
from windlass.simulator.world import World
from windlass.worker.keeper.kept_process import Fenced, KeptProcess, Program

EXITED = 0
TERMINATED = -15
JOB = "WINDLASS_JOB"  # names the job in the environment of its process
CPUS = variable_of("cpus")  # names the processors that it holds


class ProcessRegistry:
    """Every live process of the whole fleet."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._live: dict[int, list[str]] = {}
        self._holders: dict[tuple[str, str], int] = {}  # worker and processor → job
        self.launched = 0

    def begin(self, job: int, who: str, cpus: Sequence[str]) -> None:
        """Records that a process of this job has started, and what it holds."""
        others = self._live.setdefault(job, [])
        if others:
            at = self._world.clock.now_ms()
            self._world.found("S7", f"at {at} {who} launched it, {others} runs it", job)
        others.append(who)
        self.launched += 1
        for cpu in cpus:
            holder = self._holders.setdefault((who, cpu), job)
            if holder != job:
                at = self._world.clock.now_ms()
                said = f"at {at} it was given processor {cpu} of {who}, which job {holder} holds"
                self._world.found("S13", said, job)

    def end(self, job: int, who: str, cpus: Sequence[str]) -> None:
        """Records that it has ended."""
        self._live[job].remove(who)
        for cpu in cpus:
            if self._holders.get((who, cpu)) == job:
                del self._holders[who, cpu]


class Process:
    """One process group. Calls `ended` with the exit code when it ends or is stopped."""

    def __init__(
        self, world: World, registry: ProcessRegistry, env: Mapping[str, str], who: str,
        ended: Callable[[int], None],
    ) -> None:  # fmt: skip
        self.live = True
        self._world = world
        self._registry = registry
        self._job = int(env[JOB])
        self._cpus = [cpu for cpu in env.get(CPUS, "").split(",") if cpu]
        self._who = who
        self._ended = ended
        self._stop_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        registry.begin(self._job, who, self._cpus)

    def run(self, duration_ms: int) -> None:
        """Ends by itself after a while."""
        self._timer = self._world.after(duration_ms, self._end, EXITED)

    def stop(self, grace_ms: float) -> None:
        """Sends SIGTERM, and SIGKILL after the grace period; the process may use all of it."""
        if not self.live:
            return
        end_ms = self._world.between(0, round(grace_ms))
        at = self._world.loop.time() + end_ms / 1000
        if self._stop_at is None or at < self._stop_at:
            self._stop_at = at
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._world.after(end_ms, self._end, TERMINATED)

    def kill(self) -> None:
        """Sends SIGKILL to the whole group, and reports nothing."""
        if self.live:
            self.live = False
            if self._timer is not None:
                self._timer.cancel()
            self._registry.end(self._job, self._who, self._cpus)

    def _end(self, code: int) -> None:
        if self.live:
            self.kill()
            self._ended(code)


class SimulatedKeeper:
    """Starts the processes of one incarnation, and ends them when its deadline passes.

    Implements `attempt.context.Keeper`. It is a separate process: it continues while its agent is
    stopped. Its messages to the agent run in `context`, so a stopped agent gets them when it
    continues.
    """

    def __init__(self, world: World, registry: ProcessRegistry, who: str, context: Context) -> None:
        self.base: Mapping[str, str] = {}
        self.grace_ms = 0
        self._world = world
        self._registry = registry
        self._who = who
        self._context = context
        self._connected = True
        self._soft = self._hard = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._numbers = 0
        self._processes: dict[int, Process] = {}
        self._fenced: dict[int, None] = {}

    def spawn(self, program: Program, **_: object) -> KeptProcess:
        """Starts a process that runs for the milliseconds in its second argument."""
        self._numbers += 1
        number = self._numbers
        kept = KeptProcess(self, number)
        if not self._connected:
            return kept
        if self._world.loop.time() >= self._soft:
            self._tell(kept.tell, Fenced("the deadline has passed"))
            return kept
        process = Process(
            self._world, self._registry, program.env, self._who,
            lambda code: self._ended(kept, number, code),
        )  # fmt: skip
        self._processes[number] = process
        self._tell(kept.begin, number)
        process.run(int(program.argv[1]))
        return kept

    def send(self, message: tuple[Any, ...]) -> None:
        """Carries out a message of the agent, such as a request to stop."""
        kind, number, grace_s = message
        process = self._processes.get(number)
        if self._connected and kind == "stop" and process is not None:
            process.stop(grace_s * 1000)

    def set_deadline(self, soft: float, hard: float) -> None:
        """Stops all processes at `soft`, and kills the rest at `hard`."""
        if self._connected:
            self._soft, self._hard = soft, hard
            if self._timer is None:
                self._look_later()

    def hang(self) -> None:
        """Fails to notice that the agent is gone: runs until its deadline, and receives nothing."""
        self._connected = False

    def kill_all(self) -> None:
        """Kills everything, as when the pipe to the agent closes."""
        self._connected = False
        for process in self._processes.values():
            process.kill()
        self._processes.clear()

    def _look_later(self) -> None:
        wait_ms = (self._soft - self._world.loop.time()) * 1000
        self._timer = self._world.after(wait_ms, self._look)

    def _look(self) -> None:
        now = self._world.loop.time()
        if now < self._soft:
            self._look_later()
            return
        self._timer = None
        for number, process in list(self._processes.items()):
            self._world.faults["self_fenced"] += 1
            self._fenced[number] = None
            process.stop(max(0.0, self._hard - now) * 1000)

    def _ended(self, kept: KeptProcess, number: int, code: int) -> None:
        self._processes.pop(number, None)
        self._tell(kept.end, code, False, number in self._fenced, False, 0, 0.0)

    def _tell(self, hear: Callable[..., None], *args: object) -> None:
        if self._connected:
            self._world.loop.call_soon(hear, *args, context=self._context)
