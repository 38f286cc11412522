"""Lists of jobs over HTTP: orders, cursors, texts and patterns, counts and previews."""

from typing import Any

import httpx

from tests.support.running import run
from tests.support.running_server import error_of, job, running_server
from windlass.domain.access.rights import Role

PATH = "/api/v1/jobs"


async def ids(client: httpx.AsyncClient, **query: Any) -> list[int]:
    """Returns the ids of all pages of two jobs."""
    found: list[int] = []
    after = ""
    while True:
        reply = await client.get(PATH, params={**query, "after": after, "limit": 2})
        assert reply.status_code == 200, reply.text
        told = reply.json()
        found += [one["id"] for one in told["jobs"]]
        if told["next"] is None:
            return found
        after = told["next"]


def test_lists_are_sorted_searched_and_continued() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            first = await server.submit(
                *[job(name=f"name-{n}", priority=n, queue="q") for n in range(5)]
            )
            numbers = list(range(first, first + 5))
            assert await ids(server.admin) == numbers[::-1]
            assert await ids(server.admin, sort="oldest") == numbers
            assert await ids(server.admin, sort="priority") == numbers[::-1]
            assert await ids(server.admin, sort="running") == []
            await server.services.engine.jobs.cancel([numbers[2]], "x", "me")
            await server.services.engine.jobs.cancel([numbers[0]], "x", "me")
            assert await ids(server.admin, sort="finished") == [numbers[0], numbers[2]]
            assert await ids(server.admin, text="NAME-3") == [numbers[3]]
            assert await ids(server.admin, regex="^name-[14]$") == [numbers[4], numbers[1]]
            created = (await server.show(first))["created_at"]
            assert await ids(server.admin, created_to=created) == []
            assert await ids(server.admin, created_from=created, sort="oldest") == numbers
            counted = (await server.admin.get(f"{PATH}/count", params={"state": "queued"})).json()
            assert counted == {"count": 3, "exact": True, "looked": 0, "estimate": None}
            searched = (await server.admin.get(f"{PATH}/count", params={"text": "name-"})).json()
            assert (searched["count"], searched["exact"]) == (5, True)

    run(scenario())


def test_what_a_list_cannot_do_is_refused_with_the_reason() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            refused = {
                "sort": ("name", "priority"),
                "after": ("x:y", "next"),
                "failure": ("timeouts", "timeout"),
                "created_from": ("yesterday", "2026"),
                "regex": ("(", "missing )"),
            }
            for field, (given, said) in refused.items():
                reply = await server.admin.get(PATH, params={field: given})
                assert reply.status_code == 422, reply.text
                assert said in error_of(reply)["message"], field
            long = await server.admin.get(PATH, params={"regex": "x" * 501})
            assert long.status_code == 422

    run(scenario())


def test_a_hostile_pattern_costs_no_more_than_others() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.submit(job(name="a" * 199 + "!"))
            # With the module `re` this one takes longer than the universe has existed.
            assert await ids(server.admin, regex="^(a+)+$") == []
            huge = await server.admin.get(PATH, params={"regex": "((x{50}){50}){50}"})
            assert huge.status_code == 422

    run(scenario())


def test_a_preview_counts_what_the_caller_may_change() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            own = await server.role(Role.SUBMITTER)
            other = await server.role(Role.SUBMITTER, "elsewhere")
            await server.submit(*[job(name="theirs", queue="q")] * 2)
            mine = await own.post(PATH, json={"jobs": [job(name="mine", queue="q")] * 3})
            assert mine.status_code == 201, mine.text
            body = {"action": "cancel", "where": {"queue": "q"}}

            async def count(client: httpx.AsyncClient, **where: Any) -> tuple[int, bool]:
                given = {**body, "where": {"queue": "q", **where}}
                reply = await client.post(f"{PATH}/bulk/preview", json=given)
                assert reply.status_code == 200, reply.text
                told = reply.json()
                assert told["exact"]
                return told["count"], told["only_own"]

            assert await count(server.admin) == (5, False)
            assert await count(server.admin, regex="^their") == (2, False)
            assert await count(own) == (3, True)
            assert await count(own, name="theirs") == (0, True)
            assert await count(other) == (0, True)
            viewer = await server.role(Role.VIEWER)
            reply = await viewer.post(f"{PATH}/bulk/preview", json=body)
            assert reply.status_code == 403
            assert await ids(server.admin, state="queued") != []  # nothing was changed

    run(scenario())
