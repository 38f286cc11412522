"""Managers, builders and fuzzers at the same time on one faulty bucket; time is virtual."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.fuzzing.support.rig import ForwardingBucket
from windlass.domain.values.errors import Conflict
from windlass.ports.clock import Clock
from windlass.simulator.world import START_MS, SeededChance
from windlass_fuzz.buckets.bucket import (
    Bucket,
    ConcurrentWrite,
    OutcomeUnknown,
    PreconditionFailed,
    Stored,
)
from windlass_fuzz.buckets.layout import KINDS, build_key
from windlass_fuzz.config.solver_file import CommitSettings
from windlass_fuzz.roles.build_steps import BuildSteps
from windlass_fuzz.roles.fuzz_steps import FuzzSteps
from windlass_fuzz.roles.manager import Manager
from windlass_fuzz.sources.commits import Commit, Head, History, Watched
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.state_file import Runtime

LEASE_MS = 60_000


class Crash(BaseException):
    """The machine of an actor fails in the middle of a step."""


class Nothing(ForwardingBucket):
    """An empty bucket."""

    def __init__(self) -> None:
        super().__init__(self)

    @property
    def name(self) -> str:
        return "nothing"

    async def get(self, key: str) -> Stored | None:
        return None

    async def exists(self, key: str) -> bool:
        return False


@dataclass
class Journal:
    """What really happened, in order."""

    versions: dict[str, list[Stored]] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    builds: "list[Spell]" = field(default_factory=list)
    fuzzings: "list[Spell]" = field(default_factory=list)
    finished: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    marked: Counter[str] = field(default_factory=Counter)
    steps: int = 0


class Spell(NamedTuple):
    """An actor's work on a commit, as long as its lease allowed it."""

    commit: str
    began: int
    ended: int


class Troubled(ForwardingBucket):
    """A bucket where every call is slow, and one in `odds` conditional writes fails in some way."""

    def __init__(
        self, inner: Bucket, chance: random.Random, clock: Clock, journal: Journal, odds: int
    ) -> None:
        super().__init__(inner)
        self._chance = chance
        self._clock = clock
        self._journal = journal
        self.odds = odds

    async def get(self, key: str) -> Stored | None:
        await self._delay()
        return await self.inner.get(key)

    async def exists(self, key: str) -> bool:
        await self._delay()
        return await self.inner.exists(key)

    async def put(self, key: str, source: Path | bytes) -> None:
        await self._delay()
        await self.inner.put(key, source)

    async def put_if(
        self,
        key: str,
        body: bytes,
        *,
        expected: str | None,
        attributes: Mapping[str, str] | None = None,
    ) -> Stored:
        await self._delay()
        fault = self._draw()
        if fault:
            self._journal.faults[fault] += 1
        if fault == "409":
            raise ConcurrentWrite(key)
        if fault == "412":
            raise PreconditionFailed(key)
        if fault == "unsent":
            raise OutcomeUnknown(key)
        if fault == "crash before":
            raise Crash
        stored = await self.inner.put_if(key, body, expected=expected, attributes=attributes)
        self._journal.versions.setdefault(key, []).append(stored)
        await self._delay()
        if fault == "lost":
            raise OutcomeUnknown(key)
        if fault == "crash after":
            raise Crash
        return stored

    def _draw(self) -> str | None:
        if not self.odds or self._chance.randrange(self.odds):
            return None
        kinds = ("409", "412", "unsent", "lost", "lost", "crash before", "crash after")
        return self._chance.choice(kinds)

    async def _delay(self) -> None:
        await self._clock.sleep_ms(self._chance.randint(1, 20))


