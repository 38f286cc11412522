"""Media whose duration a worker found out: the timeout of the attempt follows it."""

from typing import Any

import pytest

from tests.engine.attempts.test_timeouts import BACKSTOP, alive, settled_agent
from tests.engine.support.filing import Desk, holder_of
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.values.errors import Conflict, InvalidInput

FILE = {"input": "a.mp4", "output": "b.mp4"}
STREAM = {"input": "a.mp4", "output": "rtmp://host/live"}


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"task": "media", "args": FILE, "duration_ms": MINUTE}, 2 * MINUTE),
        ({"task": "media", "args": STREAM, "duration_ms": MINUTE}, 90 * SECOND),
        ({"task": "media", "args": {**FILE, "tool": "gstreamer"}, "duration_ms": MINUTE},
         90 * SECOND),
        ({"task": "media", "args": FILE}, 30 * MINUTE),
        ({"task": "media", "args": FILE, "duration_ms": MINUTE, "queue": "live"}, None),
        ({"task": "media", "args": FILE, "duration_ms": MINUTE, "timeout_ms": 5_000}, 5_000),
    ],
)  # fmt: skip
async def test_the_timeout_of_media_is_that_of_its_tool(
    memory_rig: Rig, fields: dict[str, Any], limit: int | None
) -> None:
    agent = await memory_rig.agent()
    await memory_rig.submit(**fields)
    assert (await agent.take_one()).timeout_ms == limit


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"task": "ffmpeg"}, 4 * HOUR),
        ({"task": "gstreamer"}, 2 * HOUR + 30 * SECOND),
        ({"task": "media", "args": FILE}, 4 * HOUR),
        ({"task": "media", "args": STREAM}, 2 * HOUR + 30 * SECOND),
        ({"task": "ffmpeg", "timeout_ms": MINUTE}, MINUTE),
        ({"task": "shell"}, 30 * MINUTE),
    ],
)
async def test_a_found_duration_gives_the_timeout(
    memory_rig: Rig, fields: dict[str, Any], limit: int
) -> None:
    agent = await memory_rig.agent()
    await memory_rig.submit(**fields)
    given = await agent.take_one()
    files = Desk(memory_rig).files
    assert await files.measured(holder_of(agent, given), 2 * HOUR) == limit
    (lease,) = (await memory_rig.snapshot()).leases
    assert lease.timeout_ms == limit


async def test_a_job_shows_the_timeout_that_holds_for_it(rig: Rig) -> None:
    agent = await settled_agent(rig)
    job = await rig.submit(task="ffmpeg")
    holder = holder_of(agent, await agent.take_one())
    assert await Desk(rig).files.measured(holder, 2 * SECOND) == 4 * SECOND
    view = await rig.engine.store.read(lambda tx: tx.views.job(job))
    assert view is not None
    assert (view.facts.timeout_ms, view.lease and view.lease.timeout_ms) == (4_000, 4_000)


async def test_the_server_waits_as_long_as_the_found_duration_says(rig: Rig) -> None:
    agent = await settled_agent(rig)
    files = Desk(rig).files
    job = await rig.submit(task="ffmpeg")
    holder = holder_of(agent, await agent.take_one())
    assert await files.measured(holder, 20 * MINUTE) == 40 * MINUTE
    # A sign of life does not bring the old limit back.
    await files.progress(holder, 0.5)
    await alive(rig, agent, 40 * MINUTE + BACKSTOP - 1)
    assert await rig.state(job) == "running"
    await rig.advance(1)
    assert (await rig.health()).timed_out == 1
    assert await rig.state(job) == "timed_out"


async def test_only_the_holder_says_how_long_it_is(memory_rig: Rig) -> None:
    agent = await memory_rig.agent()
    await memory_rig.submit(task="ffmpeg")
    holder = holder_of(agent, await agent.take_one())
    files = Desk(memory_rig).files
    with pytest.raises(Conflict, match="not held"):
        await files.measured(holder._replace(attempt=2), MINUTE)
    with pytest.raises(InvalidInput, match="duration"):
        await files.measured(holder, 0)
