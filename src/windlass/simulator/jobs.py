"""How simulated workers run jobs: how long they take, how they end, what goes wrong.

Functions with durable steps store results, sleep and wait for signals.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct

from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.sync import Assignment, Released
from windlass.ports.executor import JobContext, Result
from windlass.simulator.world import World
from windlass.worker.attempt.starter import AttemptStarter
from windlass.worker.core.ports import AttemptEnded, Report, RunningAttempt

SIGNALS: Final = ("go", "stop")
SUSPENDED: Final = Result(outcome="suspended")

TASKS = ("compile", "test")
BREAKS_AFTER_MS = 100
FORGOTTEN = 10  # how much longer a job runs if its worker forgets its timeout


class Memory:
    """What the jobs of one run have learned about their steps, which must never change."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._told: dict[tuple[int, str], Any] = {}

    def knows(self, job: int, key: str) -> bool:
        """Returns whether the end of this step was acknowledged before."""
        return (job, key) in self._told

    def hear(self, job: int, key: str, value: Any) -> None:
        """Records the value of a step that has ended."""
        first = self._told.setdefault((job, key), value)
        if first != value:
            self._world.found("steps", f"step {key} was {first!r} before, and is {value!r}", job)

    def hear_signal(self, job: int, key: str, name: str, value: Any) -> None:
        """Records which signal ended a wait: it must have the right name and be new to the job."""
        if value is None or not str(value).startswith(f"{name} "):
            self._world.found("steps", f"waited for {name}, got {value!r}", job)
        had = [k for (j, k), told in self._told.items() if j == job and told == value and k != key]
        if had:
            self._world.found("steps", f"{key} got the signal of {had[0]} again", job)
        self.hear(job, key, value)


class DurableFunction:
    """The steps of one attempt."""

    def __init__(self, world: World, memory: Memory, context: JobContext) -> None:
        self._world = world
        self._memory = memory
        self._context = context

    async def run(self, steps: list[str]) -> Result | None:
        """Runs the steps in order; returns how the attempt ends early, or None."""
        for number, step in enumerate(steps):
            kind, _, about = step.partition(" ")
            key = f"{number} {kind}"
            if kind == "call":
                await self._call(key)
            elif not await self._wait(key, kind, about):
                return SUSPENDED
        return None

    async def _call(self, key: str) -> None:
        job, memory = self._context.job, self._memory
        found = await self._ask(StepRequest(do="find", key=key))
        if found.state == "missing":
            if memory.knows(job, key):
                self._world.found("steps", f"finished step {key} runs again", job)
            await self._world.clock.sleep_ms(self._world.between(1, 500))
            value = f"made by attempt {self._context.attempt}"
            found = await self._ask(StepRequest(do="store", key=key, value=value))
        memory.hear(job, key, _value(found))

    async def _wait(self, key: str, kind: str, about: str) -> bool:
        """Returns whether the wait is over."""
        job = self._context.job
        if kind == "sleep":
            reply = await self._ask(StepRequest(do="sleep", key=key, wait_ms=int(about)))
        else:
            reply = await self._ask(StepRequest(do="wait_for", key=key, name=about))
        if reply.state == "pending":
            if self._memory.knows(job, key):
                self._world.found("steps", f"{key} is waited for again", job)
            self._world.faults["suspended"] += 1
            return False
        if kind == "sleep":
            self._memory.hear(job, key, None)
        else:
            self._memory.hear_signal(job, key, about, _value(reply))
        return True

    async def _ask(self, request: StepRequest) -> StepReply:
        return await self._context.step(request)


def _value(reply: StepReply) -> Any:
    value = reply.value
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


class Traits(Struct, frozen=True):
    """The faults of a worker; rates are probabilities."""

    name: str
    slots: int
    metadata: dict[str, Any]
    careful: bool = False  # checks jobs before they are started
    declines: float = 0.0
    fails: float = 0.0
    forgets_timeouts: float = 0.0
    dies_with_job: float = 0.0
    breaks: float = 0.0  # fails a job at once, as with a reset connection or a full disk


class Plan(Struct):
    """What a job's arguments tell a simulated process to do."""

    ms: int = 1_000
    poison: bool = False
    steps: list[str] = []


class _PlannedSpec(Struct):
    args: Plan = msgspec.field(default_factory=Plan)


_read_plan = msgspec.json.Decoder(_PlannedSpec).decode


@dataclass(eq=False)
class SimulatedExecutor:
    """Implements `Executor`: runs one process for as long as the job's plan says."""

    task: str
    _world: World
    _traits: Traits
    _memory: Memory
    _die: Callable[[], None]

    async def run(self, context: JobContext) -> Result:
        """Runs the process to its end."""
        world, traits = self._world, self._traits
        plan = msgspec.convert(context.args, Plan)
        if plan.steps:
            early = await DurableFunction(world, self._memory, context).run(plan.steps)
            if early is not None:
                return early
        if traits.breaks and world.fault("broken", traits.breaks):
            await (await context.spawn(["simulated", str(BREAKS_AFTER_MS)])).wait()
            return Result(outcome="failed", failure="resource", message="simulated: disk full")
        outcome = draw_outcome(traits, world.chance)
        ms = plan.ms if context.timeout_ms else FORGOTTEN * plan.ms
        process = await context.spawn(["simulated", str(ms)])
        if (plan.poison and not world.calm) or world.fault("died_with_job", traits.dies_with_job):
            self._die()
        ended = await process.wait()
        if ended.code != 0:
            return Result(outcome="failed", failure="execution", message="simulated: killed")
        if outcome == "completed":
            return Result(result={"ok": True})
        return Result(outcome="failed", failure=outcome, message=f"simulated: {outcome}")

    async def close(self) -> None:
        """Does nothing: it holds no resources."""


class FaultyStarter:
    """Implements `Starter` over the production one; declines jobs and forgets timeouts."""

    def __init__(self, world: World, inner: AttemptStarter, traits: Traits) -> None:
        self._world = world
        self._inner = inner
        self._traits = traits

    def reason_to_decline(self, assignment: Assignment) -> str | None:
        if self._world.fault("declined", self._traits.declines):
            return "simulated: not on this machine"
        return self._inner.reason_to_decline(assignment)

    def make(self, assignment: Assignment, ended: AttemptEnded) -> RunningAttempt | Report:
        if self._world.fault("given_back", self._traits.declines):
            return Released(assignment.job, assignment.attempt)
        timeout_ms = assignment.timeout_ms
        late = timeout_ms is not None and timeout_ms < _read_plan(assignment.spec).args.ms
        if late and self._world.fault("timeout_forgotten", self._traits.forgets_timeouts):
            assignment = msgspec.structs.replace(assignment, timeout_ms=None, idle_timeout_ms=None)
        return self._inner.make(assignment, ended)


def draw_outcome(traits: Traits, chance: random.Random) -> str:
    """Returns how an undisturbed process ends."""
    if chance.random() < traits.fails:
        return chance.choice(("execution", "network", "resource", "timeout"))
    return "completed"
