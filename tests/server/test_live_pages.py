"""The stream of open pages: what is told to whom, how often, and by how many readers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from tests.support.running import run
from tests.support.running_server import RunningServer, job, running_server
from windlass.domain.access.rights import Identity, Role
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import InvalidInput
from windlass.server.live_pages import (
    MAX_LISTED,
    QUIET_MS,
    Changed,
    Listener,
    LiveHub,
    parse_topics,
)

PATH = "/api/v1/live"
ADMIN = Identity(1, "admin", Role.ADMIN)


class Reader:
    """Reads the messages of one stream."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.last_id = ""

    async def next(self) -> dict[str, Any]:
        """The next message, comments left out."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(60):
            async for line in self._lines:
                if not line and "data" in fields:
                    break
                name, _, value = line.partition(": ")
                fields[name] = value
        self.last_id = fields["id"]
        return {"event": fields["event"], **msgspec.json.decode(fields["data"])}


@asynccontextmanager
async def following(client: httpx.AsyncClient, *show: str, **query: Any) -> AsyncIterator[Reader]:
    """A page that shows this, and has been told where the log stands."""
    params = {"show": list(show), **query}
    async with client.stream("GET", PATH, params=params) as reply:
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("text/event-stream")
        reader = Reader(reply.aiter_lines())
        assert (await reader.next())["event"] == "at"
        yield reader


async def tell(server: RunningServer) -> None:
    """Lets the hub pass on what happened, without waiting for its next round."""
    await server.services.live.run_once(server.services.clock.now_ms())


def test_a_page_is_told_the_ids_of_what_changed_among_what_it_shows() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            first = await server.submit()
            async with (
                following(server.admin, "jobs") as jobs,
                following(server.admin, f"job:{first}") as one,
            ):
                second = await server.submit()
                await server.services.engine.jobs.cancel([first], "x", "me")
                await tell(server)
                told = await jobs.next()
                assert (told["event"], told["kinds"]) == ("changed", ["job"])
                assert set(told["jobs"]) == {first, second}
                assert (await one.next())["jobs"] == [first]

    run(scenario())


def test_pages_with_jobs_are_told_to_look_again_when_jobs_are_deleted() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            gone = await server.submit()
            await server.services.engine.jobs.cancel([gone], "x", "me")
            stranger = await server.role(Role.ADMIN, "own")
            async with (
                following(server.admin, f"job:{gone}") as one,
                following(stranger, "jobs") as other,
                following(server.admin, "templates") as templates,
            ):
                await server.admin.delete(f"/api/v1/jobs/{gone}")
                content = {"name": "t", "jobs": {"a": {"run": ["true"]}}}
                await server.services.templates.put("default", "t", content, "me")
                await tell(server)
                for page in (one, other):
                    told = await page.next()
                    assert (told["more"], told["kinds"], told["jobs"]) == (True, [], [])
                assert (await templates.next())["more"] is False

    run(scenario())


def test_a_page_of_a_workflow_is_told_of_its_jobs() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            body = {"jobs": [job()], "workflow": {"name": "w"}}
            made = (await server.admin.post("/api/v1/jobs", json=body)).json()
            shown = f"workflow:{made['workflow']}"
            async with following(server.admin, shown) as page:
                await server.submit()  # of no workflow
                await server.services.engine.jobs.cancel(made["ids"], "x", "me")
                await tell(server)
                told = await page.next()
                assert (told["jobs"], told["workflows"]) == (made["ids"], [made["workflow"]])

    run(scenario())


def test_others_namespaces_and_tokens_are_told_to_nobody_who_may_not_see_them() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            limited = await server.role(Role.ADMIN, "own")
            viewer = await server.role(Role.VIEWER)
            foreign = await server.submit(job(namespace="other"))
            show = ("jobs", "workflows", "queues", "tokens", f"job:{foreign}")
            async with following(limited, *show) as own, following(viewer, *show) as all_of_them:
                await server.services.engine.jobs.cancel([foreign], "x", "me")
                await server.services.access.create_token("new", Role.VIEWER)
                await server.worker("w9")
                mine = await server.submit(job(namespace="own"))
                await tell(server)
                told = await own.next()
                assert (told["jobs"], told["kinds"], told["workers"]) == ([mine], ["job"], [])
                everything = [await all_of_them.next()]
                while mine not in everything[-1]["jobs"]:  # a busy server tells it in parts
                    everything.append(await all_of_them.next())
                assert {job for told in everything for job in told["jobs"]} == {foreign, mine}
                assert not any("access" in told["kinds"] for told in everything)

    run(scenario())


def test_who_is_limited_to_namespaces_is_told_of_the_fleet_and_of_its_own_plans() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            engine, templates = server.services.engine, server.services.templates
            limited = await server.role(Role.VIEWER, "own")
            content = {"name": "w", "jobs": {"a": {"task": "shell", "args": {"argv": ["true"]}}}}
            async with following(limited, "workers", "queues", "templates") as page:
                await templates.put("other", "theirs", content, "me")
                worker = await server.worker("w9")
                await tell(server)
                told = await page.next()
                assert (told["kinds"], told["workers"]) == (["worker"], [worker.id])
                await engine.queues.pause("default", "me")
                await tell(server)
                assert (await page.next())["kinds"] == ["queue"]
                await templates.put("own", "ours", content, "me")
                await tell(server)
                assert (await page.next())["kinds"] == ["template"]

    run(scenario())


def test_a_page_that_comes_back_learns_that_it_missed_something() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.submit()
            async with following(server.admin, "jobs") as page:
                known = page.last_id
            await server.submit()
            async with following(server.admin, "jobs", after=known) as page:
                assert (await page.next())["more"] is True
                known = page.last_id
            async with following(server.admin, "jobs", after=known) as page:
                number = await server.submit()
                await tell(server)
                told = await page.next()
                assert (told["more"], told["jobs"]) == (False, [number])

    run(scenario())


def test_a_page_misses_nothing_between_its_first_reading_and_its_stream() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.submit()
            known = (await server.admin.get("/api/v1/whoami")).json()["at"]
            await server.submit()
            async with following(server.admin, "jobs", after=known) as page:
                assert (await page.next())["more"] is True
                known = (await server.admin.get("/api/v1/whoami")).json()["at"]
                assert known == int(page.last_id)

    run(scenario())


def test_all_pages_together_read_the_log_once_and_none_reads_it_when_no_page_is_open() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            reads = 0
            feed = server.services.feed

            async def counted(after: int, count: int) -> Any:
                nonlocal reads
                reads += 1
                return await feed.read_after(after, count)

            hub = LiveHub(server.services.engine.store, counted, server.services.queries.places)
            await hub.run_once(0)
            assert reads == 0
            pages = [await hub.open(ADMIN, parse_topics(["jobs"]), 0, 0) for _ in range(50)]
            await server.submit()
            report = await hub.run_once(0)
            assert (report.pages, reads) == (50, 1)
            assert all(page.take(0) is not None for page in pages)
            for page in pages:
                hub.close(page)
            await hub.run_once(0)
            assert reads == 1

    run(scenario())


def test_what_a_slow_page_has_not_read_stays_bounded() -> None:
    page = Listener(ADMIN, parse_topics(["jobs"]), 0, 0)
    for number in range(1, 10 * MAX_LISTED):
        page.add(Changed(EventKind.JOB, number, 0, 0, "default"))
    told = page.take(0)
    assert told is not None
    assert (len(told.jobs), told.more) == (MAX_LISTED, True)
    assert page.take(0) is None


def test_a_quiet_page_gets_a_comment_now_and_then() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            hub = LiveHub(
                server.services.engine.store,
                server.services.feed.read_after,
                server.services.queries.places,
            )
            page = await hub.open(ADMIN, parse_topics(["jobs"]), 0, 0)
            await hub.run_once(QUIET_MS - 1)
            assert not page.is_due.is_set()
            await hub.run_once(QUIET_MS)
            assert page.is_due.is_set()
            assert page.take(QUIET_MS) is None

    run(scenario())


@pytest.mark.parametrize("topic", ["", "job", "job:", "job:0", "job:-1", "job:x", "job:1e9", "all"])
def test_a_page_says_what_it_shows_in_known_words(topic: str) -> None:
    with pytest.raises(InvalidInput, match="show"):
        parse_topics([topic])


def test_a_closed_page_is_forgotten() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            async with following(server.admin, "jobs"):
                report = await server.services.live.run_once(0)
                assert report.pages == 1
            async with asyncio.timeout(60):
                while (await server.services.live.run_once(0)).pages:
                    await server.services.clock.sleep_ms(1)
            assert (await server.services.live.run_once(0)).pages == 0

    run(scenario())
