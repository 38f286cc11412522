"""Which worker gets which job: task lists, requirements, resources, targets, namespaces."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.engine.support.rig import Rig

GIB = 1024**3

MATCHES: list[tuple[dict[str, Any], dict[str, object], bool]] = [
    ({}, {}, True),
    ({"task": "ffmpeg"}, {"tasks_allowlist": ["ffmpeg"]}, True),
    ({"task": "ffmpeg"}, {"tasks_allowlist": ["shell"]}, False),
    ({"task": "ffmpeg"}, {"tasks_allowlist": []}, False),
    ({"task": "ffmpeg"}, {"tasks_denylist": ["ffmpeg"]}, False),
    ({"task": "ffmpeg"}, {"tasks_denylist": ["shell"]}, True),
    (
        {"task": "ffmpeg"},
        {"tasks_allowlist": ["ffmpeg"], "tasks_denylist": ["ffmpeg"]},
        False,
    ),
    ({"requires": ("memory>=4GiB",)}, {"system:memory": 4 * GIB}, True),
    ({"requires": ("memory>=4GiB",)}, {"system:memory": 4 * GIB - 1}, False),
    ({"requires": ("memory>=4GiB",)}, {}, False),
    ({"requires": ("ffmpeg:version matches >=5",)}, {"ffmpeg:version": "6.1"}, True),
    ({"requires": ("ffmpeg:version matches >=5",)}, {"ffmpeg:version": "4.4"}, False),
    ({"target": "arm64"}, {"system:architectures": ["amd64", "arm64"]}, True),
    ({"target": "arm64"}, {"system:architectures": ["amd64"]}, False),
    ({"resources": {"cpus": 2}}, {"system:cpus": 4}, True),
    ({"resources": {"cpus": 8}}, {"system:cpus": 4}, False),
    ({"resources": {"licence": 1}}, {"resource:licence": 1}, True),
    ({"resources": {"licence": 1}}, {}, False),
    ({"namespace": "a"}, {"namespaces": ["a", "b"]}, True),
    ({"namespace": "c"}, {"namespaces": ["a", "b"]}, False),
]


@pytest.mark.parametrize(("job", "metadata", "runs"), MATCHES)
async def test_a_worker_gets_what_it_can_run(
    memory_rig: Rig, job: dict[str, Any], metadata: Mapping[str, object], runs: bool
) -> None:
    await memory_rig.submit(**job)
    agent = await memory_rig.agent(metadata=metadata)
    assert bool(await agent.take()) is runs


async def test_static_metadata_wins_over_dynamic(rig: Rig) -> None:
    await rig.submit(requires=("cpus>=8",))
    agent = await rig.agent(metadata={"system:cpus": 2})
    assert await agent.take() == ()
    assert await rig.engine.workers.set_metadata(agent.id, {"system:cpus": 8}, actor="ann")
    assert len(await agent.take()) == 1


async def test_a_label_says_nothing_about_jobs_given_before_it(rig: Rig) -> None:
    """Neither does `verify`, which runs after every test, take it for a mistake."""
    agent = await rig.agent(metadata={"system:cpus": 2})
    await rig.submit(requires=("system:cpus<4",))
    job = await agent.take_one()
    await rig.engine.workers.set_metadata(agent.id, {"system:cpus": 8})
    await agent.finish(job)
    assert await rig.moves(job.job) != []


async def test_static_metadata_can_take_away(rig: Rig) -> None:
    await rig.submit(requires=("cpus>=8",))
    agent = await rig.agent(metadata={"system:cpus": 8})
    await rig.engine.workers.set_metadata(agent.id, {"system:cpus": 2})
    assert await agent.take() == ()


async def test_metadata_sent_with_a_sync_counts_at_once(rig: Rig) -> None:
    await rig.submit(requires=("cpus>=8",))
    agent = await rig.agent(metadata={"system:cpus": 2})
    reply = await agent.sync(want=1, metadata={"system:cpus": 8})
    assert len(reply.jobs) == 1


async def test_static_metadata_outlives_a_new_incarnation(rig: Rig) -> None:
    agent = await rig.agent(metadata={"system:cpus": 2})
    await rig.engine.workers.set_metadata(agent.id, {"system:cpus": 8})
    await agent.enrol(metadata={"system:cpus": 2})
    await rig.submit(requires=("cpus>=8",))
    assert len(await agent.take()) == 1


async def test_a_job_nobody_can_run_never_holds_back_the_next(rig: Rig) -> None:
    for n in range(30):
        await rig.submit(queue="live", priority=9, requires=(f"gpus>={n + 1}",))
    small = await rig.submit(queue="batch")
    agent = await rig.agent()
    assert [job.job for job in await agent.take(5)] == [small]


async def test_each_worker_of_a_batch_gets_only_what_it_can_run(rig: Rig) -> None:
    big = await rig.submit(requires=("cpus>=8",))
    small = await rig.submit()
    weak = await rig.agent("weak", metadata={"system:cpus": 2})
    strong = await rig.agent("strong", metadata={"system:cpus": 8})
    assert [job.job for job in await weak.take(2)] == [small]
    assert [job.job for job in await strong.take(2)] == [big]


async def test_a_worker_never_gets_more_than_its_slots(rig: Rig) -> None:
    await rig.submit_all(*[{"args": n} for n in range(5)])
    agent = await rig.agent(slots=2)
    assert len(await agent.take(5)) == 2
