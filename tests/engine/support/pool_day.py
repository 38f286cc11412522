"""A day of varying load on a pool whose cloud fails, on the clock of a rig."""

import math
import random
from typing import NamedTuple

from tests.engine.support.agent import Agent
from tests.engine.support.cloud import Cloud, ServerKilledError, Sky
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.messages.sync import Assignment
from windlass.ports.provider import Machine, Order, ProviderFault

JOB_MS = 3 * MINUTE
BOOT_MS = 2 * MINUTE
STEP_MS = 30 * SECOND
DAY_STEPS = 24 * 60 * 2


class Busy(NamedTuple):
    """What a machine does until when."""

    job: Assignment
    until: int


class FailingCloud(Cloud):
    """Launches are refused, machines never boot, die, and the server is killed meanwhile."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(settle_ms=60_000)
        self.chance = chance
        self.faults = True
        self.hopeless: set[str] = set()
        self.killed_busy: list[str] = []
        self.busy: dict[str, Busy] = {}

    async def launch(self, order: Order) -> Machine:
        drawn = self.chance.random() if self.faults else 1.0
        if drawn < 0.1:
            raise ProviderFault("no capacity")
        machine = await super().launch(order)
        if drawn < 0.15:
            raise ProviderFault("the answer was lost")
        if drawn < 0.2:
            raise ServerKilledError
        if drawn < 0.3:
            self.hopeless.add(order.token)
        return machine

    async def terminate(self, machines: list[Machine] | tuple[Machine, ...]) -> None:  # type: ignore[override]
        self.killed_busy += [m.token for m in machines if m.token in self.busy]
        await super().terminate(machines)


class Day:
    """The world: submits, machines that boot and work, the loops; step by step."""

    def __init__(self, rig: Rig, seed: int, job_ms: tuple[int, int] = (JOB_MS, JOB_MS)) -> None:
        self.rig = rig
        self.job_ms = job_ms
        self.chance = random.Random(seed)
        self.cloud = FailingCloud(self.chance)
        self.sky = Sky(rig, self.cloud)
        self.agents: dict[str, Agent] = {}
        self.born: dict[str, int] = {}
        self.most = 0
        self.submitted = 0
        self.machine_ms = 0
        self.kills = 0
        self.stopped = 0

    async def step(self, number: int, load: bool = True) -> None:
        """Half a minute."""
        await self.rig.advance(STEP_MS)
        hour = number * STEP_MS / 3_600_000
        rate = max(0.0, 3 * math.sin(hour / 24 * 2 * math.pi * 2)) if load else 0.0
        count = int(rate) + (self.chance.random() < rate % 1)
        if count:
            await self.rig.submit_all(*({"timeout_ms": 24 * HOUR} for _ in range(count)))
            self.submitted += count
        await self._machines()
        await self.rig.health()
        await self.rig.engine.due_jobs.move()
        try:
            await self.sky.round()
        except ServerKilledError:
            self.kills += 1
            await self.sky.restart()
            for agent in self.agents.values():
                agent.engine = self.rig.engine
        self.most = max(self.most, len(self.cloud.machines))

    async def _machines(self) -> None:
        """Each machine boots, works, or dies."""
        for token in list(self.cloud.machines):
            self.machine_ms += STEP_MS
            since = self.rig.now - self.born.setdefault(token, self.rig.now)
            if self.cloud.faults and self.chance.random() < 0.0005:
                self.cloud.machines.pop(token)
                self.cloud.busy.pop(token, None)
            elif since >= BOOT_MS and token not in self.cloud.hopeless:
                await self._work(token)

    async def _work(self, token: str) -> None:
        if token not in self.agents:
            agent = self.agents[token] = Agent(self.rig.engine, token)
            await agent.enrol(slots=1)
        agent = self.agents[token]
        busy = self.cloud.busy.get(token)
        if busy is not None and self.rig.now >= busy.until:
            await agent.finish(busy.job)
            busy = self.cloud.busy.pop(token, None) and None
        if busy is None:
            for job in await agent.take():
                self.cloud.busy[token] = Busy(job, self.rig.now + self.chance.randint(*self.job_ms))
        elif stops := (await agent.sync()).cancel:
            assert "budget" in stops[0].reason
            await agent.finish(busy.job, "canceled")
            del self.cloud.busy[token]
            self.stopped += 1