class Line:
    """A branch that grows with time: a commit every few seconds, every third without code.

    Some calls take so long that others have already finished the commits they return. Branches
    other than `main` take over its commits a minute later.
    """

    EVERY_MS = 5_000
    LATER_MS = 60_000

    def __init__(self, clock: Clock, chance: random.Random, branch: str = "main") -> None:
        self._clock = clock
        self._chance = chance
        self._behind_ms = 0 if branch == "main" else self.LATER_MS

    def commits(self) -> list[Commit]:
        passed = max(self._clock.now_ms() - START_MS - self._behind_ms, 0)
        count = passed // self.EVERY_MS + 1
        return [Commit(f"c{n}", START_MS + n * self.EVERY_MS) for n in range(count)]

    @staticmethod
    def has_code(commit: str) -> bool:
        return int(commit[1:]) % 3 != 2

    async def watched(self, wanted: Sequence[str]) -> Watched:
        return Watched(tuple(Head(name, self.commits()[-1].hash) for name in wanted))

    def on(self, head: Head) -> "Line":
        return Line(self._clock, self._chance, head.name)

    async def since(self, last: str | None, newest: int) -> History:
        line = self.commits()
        if not self._chance.randrange(8):
            await self._clock.sleep_ms(self._chance.randint(1_000, 90_000))
        if last is None:
            return History(line[-1].hash, tuple(line[-newest:]), "nothing yet")
        place = next(n for n, commit in enumerate(line) if commit.hash == last)
        return History(line[-1].hash, tuple(line[place + 1 :]), last_ms=line[place].at_ms)

    async def files(self, commit: str) -> Sequence[str]:
        return ["solver.cpp"] if self.has_code(commit) else ["README.md"]

    async def time_of(self, commit: str) -> int:
        return START_MS + int(commit[1:]) * self.EVERY_MS

    async def resolve(self, commit: str) -> str:
        return commit

    async def close(self) -> None:
        """Does nothing."""


class World:
    """Sixteen actors that run until a number of steps were taken."""

    def __init__(
        self, bucket: Bucket, clock: Clock, seed: int, branches: Sequence[str] = ()
    ) -> None:
        self.branches = branches
        self.chance = random.Random(seed)
        self.clock = clock
        self.journal = Journal()
        self.line = Line(clock, self.chance)
        self.bucket = Troubled(bucket, self.chance, clock, self.journal, odds=12)
        self._secrets = random.Random(seed + 1)
        self._runtime = Runtime(clock, SeededChance(self.chance), self)
        self._pipelines = 0

    def secret(self) -> str:
        return f"{self._secrets.getrandbits(96):024x}"

    def pipeline(self) -> Pipeline:
        self._pipelines += 1
        return Pipeline(self.bucket, "toy", self._runtime, f"actor {self._pipelines}")

    async def run(self, steps: int) -> None:
        roles = [self.manage] * 4 + [self.build] * 6 + [self.fuzz] * 6
        await asyncio.gather(*(self._act(role, steps) for role in roles))

    async def wind_down(self) -> None:
        """Stops the faults, lets leases expire, and runs some more turns, one by one."""
        self.bucket.odds = 0
        for _ in range(3):
            await self.clock.sleep_ms(2 * LEASE_MS)
            for role in (self.manage, self.build, self.manage):
                await role()

    async def _act(self, role: Callable[[], Awaitable[None]], steps: int) -> None:
        while self.journal.steps < steps:
            self.journal.steps += 1
            try:
                await role()
            except Crash:
                pass  # another machine takes its place
            except Conflict as refused:
                if refused.code not in ("contended", "lease_lost"):
                    raise
            await self.clock.sleep_ms(self.chance.randint(1, 10_000))

    async def manage(self) -> None:
        await Manager(self.pipeline(), self.line, CommitSettings(), self.branches).run_once()

    async def build(self) -> None:
        pipeline = self.pipeline()
        steps = BuildSteps(pipeline, tries=5)
        held = (await steps.take(LEASE_MS)).held
        if held is None:
            return
        began = self.clock.now_ms()
        ended = began
        try:
            # Some take longer than their lease and do not renew it: they must come too late.
            long = LEASE_MS + 30_000 if not self.chance.randrange(10) else 5_000
            await self.clock.sleep_ms(self.chance.randint(500, long))
            ended = self.clock.now_ms()
            for kind in KINDS:
                await pipeline.bucket.put(build_key("toy", kind, held.commit), b"binary")
            if self.chance.randrange(8):
                self.journal.marked[held.commit] += await steps.mark_built(held.commit, held.token)
            else:
                await steps.mark_failed(held.commit, held.token)
        finally:
            self.journal.builds.append(Spell(held.commit, began, min(ended, held.until_ms)))

    async def fuzz(self) -> None:
        steps = FuzzSteps(self.pipeline())
        held = (await steps.select(LEASE_MS)).held
        if held is None:
            return
        began = self.clock.now_ms()
        ended = began
        try:
            for _ in range(self.chance.randint(1, 3)):
                await self.clock.sleep_ms(self.chance.randint(1_000, 5_000))
                ended = self.clock.now_ms()  # so long it has worked, whether it was right or not
                held = await steps.renew(held, LEASE_MS)
            self.journal.finished[held.commit] += 1
            counted = await steps.increment(held.commit, held.token)
            self.journal.acknowledged[held.commit] += counted.applied
        finally:
            self.journal.fuzzings.append(Spell(held.commit, began, min(ended, held.until_ms)))
