"""What `explain` says would let a job run does let it run; and who it says can run it, can."""

from random import Random
from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from tests.engine.support.rigs import Rigs
from windlass.domain.explain.explanation import Explanation, Step
from windlass.domain.job.forms import Concurrency
from windlass.domain.matching.matching import merge_metadata
from windlass.domain.matching.shapes import Rate
from windlass.domain.matching.workers import WorkerStatus
from windlass.messages.workers import QueueLimits

GIB = 1024**3
REPO = Concurrency("repo")
MAX_STEPS = 12

CLAUSES = (
    "memory>=4GiB", "memory>=16GiB", "cpus>2", "cpus<8", "zone==eu", "zone!=us", "zone in eu,us",
    "ffmpeg:version matches >=5,<7", "ffmpeg:version matches 6.*", "gpus>=1",
    "system:architectures has arm64", "docker:available==true",
)  # fmt: skip
# Half of all machines can run nearly everything, so that it is not always the same that is missing.
GENEROUS = {
    "system:memory": 64 * GIB, "system:cpus": 6, "system:gpus": 1, "zone": "eu",
    "ffmpeg:version": "6.1", "system:architectures": ["amd64", "arm64"], "docker:available": True,
    "resource:tokens": 9,
}  # fmt: skip
OTHERS: dict[str, list[Any]] = {
    "system:memory": [GIB, 8 * GIB, 32 * GIB],
    "system:cpus": [1, 4, 10],
    "system:gpus": [0, 2],
    "zone": ["eu", "us"],
    "ffmpeg:version": ["4.4", "6.1", "7.0"],
    "system:architectures": [["amd64"], ["amd64", "arm64"]],
    "docker:available": [True, False],
    "tasks_denylist": [["shell"], ["other"]],
    "tasks_allowlist": [["shell"], ["other"]],
    "namespaces": [["default"], ["team"]],
}
STATUSES = (
    WorkerStatus.ONLINE, WorkerStatus.ONLINE, WorkerStatus.DRAINING, WorkerStatus.DISABLED,
    WorkerStatus.PENDING_APPROVAL,
)  # fmt: skip
# What all jobs of a scene share, those under way and those that wait.
COMMON: list[dict[str, Any]] = [
    {}, {}, {"concurrency": REPO}, {"queue": "limited"}, {"queue": "batch"},
    {"resources": {"cpus": 4}}, {"resources": {"memory": "40GiB", "tokens": 1}},
    {"apart": "database"}, {"rate": Rate("api", 1, MINUTE)},
]  # fmt: skip


def metadata(chance: Random) -> dict[str, Any]:
    if chance.random() < 0.5:
        return GENEROUS
    return {key: chance.choice(some) for key, some in OTHERS.items() if chance.random() < 0.4}


def fields(chance: Random) -> dict[str, Any]:
    some = chance.sample(CLAUSES, chance.choice((0, 0, 0, 1, 2, 3)))
    return {"requires": tuple(some), "unblock": chance.choice(("auto", "auto", "auto", "manual"))}


def make_scene(chance: Random) -> dict[str, Any]:
    fleet = [(metadata(chance), chance.choice(STATUSES), chance.randint(1, 2))
             for _ in range(chance.choice((0, 0, 1, 2)))]  # fmt: skip
    slots = chance.choice((0, 1, 1, 3))
    return {
        "fleet": [(GENEROUS, WorkerStatus.ONLINE, slots)] * bool(slots) + fleet,
        "jobs": [fields(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))],
        "namespace": chance.choice(("default", "team")),
        "common": chance.choice(COMMON),
        "under_way": chance.choice((0, 1, 1, 2)),
        "paused": chance.random() < 0.2,
        "chain": chance.random() < 0.5,
        "planned": chance.random() < 0.2,
    }


