"""Limits of queues, shares of namespaces and the options of placement, over HTTP."""

from typing import Any

import httpx

from tests.support.running import run
from tests.support.running_server import error_of, job, running_server
from windlass.domain.access.rights import Role


def test_a_queue_is_limited_and_shows_what_runs() -> None:
    async def scene() -> None:
        async with running_server() as server:
            path = "/api/v1/queues/bulk/limits"
            limits = {"max_running": 3, "max_per_worker": 2}
            assert (await server.admin.post(path, json=limits)).json() == {"applied": True}
            assert (await server.admin.post(path, json=limits)).json() == {"applied": False}
            await server.admin.post(path, json={"preempts": True})
            (queue,) = (await server.admin.get("/api/v1/queues")).json()["queues"]
            assert queue == {
                "name": "bulk", "weight": 50, "paused": False, "depth": 0, "max_running": 3,
                "max_per_worker": 2, "preempts": True, "running": 0, "isolation": None,
                "rates": [], "timeout": None,
            }  # fmt: skip
            wrong = await server.admin.post(path, json={"max_running": -1})
            assert wrong.status_code == 422
            assert error_of(wrong)["field"] == "max_running"
            wrong = await server.admin.post(path, json={"isolation": "cage"})
            assert error_of(wrong)["field"] == "isolation"
            await server.admin.post(path, json={"isolation": "sandbox"})
            (queue,) = (await server.admin.get("/api/v1/queues")).json()["queues"]
            assert (queue["isolation"], queue["max_running"]) == ("sandbox", 3)
            for asked, shown in (("6h", 21_600.0), (90, 90.0), ("none", "none"), ("default", None)):
                assert (await server.admin.post(path, json={"timeout": asked})).status_code == 200
                (queue,) = (await server.admin.get("/api/v1/queues")).json()["queues"]
                assert queue["timeout"] == shown
            wrong = await server.admin.post(path, json={"timeout": "soon"})
            assert error_of(wrong)["field"] == "timeout"
            assert "default" in error_of(wrong)["expected"]

    run(scene())


def test_every_queue_tells_how_many_of_its_jobs_run() -> None:
    async def scene() -> None:
        async with running_server() as server:
            worker = await server.worker("w", slots=3)
            await server.submit(*(job(queue=queue) for queue in ("a", "a", "b")))
            await worker.sync(want=3)
            await server.submit(job(queue="b"), job(queue="c"))
            queues = (await server.admin.get("/api/v1/queues")).json()["queues"]
            told = [(one["name"], one["depth"], one["running"]) for one in queues]
            assert told == [("a", 0, 2), ("b", 1, 1), ("c", 1, 0)]

    run(scene())


def test_a_queue_shows_the_rates_under_which_its_jobs_wait() -> None:
    async def scene() -> None:
        async with running_server() as server:
            worker = await server.worker("w", slots=4)
            rate = {"key": "mail", "max": 2, "per": "1h"}
            await server.submit(*(job(queue="mail", rate=rate, namespace="ours") for _ in range(3)))
            assert len((await worker.sync(want=4)).jobs) == 2

            async def rates(client: httpx.AsyncClient) -> list[Any]:
                found = (await client.get("/api/v1/queues")).json()["queues"]
                return [one for queue in found for one in queue["rates"]]

            (one,) = await rates(server.admin)
            assert one.pop("next_at") > "2000"
            assert one == {"namespace": "ours", "key": "mail", "max": 2, "seconds": 3600, "used": 2}
            assert len(await rates(await server.role(Role.VIEWER, "ours"))) == 1
            assert await rates(await server.role(Role.VIEWER, "theirs")) == []

    run(scene())


def test_who_sees_one_namespace_is_told_what_of_it_waits_and_runs() -> None:
    async def scene() -> None:
        async with running_server() as server:
            worker = await server.worker("w", slots=2)
            await server.submit(job(namespace="ours"), job(namespace="theirs"))
            await worker.sync(want=2)
            await server.submit(job(namespace="ours"), *[job(namespace="theirs")] * 3)
            await server.admin.post("/api/v1/queues/default/limits", json={"max_running": 2})

            async def told(client: httpx.AsyncClient) -> list[tuple[int, int]]:
                found = (await client.get("/api/v1/queues")).json()["queues"]
                return [(one["depth"], one["running"]) for one in found]

            assert await told(server.admin) == [(4, 2)]
            assert await told(await server.role(Role.VIEWER, "ours")) == [(1, 1)]

    run(scene())


def test_a_namespace_has_a_weight() -> None:
    async def scene() -> None:
        async with running_server() as server:
            path = "/api/v1/namespaces/team/weight"
            assert (await server.admin.post(path, json={"weight": 3})).json() == {"applied": True}
            told = (await server.admin.get("/api/v1/namespaces/weights")).json()
            assert told == {"namespaces": [{"name": "team", "weight": 3}]}
            wrong = await server.admin.post(path, json={"weight": 0})
            assert error_of(wrong)["field"] == "weight"

    run(scene())


def test_a_job_tells_where_it_would_rather_run() -> None:
    async def scene() -> None:
        async with running_server() as server:
            asked = {
                "task": "shell", "args": {"argv": ["true"]}, "apart": "db", "preemptible": True,
                "prefers": ["cache:repo == linux"], "concurrency": {"key": "k", "max": 2},
                "rate": {"key": "api", "max": 5, "per": "1m"}, "resources": {"memory": "1GiB"},
            }  # fmt: skip
            made = (await server.admin.post("/api/v1/jobs", json={"jobs": [asked]})).json()
            job = (await server.admin.get(f"/api/v1/jobs/{made['ids'][0]}")).json()
            assert job["apart"] == "db"
            assert job["prefers"] == ["cache:repo==linux"]
            assert job["rate"] == {"key": "api", "max": 5, "per": 60.0}
            assert job["concurrency"] == {"key": "k", "max": 2}
            assert job["resources"] == {"memory": 2**30}
            assert job["preemptible"] is True
            wrong = {**asked, "rate": {"key": "api", "max": 0, "per": "1m"}}
            refused = await server.admin.post("/api/v1/jobs", json={"jobs": [wrong]})
            assert error_of(refused)["field"] == "jobs[0].rate.max"

    run(scene())
