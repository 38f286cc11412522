"""Simulated functions with durable steps: they store results, sleep and wait for signals.

Notes what servers acknowledged, and compares it with what they say later.
"""

from typing import Any, Final

import msgspec

from windlass.messages.steps import StepReply, StepRequest
from windlass.ports.executor import JobContext, Result
from windlass.simulator.world.world import World

SIGNALS: Final = ("go", "stop")
SUSPENDED: Final = Result(outcome="suspended")


class Memory:
    """What the jobs of one run were told about their steps, which must never change."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._told: dict[tuple[int, str], Any] = {}

    def knows(self, job: int, key: str) -> bool:
        """Returns whether the end of this step was acknowledged before."""
        return (job, key) in self._told

    def hear(self, job: int, key: str, value: Any) -> None:
        """Notes the value of a step that has ended."""
        first = self._told.setdefault((job, key), value)
        if first != value:
            self._world.found("steps", f"step {key} was {first!r} before, and is {value!r}", job)

    def hear_signal(self, job: int, key: str, name: str, value: Any) -> None:
        """Notes which signal ended a wait: one of its name that the job has not had before."""
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
