"""Pools over HTTP: what is shown, to whom, and what is refused."""

from typing import Any

import httpx
import pytest

from tests.support.running import run
from tests.support.running_server import error_of, job, running_server
from windlass.client.client import AsyncClient
from windlass.domain.access.rights import Role

POOL = {
    "provider": "command",
    "options": {"launch": ["make-machine", "--key", "hidden"], "terminate": ["end-machine"]},
    "target_latency_seconds": 60,
    "max_workers": 5,
    "expected_seconds": 10,
}


async def put(client: httpx.AsyncClient, pool: str, /, **body: Any) -> httpx.Response:
    return await client.put(f"/api/v1/pools/{pool}", json=body)


def test_a_pool_is_applied_shown_and_deleted() -> None:
    async def play() -> None:
        async with running_server() as server:
            made = await put(server.admin, "build", **POOL)
            assert made.status_code == 200, made.text
            assert made.json()["applied"] is True
            assert (await put(server.admin, "build", **POOL)).json()["applied"] is False
            shown = (await server.admin.get("/api/v1/pools/build")).json()
            assert shown["description"]["options"] == POOL["options"]
            assert (shown["state"], shown["workers"]) == ("active", [])
            assert (await server.admin.delete("/api/v1/pools/build")).json() == {"applied": True}
            assert (await server.admin.get("/api/v1/pools/build")).json()["state"] == "deleting"
            gone = await server.admin.delete("/api/v1/pools/other")
            assert (gone.status_code, error_of(gone)["code"]) == (404, "not_found")

    run(play())


def test_only_admins_see_the_options_of_a_provider() -> None:
    async def play() -> None:
        async with running_server() as server:
            await put(server.admin, "build", **POOL)
            for role in (Role.VIEWER, Role.OPERATOR):
                shown = await (await server.role(role)).get("/api/v1/pools")
                assert "hidden" not in shown.text
                assert shown.json()["pools"][0]["description"]["options"] == {}

    run(play())


def test_a_plan_has_the_numbers_of_the_formula() -> None:
    async def play() -> None:
        async with running_server() as server:
            await put(server.admin, "build", **POOL)
            await server.submit(*(job() for _ in range(20)))
            async with AsyncClient(server.address, await server.token(Role.VIEWER)) as client:
                (plan,) = (await client.pools.plan()).pools
                assert (plan.start, plan.wanted, plan.work_seconds) == (4, 4, 200)
                assert (plan.slots, plan.latency_seconds) == (0, None)
                assert (plan.target_seconds, plan.latency_after_seconds) == (60, 50)
                (more,) = (await client.pools.plan(workers=20)).pools
                assert (more.start, more.slots, more.latency_seconds) == (0, 20, 10)
                (slow,) = (await client.pools.plan(target="10m")).pools
                assert (slow.start, slow.latency_after_seconds) == (1, 200)
                (target,) = (await client.pools.plan()).targets
                assert (target.jobs, target.queued) == ("default/default: shell", 20)
                assert (await client.pools.costs()).costs == []

    run(play())


def test_the_jobs_behind_a_plan_are_found_by_its_shapes() -> None:
    async def play() -> None:
        async with running_server() as server:
            await put(server.admin, "build", **POOL)
            waiting = [await server.submit(), await server.submit()]
            far = await server.submit(job(requires=["memory>=8TiB"]))
            own = await server.submit(job(namespace="own"))
            worker = await server.worker(slots=1)
            (taken,) = (await worker.sync(want=1)).jobs
            found: dict[str, set[int]] = {}
            for target in (await server.admin.get("/api/v1/pools/plan")).json()["targets"]:
                for state in ("queued", "running"):
                    jobs = await _behind(server.admin, target["shapes"], state)
                    assert len(jobs) == target[state]
                    found.setdefault(state, set()).update(jobs)
            assert found["running"] == {taken.job}
            assert found["queued"] == {*waiting, far, own} - {taken.job}
            viewer = await server.role(Role.VIEWER, "own")
            plan = (await viewer.get("/api/v1/pools/plan")).json()
            assert [target["shapes"] for target in plan["targets"]] == [[]] * len(plan["targets"])
            assert await _behind(viewer, list(range(1, 10)), "queued") == [own]
            assert await _behind(viewer, list(range(1, 10)), "running") == []

    run(play())


async def _behind(client: httpx.AsyncClient, shapes: list[int], state: str) -> list[int]:
    query: dict[str, Any] = {"shape": shapes, "state": state}
    reply = await client.get("/api/v1/pools/plan/jobs", params=query)
    assert reply.status_code == 200, reply.text
    return [shown["id"] for shown in reply.json()["jobs"]]


def test_who_may_see_one_namespace_learns_nothing_of_others() -> None:
    async def play() -> None:
        async with running_server() as server:
            await put(server.admin, "build", **POOL)
            await server.submit(job(namespace="secretive"))
            red = await server.role(Role.VIEWER, "red")
            assert "secretive" not in (await red.get("/api/v1/pools/plan")).text
            assert (await red.get("/api/v1/pools/costs")).json()["costs"] == []
            for state in ("queued", "running"):  # it guesses the number of a shape
                query: dict[str, Any] = {"shape": [1], "state": state}
                told = (await red.get("/api/v1/pools/plan/jobs", params=query)).json()
                assert told == {"jobs": [], "next": None, "looked": 0, "as_of": None}

    run(play())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"min_workers": 9, "max_workers": 2}, "min_workers"),
        ({"target_latency_seconds": 0}, "target_latency_seconds"),
        ({"provider": "cloud9"}, "provider"),
        ({"provider": "command"}, "options.launch"),
        ({"options": {"image": "x"}}, "options.image"),
        ({"name": "other"}, "name"),
        ({"metadata": {"a": "\u0000"}}, "metadata"),
    ],
)
def test_what_cannot_work_is_refused_by_name(body: dict[str, Any], field: str) -> None:
    async def play() -> None:
        async with running_server() as server:
            reply = await put(server.admin, "build", **body)
            assert reply.status_code == 422, reply.text
            assert error_of(reply)["field"] == field

    run(play())


@pytest.mark.parametrize(
    "query",
    ["plan?workers=-1", "plan?workers=x", "plan?target=0", "plan?target=soon", "costs?month=13"],
)
def test_odd_questions_are_refused(query: str) -> None:
    async def play() -> None:
        async with running_server() as server:
            reply = await server.admin.get(f"/api/v1/pools/{query}")
            assert reply.status_code in (400, 422), reply.text

    run(play())
