"""Reasons over HTTP, and what each asker may see of them."""

from tests.support.running import run
from tests.support.running_server import error_of, job, running_server
from windlass.domain.access.roles import Role

FIELDS = {
    "job", "state", "summary", "waiting_for", "workers", "limits", "ahead", "ahead_more",
    "estimated_start", "smallest_change", "notes",
}  # fmt: skip


def test_a_job_is_explained_in_the_documented_form() -> None:
    async def scene() -> None:
        async with running_server() as server:
            await server.worker("build-3", metadata={"system:memory": 8 * 2**30})
            number = await server.submit(job(requires=["memory>=16GiB"]))
            viewer = await server.role(Role.VIEWER)
            told = (await viewer.get(f"/api/v1/jobs/{number}/explain")).json()
            assert set(told) == FIELDS
            assert told["state"] == "queued"
            (worker,) = told["workers"]
            assert worker["worker"] == "build-3"
            assert (worker["needs"], worker["has"]) == ("memory ≥ 16GiB", "8GiB")
            change = told["smallest_change"]
            assert change["text"] == "add a worker like build-3 with memory ≥ 16GiB"
            idle = (await viewer.get("/api/v1/workers/1/explain")).json()
            assert idle["work"][0]["clause"] == "memory>=16GiB"
            spent = (await viewer.get(f"/api/v1/jobs/{number}/time")).json()
            assert {part["cause"] for part in spent["parts"]} <= {"no_worker"}

    run(scene())


def test_what_is_not_there_or_not_to_be_seen_is_not_found() -> None:
    async def scene() -> None:
        async with running_server() as server:
            number = await server.submit(job(namespace="theirs"))
            ours = await server.role(Role.VIEWER, "ours")
            for path in (f"jobs/{number}/explain", f"jobs/{number}/time", "jobs/77/explain",
                         "jobs/77/time", "workers/77/explain"):  # fmt: skip
                reply = await ours.get(f"/api/v1/{path}")
                assert reply.status_code == 404, path
                assert error_of(reply)["code"] == "not_found"
            assert (await ours.get("/api/v1/jobs/0/explain")).status_code == 400

    run(scene())
