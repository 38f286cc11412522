"""Isolation in matching: what jobs and queues demand, and what workers offer."""

import pytest

from tests.engine.support.rig import Rig
from windlass.domain.matching.isolation import OFFERED
from windlass.domain.values.errors import InvalidInput
from windlass.messages.workers import QueueLimits

WEAK = {OFFERED: ["process", "user"]}
STRONG = {OFFERED: ["process", "user", "sandbox", "container"]}


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        ({"isolation": "sandbox"}, "sandbox"),
        ({"network": "none"}, "sandbox"),
        ({"network": "none", "isolation": "process"}, "sandbox"),
        ({"image": "debian:12"}, "container"),
    ],
)
async def test_only_a_worker_with_the_mode_gets_the_job(
    rig: Rig, options: dict[str, str], needs: str
) -> None:
    weak = await rig.agent("weak", metadata=WEAK)
    job = await rig.submit(**options)
    assert not await weak.take()
    found = await rig.engine.explain.job(job)
    assert found.workers[0].text == f"worker weak: needs isolation {needs}, has process, user"
    strong = await rig.agent("strong", metadata=STRONG)
    assert [taken.job for taken in await strong.take()] == [job]


async def test_a_worker_that_says_nothing_offers_only_processes(rig: Rig) -> None:
    old = await rig.agent("old")
    job = await rig.submit(isolation="user")
    found = await rig.engine.explain.job(job)
    assert found.workers[0].text == "worker old: needs isolation user, has only process"
    plain = await rig.submit(isolation="process")
    assert [taken.job for taken in await old.take()] == [plain]


async def test_the_minimum_of_a_queue_holds_for_jobs_that_wait_in_it(rig: Rig) -> None:
    weak = await rig.agent("weak", metadata=WEAK)
    job = await rig.submit(queue="batch")
    other = await rig.submit(queue="default")
    await rig.engine.queues.set_limits("batch", QueueLimits(isolation="sandbox"))
    assert [(taken.job, taken.isolation) for taken in await weak.take()] == [(other, None)]
    found = await rig.engine.explain.job(job)
    assert found.workers[0].text == "worker weak: needs isolation sandbox, has process, user"
    idle = await rig.engine.explain.worker(weak.id)
    assert "needs isolation sandbox, has process, user" in idle.work[0].text
    strong = await rig.agent("strong", metadata=STRONG)
    assert [(taken.job, taken.isolation) for taken in await strong.take()] == [(job, "sandbox")]


async def test_a_queue_without_minimum_is_open_to_all_again(rig: Rig) -> None:
    weak = await rig.agent("weak", metadata=WEAK)
    await rig.engine.queues.set_limits("batch", QueueLimits(isolation="sandbox"))
    job = await rig.submit(queue="batch")
    assert not await weak.take()
    await rig.engine.queues.set_limits("batch", QueueLimits(isolation="process"))
    assert [taken.job for taken in await weak.take()] == [job]


async def test_a_container_needs_an_image(rig: Rig) -> None:
    with pytest.raises(InvalidInput, match="image to be given"):
        await rig.submit(isolation="container")


@pytest.mark.parametrize(
    "options",
    [{"image": "--privileged"}, {"image": "dir:etc"}, {"image": "debian:12", "task": "python"}],
)
async def test_an_image_is_a_name_and_not_for_tasks_of_the_worker(
    rig: Rig, options: dict[str, str]
) -> None:
    with pytest.raises(InvalidInput, match="image to be"):
        await rig.submit(**options)


async def test_only_a_worker_with_the_credentials_fetches_a_private_image(rig: Rig) -> None:
    job = await rig.submit(image="private.example/box", registry_secret="REGISTRY")
    without = await rig.agent("without", metadata=STRONG)
    assert not await without.take()
    having = await rig.agent("having", metadata={**STRONG, "secret:REGISTRY": ["*"]})
    assert [taken.job for taken in await having.take()] == [job]
