"""Many jobs at once over HTTP: found by a filter, counted, changed part by part."""

from typing import Any

import httpx
import pytest

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, job, running_server
from windlass.domain.access.rights import Role
from windlass.engine.commands import jobs as job_commands
from windlass.messages.sync import Finished

PATH = "/api/v1/jobs/bulk"


async def ask(client: httpx.AsyncClient, action: str, **fields: Any) -> dict[str, Any]:
    reply = await client.post(PATH, json={"action": action, **fields})
    assert reply.status_code == 200, reply.text
    told: dict[str, Any] = reply.json()
    return told


async def all_parts(client: httpx.AsyncClient, action: str, **fields: Any) -> tuple[int, int, int]:
    """How many jobs were matched and changed, in how many parts."""
    matched = applied = parts = 0
    after: int | None = 0
    while after is not None:
        told = await ask(client, action, after=after, **fields)
        matched, applied = matched + told["matched"], applied + told["applied"]
        parts, after = parts + 1, told["next"]
    return matched, applied, parts


async def states(server: RunningServer, *numbers: int) -> list[str]:
    return [(await server.show(number))["state"] for number in numbers]


def test_jobs_are_canceled_by_filter_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_commands, "PART", 3)

    async def scenario() -> None:
        async with running_server() as server:
            first = await server.submit(*[job(queue="batch", labels={"k": "v"})] * 7)
            other = await server.submit(job(queue="batch"))
            where = {"queue": "batch", "label": ["k=v"]}
            counted = await all_parts(server.admin, "cancel", where=where, dry_run=True)
            assert counted[:2] == (7, 0)
            assert await states(server, first) == ["queued"]
            matched, applied, parts = await all_parts(
                server.admin, "cancel", where=where, reason="enough"
            )
            assert (matched, applied) == (7, 7)
            assert parts >= 3
            assert await states(server, first, first + 6, other) == ["canceled"] * 2 + ["queued"]
            assert (await server.show(first))["reason"] == "enough"
            assert await all_parts(server.admin, "cancel", where=where) == (0, 0, 1)

    run(scenario())


def test_failed_jobs_are_retried_once_each() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker(slots=5)
            first = await server.submit(*[job(queue="q", retries=0)] * 3)
            given = (await worker.sync(want=3)).jobs
            ends = tuple(Finished(g.job, g.attempt, "failed", 1, "execution", "no") for g in given)
            await worker.sync(finished=ends)
            assert (await all_parts(server.admin, "retry", where={"queue": "q"}))[:2] == (3, 3)
            # They are superseded now, so nothing is left to retry.
            assert (await all_parts(server.admin, "retry", where={"queue": "q"}))[:2] == (0, 0)
            assert (await server.show(first))["superseded_by"] is not None

    run(scenario())


def test_what_cannot_be_retried_is_told_with_its_reason() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            number = await server.submit(job(queue="q"))
            told = await ask(server.admin, "retry", where={"queue": "q", "state": ["queued"]})
            assert (told["matched"], told["applied"], told["refusals"]) == (1, 0, 1)
            (refused,) = told["refused"]
            assert refused["id"] == number
            assert "still open" in refused["reason"]

    run(scenario())


def test_operators_raise_and_submitters_lower_their_own() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            submitter = await server.role(Role.SUBMITTER)
            mine = await server.submit(job(queue="q"), by=submitter)
            theirs = await server.submit(job(queue="q"))
            where = {"queue": "q"}
            lowered = await ask(submitter, "prioritize", where=where, adjustment=-3)
            assert (lowered["applied"], lowered["refusals"]) == (1, 1)
            assert lowered["refused"][0]["id"] == theirs
            raised = await ask(submitter, "prioritize", where=where, adjustment=5)
            assert (raised["applied"], raised["refusals"]) == (0, 2)
            operator = await server.role(Role.OPERATOR)
            assert (await ask(operator, "prioritize", where=where, adjustment=5))["applied"] == 2
            assert (await server.show(mine))["priority"]["adjustment"] == 5

    run(scenario())


def test_a_token_reaches_its_own_namespaces_only() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            number = await server.submit(job(queue="q"))
            stranger = await server.role(Role.OPERATOR, "other")
            assert (await ask(stranger, "cancel", where={"queue": "q"}))["matched"] == 0
            reply = await stranger.post(
                PATH, json={"action": "cancel", "where": {"namespace": "default"}}
            )
            assert reply.status_code == 403
            assert await states(server, number) == ["queued"]

    run(scenario())


def test_a_filter_is_needed_and_checked() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            for body, field in (
                ({"action": "cancel", "where": {}}, "where"),
                ({"action": "prioritize", "where": {"queue": "q"}}, "adjustment"),
                ({"action": "cancel", "where": {"label": ["k"]}}, "label"),
                ({"action": "cancel", "where": {"state": ["odd"]}}, "state"),
            ):
                reply = await server.admin.post(PATH, json=body)
                assert reply.status_code == 422, reply.text
                assert error_of(reply)["field"] == field
            reply = await server.admin.post(PATH, json={"action": "burn", "where": {"queue": "q"}})
            assert reply.status_code in (400, 422)

    run(scenario())


async def preview(server: RunningServer, action: str, **where: Any) -> dict[str, Any]:
    reply = await server.admin.post(f"{PATH}/preview", json={"action": action, "where": where})
    assert reply.status_code == 200, reply.text
    told: dict[str, Any] = reply.json()
    return told


def test_a_preview_counts_only_what_the_action_can_change() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            first = await server.submit(*[job(queue="q")] * 3)
            await server.admin.post(f"/api/v1/jobs/{first}/cancel", json={})
            both = ["canceled", "queued"]
            assert (await preview(server, "cancel", queue="q", state=both))["count"] == 2
            assert (await preview(server, "retry", queue="q", state=both))["count"] == 1
            assert (await preview(server, "cancel", queue="q", state=["canceled"]))["count"] == 0
            assert (await preview(server, "cancel", queue="q", dead=True))["count"] == 0

    run(scenario())


def test_what_was_counted_is_changed_and_nothing_that_came_later() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            first = await server.submit(*[job(queue="q")] * 3)
            seen = await preview(server, "cancel", queue="q")
            assert seen["count"] == 3
            later = await server.submit(job(queue="q"))
            told = await ask(server.admin, "cancel", where=seen["where"], after=seen["after"])
            assert told["applied"] == 3
            assert await states(server, first, later) == ["canceled", "queued"]

    run(scenario())


def test_no_more_jobs_are_changed_than_somebody_allows() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            first = await server.submit(*[job(queue="q")] * 3)
            told = await ask(server.admin, "cancel", where={"queue": "q"}, at_most=2)
            assert (told["applied"], told["next"]) == (2, first + 1)
            assert await states(server, first, first + 1) == ["queued", "canceled"]

    run(scenario())
