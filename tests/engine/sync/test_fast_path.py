"""Hot commands do what the normal path does: equal answers, equal state, equal log.

Histories are drawn so that most commands are common ones: only those are hot. How many of each
kind were is asserted, since a history without them would prove nothing.
"""

import random
from collections import Counter
from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import SECOND, Rig
from tests.engine.support.rigs import Rigs
from tests.support.specs import spec_of
from windlass.domain.job.forms import Concurrency
from windlass.domain.values.errors import WindlassError
from windlass.engine.fleet.epochs import begin_epoch
from windlass.engine.submit.submission import WorkflowSpec
from windlass.engine.sync import fast_path as hot
from windlass.messages.sync import Assignment, Finished, SyncReply
from windlass.messages.workers import QueueLimits
from windlass.store.fast_path import FastPathRules, PlainSync, PlainSynced
from windlass.store.postgres.fast_path import PostgresFastPath

STEPS = 150
SLOTS = 4
NAMES = ("ann", "bob", "cid")
TASKS = ("t", "u", "v")


class History:
    """Draws commands from a seed and tells every answer."""

    def __init__(self, rig: Rig, seed: int, gated: bool = False) -> None:
        self._rig = rig
        self._gated = gated
        self._chance = random.Random(seed)
        self._jobs: list[int] = []
        self._agents: list[Agent] = []
        self._held: dict[str, list[Assignment]] = {name: [] for name in NAMES}

    async def run(self) -> list[object]:
        """Every answer, and what the store holds in the end."""
        if self._gated:
            await self._rig.engine.queues.set_limits(
                "narrow", QueueLimits(max_running=9, max_per_worker=3)
            )
        for name in NAMES:
            agent = await self._rig.agent(name, slots=SLOTS, metadata={"system:cpus": 8})
            # The checker judges what was given before a first label by the newest one.
            await self._rig.engine.workers.set_metadata(agent.id, {"tasks_denylist": []})
            self._agents.append(agent)
        told: list[object] = []
        for _ in range(STEPS):
            try:
                told.append(await self._step())
            except WindlassError as error:
                told.append((error.code, error.message))
            await self._settle()
        events = await self._rig.events()
        if self._gated:  # Of jobs that end in one sync, the normal path takes plain ones first.
            events.sort(key=lambda event: (event.at, event.job))
        log = [event._replace(seq=n) for n, event in enumerate(events)]
        snapshot = await self._rig.snapshot()
        # The fast path writes these only with the heartbeat.
        workers = tuple(row._replace(seq=0, last_lease=0) for row in snapshot.workers)
        snapshot = snapshot._replace(workers=workers)
        return [*told, snapshot, log, await self._rig.engine.metrics()]

    async def _settle(self) -> None:
        """Let what follows from a command happen before the next."""
        engine = self._rig.engine
        await engine.settled()
        await engine.background.finish()

    async def _step(self) -> object:
        kinds = [self._sync, self._submit, self._pass_time, self._tie, self._command]
        (kind,) = self._chance.choices(kinds, [60, 22, 10, 4, 4])
        return await kind()

    async def _submit(self) -> object:
        chance = self._chance
        fields: dict[str, Any] = {}
        if self._gated and chance.random() < 0.6:
            fields = chance.choice(
                [
                    {"resources": {"cpus": chance.randint(1, 2)}},
                    {"queue": "narrow"},
                    {"queue": "narrow"},
                    {"apart": "x"},
                ]
            )
        specs = [
            spec_of(task=chance.choice(TASKS), priority=chance.choice([0, 0, 3]), args=n, **fields)
            for n in range(chance.randint(1, 4))
        ]
        key = chance.choice([None, None, "k1", "k2"])
        submitted = await self._rig.engine.submit(specs, key=key)
        self._jobs += submitted.ids
        return submitted

    async def _sync(self) -> object:
        chance = self._chance
        agent = chance.choice(self._agents)
        held = self._held[agent.name]
        chance.shuffle(held)
        done = [held.pop() for _ in range(chance.randint(0, len(held)))]
        outcome: Any = "failed" if chance.random() < 0.03 else "completed"
        finished = tuple(Finished(j.job, j.attempt, outcome, result=j.job) for j in done)
        want = chance.randint(0, SLOTS + 1)
        received = agent.received
        reply = await agent.sync(finished=finished, want=want, prefetch=chance.random() < 0.03)
        if chance.random() < 0.03:
            agent.received = received  # it never heard the answer
        else:
            held += [job for job in reply.jobs if job not in held]
        return _plain(reply)

    async def _pass_time(self) -> None:
        await self._rig.advance(self._chance.choice([1, SECOND, 12 * SECOND, 31 * SECOND]))

    async def _tie(self) -> object:
        """A job that is not common, or that makes others so."""
        chance, known = self._chance, self._jobs or [1]
        ties: list[dict[str, Any]] = [
            {"after": (chance.choice(known),)},
            {"concurrency": Concurrency("db", 1)},
            {"not_before": self._rig.now + 5 * SECOND},
            {"args": {"$lookup": "nothing"}},
        ]
        tie = chance.choice(ties)
        group = WorkflowSpec(name="w") if chance.random() < 0.2 else None
        return await self._rig.engine.submit([spec_of(task="t", **tie)], group)

    async def _command(self) -> object:
        engine, chance = self._rig.engine, self._chance
        name = chance.choice(["cancel", "pause", "resume", "label", "adjust"])
        if name == "cancel":
            return await engine.jobs.cancel([chance.choice(self._jobs or [1])])
        if name == "adjust":
            return await engine.jobs.adjust_priority(chance.choice(self._jobs or [1]), 2)
        if name == "label":
            denied = chance.choice([[], ["u"]])
            agent = chance.choice(self._agents)
            return await engine.workers.set_metadata(agent.id, {"tasks_denylist": denied})
        return await getattr(engine.queues, name)("default")