class Scene:
    """A rig with agents that are known by name."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.agents: dict[str, Agent] = {}
        self.held: dict[int, tuple[Agent, Any]] = {}

    async def enrol(self, name: str, said: dict[str, Any], slots: int = 100) -> Agent:
        self.agents[name] = await self.rig.agent(name, slots=slots, metadata=said)
        return self.agents[name]

    async def take(self, agent: Agent, want: int = 1) -> list[int]:
        taken = await agent.take(want)
        self.held.update({job.job: (agent, job) for job in taken})
        return [job.job for job in taken]

    async def finish(self, job: int) -> None:
        agent, taken = self.held.pop(job)
        await agent.finish(taken)

    async def metadata_of(self, name: str) -> dict[str, Any]:
        return self.rig.engine.catalog.profile(await self.rig.worker(self.agents[name].id)).metadata

    async def follow(self, step: Step) -> None:
        """Do what a step says, by the command that does it."""
        engine = self.rig.engine
        if step.action == "resume_queue":
            assert step.queue is not None
            await engine.queues.resume(step.queue)
        elif step.action == "raise_queue_limit":
            assert step.queue is not None
            await engine.queues.set_limits(step.queue, QueueLimits(max_running=step.max))
        elif step.action == "unblock":
            assert step.job is not None
            await engine.jobs.unblock(step.job)
        elif step.action == "free_slot":
            assert step.job is not None
            await self.finish(step.job)
        elif step.action == "wait":
            await self.rig.advance(20 * MINUTE)
            await engine.due_jobs.move()
        elif step.action in ("enable_worker", "approve_worker"):
            assert step.worker is not None
            await engine.workers.set_status(self.agents[step.worker].id, WorkerStatus.ONLINE)
        elif step.action == "set_metadata":
            assert step.worker is not None
            assert step.metadata is not None
            await engine.workers.set_metadata(self.agents[step.worker].id, step.metadata)
        else:
            assert step.action == "add_worker", step
            said = {} if step.worker is None else await self.metadata_of(step.worker)
            name = f"new-{len(self.agents)}"
            await self.enrol(name, merge_metadata(said, step.metadata or {}))


async def play(rig: Rig, scene: dict[str, Any]) -> None:
    world = Scene(rig)
    for number, (said, status, slots) in enumerate(scene["fleet"]):
        agent = await world.enrol(f"w{number}", said, slots)
        if status is not WorkerStatus.ONLINE:
            await rig.engine.workers.set_status(agent.id, status)
    common = scene["common"] | {"namespace": scene["namespace"]}
    if common.get("queue") == "limited":
        await rig.engine.queues.set_limits("limited", QueueLimits(max_running=1))
    for _ in range(scene["under_way"]):
        await rig.submit(**common)
    for agent in list(world.agents.values()):
        await world.take(agent, 2)
    ids: list[int] = []
    for number, job in enumerate(scene["jobs"]):
        ties: dict[str, Any] = {"after": (ids[-1],)} if scene["chain"] and ids else {}
        if scene["planned"] and number == 0:
            ties["not_before"] = rig.now + 10 * SECOND
        ids.append(await rig.submit(**common, **job, **ties))
    if scene["paused"]:
        await rig.engine.queues.pause(scene["common"].get("queue", "default"))
    await reach(world, ids[-1])


async def reach(world: Scene, job: int) -> None:
    """Do what is said until the job is given out, which takes few steps."""
    for _ in range(MAX_STEPS):
        found = await world.rig.engine.explain.job(job)
        if found.state == "running":
            return
        if found.smallest_change is not None:
            for step in found.smallest_change.steps:
                await world.follow(step)
        await let_run(world, job, found)
    raise AssertionError(f"after {MAX_STEPS} rounds: {await world.rig.engine.explain.job(job)}")


async def let_run(world: Scene, job: int, found: Explanation) -> None:
    """Workers take what they can get; those said to be able get the job if nothing is ahead."""
    free = not {one.kind for one in found.waiting_for} - {"ahead", "busy"}
    able = [
        entry.worker or str(entry.group).split(",")[0] for entry in found.workers if entry.runnable
    ]
    if free and able and found.state == "queued" and not found.ahead:
        assert await world.take(world.agents[able[0]]) == [job], found
        return
    for agent in list(world.agents.values()):
        for taken in await world.take(agent, 100):
            if taken != job:
                await world.finish(taken)
    for other in [taken for taken in world.held if taken != job]:
        await world.finish(other)


@pytest.mark.parametrize(("kind", "scenes"), [("memory", 300), ("sqlite", 50), ("postgres", 10)])
def test_the_smallest_change_lets_the_job_run(rigs: Rigs, kind: str, scenes: int) -> None:
    for seed in range(scenes):
        scene = make_scene(Random(seed))
        with rigs.open(kind) as rig:
            try:
                rig.run(play(rig, scene))
            except Exception as error:
                raise AssertionError(f"scene {seed}: {scene}") from error
