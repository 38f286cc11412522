"""Workers, queues, schedules, events and ended jobs from Python, without a server."""

import asyncio
from pathlib import Path

import windlass
from tests.client.resources import use_all


def test_an_embedded_client_has_them_all(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=1) as client:
        assert client.submit("shell", argv=["true"]).wait(timeout=60).state == "completed"
        use_all(client)
        assert client.pools.list() == []
        assert client.tokens.list() == []

        async def scenario() -> list[str]:
            asynchronous = client.as_async()
            assert [w.name for w in await asynchronous.workers.list()] == ["embedded"]
            assert await asynchronous.pools.list() == []
            assert await asynchronous.queues.pause("other") is True
            return [event.kind async for event in asynchronous.events(last=1)]

        assert asyncio.run(scenario()) == ["queue"]


def test_events_are_followed(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=0) as client:
        events = client.events(follow=True, kind="job")
        for _ in range(2):
            job = client.submit("shell", argv=["true"])
            assert next(events).job == job.id