def _plain(reply: SyncReply) -> object:
    jobs = [(j.job, j.attempt, j.lease, j.state, bytes(j.spec)) for j in reply.jobs]
    return jobs, reply.cancel, reply.lost, reply.drain, reply.applied


def count_hot(patch: pytest.MonkeyPatch) -> Counter[str]:
    """What hot syncs did, by kind."""
    found: Counter[str] = Counter()
    original = PostgresFastPath.sync

    async def watched(
        it: PostgresFastPath, asked: PlainSync, rules: FastPathRules
    ) -> PlainSynced | None:
        done = await original(it, asked, rules)
        found["refused" if done is None else "done"] += 1
        if done is not None:
            found["finished"] += bool(asked.done)
            found["claimed"] += bool(done.granted)
            found["both"] += bool(asked.done and done.granted)
            found["in vain"] += bool(done.asked and not done.granted)
            found["several shapes"] += bool(done.granted and len(asked.claim.probes) > 1)
            found["gated"] += bool(done.granted and asked.limited is not None)
            found["limited"] += bool(done.granted and asked.limited)
            found["freed"] += bool(done.freed)
        return done

    patch.setattr(PostgresFastPath, "sync", watched)
    return found


@pytest.mark.slow  # on PostgreSQL
def test_the_fast_path_and_the_normal_path_do_the_same(
    rigs: Rigs, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = count_hot(monkeypatch)
    monkeypatch.setattr(hot, "MAX_SKIPPED", 0)
    for seed in range(6):
        with rigs.open("postgres") as rig:
            one = rig.run(History(rig, seed).run())
        with rigs.open("postgres") as rig:
            rig.run(rig.restart(fast_path=False))
            other = rig.run(History(rig, seed).run())
        for number, (mine, its) in enumerate(zip(one, other, strict=True)):
            assert mine == its, f"seed {seed}, step {number}"
    kinds = ("refused", "finished", "claimed", "both", "in vain", "several shapes")
    assert min(found[kind] for kind in kinds) >= 10, found


@pytest.mark.slow  # on PostgreSQL
def test_the_fast_path_is_back_when_jobs_may_start_after_a_restore(
    rigs: Rigs, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = count_hot(monkeypatch)
    monkeypatch.setattr(hot, "MAX_SKIPPED", 0)

    async def story(rig: Rig) -> None:
        await rig.engine.run(lambda work: begin_epoch(work, "me"))
        await rig.engine.refresh()
        agent = await rig.agent()
        await rig.submit_all(*[{}] * 4)
        assert not (await agent.sync(want=1)).jobs
        config = rig.engine.config
        await rig.pass_time(config.heartbeat_timeout_ms + config.term_grace_ms)
        await rig.health()
        await rig.engine.wake_for_ready_jobs()  # as the scheduling loop does
        agent = await rig.agent()
        for _ in range(4):
            (job,) = (await agent.sync(want=1)).jobs
            await agent.finish(job)

    with rigs.open("postgres") as rig:
        rig.run(story(rig))
    assert found["done"] >= 3, found


@pytest.mark.slow  # on PostgreSQL
def test_the_same_holds_for_jobs_with_gates(rigs: Rigs, monkeypatch: pytest.MonkeyPatch) -> None:
    found = count_hot(monkeypatch)
    monkeypatch.setattr(hot, "MAX_SKIPPED", 0)
    for seed in range(6):
        with rigs.open("postgres") as rig:
            one = rig.run(History(rig, seed, gated=True).run())
        with rigs.open("postgres") as rig:
            rig.run(rig.restart(fast_path=False))
            other = rig.run(History(rig, seed, gated=True).run())
        for number, (mine, its) in enumerate(zip(one, other, strict=True)):
            assert mine == its, f"seed {seed}, step {number}"
    assert min(found[kind] for kind in ("gated", "limited", "freed")) >= 10, found
