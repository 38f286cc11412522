"""Jobs that nobody could ever run are rejected; those that only have to wait are not."""

from typing import Any

import msgspec

from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.config import Config
from windlass.domain.job.forms import NEVER, Concurrency
from windlass.domain.matching.workers import WorkerStatus
from windlass.engine.fleet.capability import REMEMBERED_MS
from windlass.engine.loops.capability import CapabilityLoop

GPU: dict[str, Any] = {"requires": ("gpus>=1",)}
GRACE = Config().capability_grace_ms or 0


async def pass_rounds(rig: Rig, loop: CapabilityLoop, ms: int) -> int:
    """Let time pass, with a round of the loop now and then; how many jobs were rejected."""
    rejected = (await loop.run_once(rig.now)).rejected
    for _ in range(4):
        await rig.advance(ms // 4)
        rejected += (await loop.run_once(rig.now)).rejected
    await rig.engine.settled()
    return rejected


async def test_a_job_nobody_can_run_is_rejected_after_the_grace(rig: Rig) -> None:
    await rig.agent(metadata={"system:gpus": 0, "system:memory": 2**33})
    job = await rig.submit(requires=("gpus>=1", "memory>=4GiB"))
    plain = await rig.submit()
    behind = await rig.submit(after=(job,))
    loop = CapabilityLoop(rig.engine)
    assert await pass_rounds(rig, loop, GRACE - SECOND) == 0
    assert await rig.state(job) == "queued"
    assert await pass_rounds(rig, loop, MINUTE) == 1
    assert await rig.states(job, plain, behind) == ["rejected", "queued", "aborted"]
    reason = (await rig.record(job)).reason
    assert reason == "capability_mismatch: the only known worker: needs gpus ≥ 1, has 0"


async def test_a_job_for_a_busy_worker_waits_and_holds_nobody_back(rig: Rig) -> None:
    gpu = await rig.agent("gpu", slots=1, metadata={"system:gpus": 1})
    first = await rig.submit(**GPU)
    assert (await gpu.take_one()).job == first
    waiting = await rig.submit(**GPU, priority="high")
    small = await rig.submit()
    assert await pass_rounds(rig, CapabilityLoop(rig.engine), 4 * GRACE) == 0
    assert await rig.state(waiting) == "queued"
    other = await rig.agent("other")
    assert (await other.take_one()).job == small


async def test_workers_that_are_away_count(rig: Rig) -> None:
    statuses = (WorkerStatus.DISABLED, WorkerStatus.DRAINING, WorkerStatus.OFFLINE)
    for number, status in enumerate(statuses):
        agent = await rig.agent(f"w{number}", metadata={f"resource:r{number}": 1})
        await rig.engine.workers.set_status(agent.id, status)
    for number in range(len(statuses)):
        await rig.submit(resources={f"r{number}": 1})
    lost = await rig.submit(resources={"r9": 1})
    assert await pass_rounds(rig, CapabilityLoop(rig.engine), 2 * GRACE) == 1
    assert await rig.state(lost) == "rejected"


async def test_a_fleet_that_knows_nobody_rejects_nothing_unless_asked(rig: Rig) -> None:
    patient = await rig.submit(**GPU)
    own = await rig.submit(**GPU, capability_grace_ms=MINUTE)
    asked = await rig.submit(**GPU, capability_grace_ms=0)
    assert await pass_rounds(rig, CapabilityLoop(rig.engine), 2 * GRACE) == 0
    assert await rig.states(patient, own, asked) == ["queued", "queued", "rejected"]
    assert (await rig.record(asked)).reason == "capability_mismatch: no worker is known"


async def test_each_job_may_have_a_grace_of_its_own(rig: Rig) -> None:
    await rig.agent()
    never = await rig.submit(**GPU, capability_grace_ms=NEVER)
    short = await rig.submit(**GPU, capability_grace_ms=MINUTE)
    usual = await rig.submit(**GPU)
    loop = CapabilityLoop(rig.engine)
    await pass_rounds(rig, loop, MINUTE)
    assert await rig.states(never, short, usual) == ["queued", "rejected", "queued"]
    await pass_rounds(rig, loop, GRACE)
    assert await rig.states(never, short, usual) == ["queued", "rejected", "rejected"]


async def test_no_grace_means_at_once_for_what_is_impossible_only(rig: Rig) -> None:
    await rig.agent(metadata={"system:gpus": 1})
    hopeless = await rig.submit(requires=("gpus>=2",), capability_grace_ms=0)
    fine = await rig.submit(requires=("gpus>=1",), capability_grace_ms=0)
    assert await rig.states(hopeless, fine) == ["rejected", "queued"]


async def test_an_installation_without_grace_rejects_plain_jobs_at_once(rig: Rig) -> None:
    await rig.restart(msgspec.structs.replace(Config(), capability_grace_ms=0))
    before = await rig.submit(**GPU)
    assert await rig.state(before) == "queued"
    await rig.agent()
    assert await rig.state(await rig.submit(**GPU)) == "rejected"
    assert await rig.state(await rig.submit()) == "queued"


async def test_an_installation_may_never_reject(rig: Rig) -> None:
    await rig.restart(msgspec.structs.replace(Config(), capability_grace_ms=None))
    await rig.agent()
    job = await rig.submit(**GPU)
    assert await pass_rounds(rig, CapabilityLoop(rig.engine), 100 * HOUR) == 0
    assert await rig.state(job) == "queued"


async def test_what_a_worker_had_within_a_week_counts(rig: Rig) -> None:
    agent = await rig.agent(metadata={"system:gpus": 1})
    await agent.sync(metadata={"system:gpus": 0})
    job = await rig.submit(**GPU)
    loop = CapabilityLoop(rig.engine)
    assert await pass_rounds(rig, loop, REMEMBERED_MS) == 0
    assert await pass_rounds(rig, loop, 2 * GRACE) == 1
    assert await rig.state(job) == "rejected"


async def test_an_operator_who_takes_something_away_means_it(rig: Rig) -> None:
    agent = await rig.agent(metadata={"system:gpus": 1})
    await rig.engine.workers.set_metadata(agent.id, {"system:gpus": 0})
    await rig.submit(**GPU)
    assert await pass_rounds(rig, CapabilityLoop(rig.engine), 2 * GRACE) == 1


async def test_the_grace_begins_anew_when_the_last_capable_worker_goes(rig: Rig) -> None:
    await rig.agent("plain")
    gpu = await rig.agent("gpu", metadata={"system:gpus": 1})
    job = await rig.submit(**GPU)
    loop = CapabilityLoop(rig.engine)
    await pass_rounds(rig, loop, 4 * GRACE)
    await rig.engine.workers.remove(gpu.id)
    assert await pass_rounds(rig, loop, GRACE - SECOND) == 0
    await rig.agent("gpu-2", metadata={"system:gpus": 1})
    assert await pass_rounds(rig, loop, 2 * GRACE) == 0
    assert await rig.state(job) == "queued"


async def test_jobs_beyond_a_limit_are_rejected_one_after_another(rig: Rig) -> None:
    await rig.agent()
    limit = Concurrency("k", 1)
    jobs = [await rig.submit(**GPU, concurrency=limit) for _ in range(3)]
    loop = CapabilityLoop(rig.engine)
    await pass_rounds(rig, loop, 2 * GRACE)
    assert await rig.states(*jobs) == ["rejected"] * 3


async def test_more_than_a_chunk_is_rejected(rig: Rig) -> None:
    await rig.restart(msgspec.structs.replace(Config(), chunk_rows=3))
    await rig.agent()
    kept = [{**GPU, "capability_grace_ms": NEVER} for _ in range(4)]
    done = await rig.submit_all(*kept, *[GPU for _ in range(7)])
    await pass_rounds(rig, CapabilityLoop(rig.engine), GRACE + MINUTE)
    assert await rig.states(*done.ids) == ["queued"] * 4 + ["rejected"] * 7
