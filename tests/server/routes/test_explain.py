"""Reasons over HTTP, and what each asker may see of them."""

from tests.support.running import run
from tests.support.running_server import error_of, job, running_server
from windlass.domain.access.rights import Action, Role
from windlass.domain.matching.workers import WorkerStatus

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
            assert (worker["needs"], worker["has"]) == ("memory ≥ 16 GiB", "8 GiB")
            change = told["smallest_change"]
            assert change["text"] == "add a worker like build-3 with memory ≥ 16 GiB"
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


def test_the_matrix_says_of_each_worker_and_clause_whether_it_is_met() -> None:
    async def scene() -> None:
        async with running_server() as server:
            for name, gib, gpus in (("a", 8, 2), ("b", 32, 0), ("c", 64, 0), ("d", 8, 2)):
                shares = ["default", "theirs"]
                metadata = {"system:memory": gib * 2**30, "gpus": gpus, "secret:key": shares}
                await server.worker(name, metadata=metadata)
            number = await server.submit(
                job(requires=["memory>=16GiB", "os == linux"], secrets=["key"])
            )
            viewer = await server.role(Role.VIEWER)
            told = (await viewer.get(f"/api/v1/jobs/{number}/explain/matrix")).json()
            needs = [one["needs"] for one in told["columns"]]
            assert needs[:2] == ["memory ≥ 16 GiB", "os = linux"]
            rows = {row["group"]: row["cells"][:2] for row in told["rows"]}
            assert rows["b, c"][0] == {"met": True, "has": "32 GiB, 64 GiB"}
            assert rows["a, d"][0] == {"met": False, "has": "8 GiB"}
            assert rows["b, c"][1]["met"] is False
            assert "theirs" not in str(told)
            assert {"met": True, "has": None} in told["rows"][0]["cells"]  # it has the secret
            await server.services.engine.jobs.cancel([number], "x", "admin")
            ended = (await viewer.get(f"/api/v1/jobs/{number}/explain/matrix")).json()
            assert ended["rows"] == []

    run(scene())


def test_each_step_that_one_call_can_do_says_how_and_that_call_helps() -> None:
    async def scene() -> None:
        async with running_server() as server:
            worker = await server.worker("off")
            queues, workers = server.services.engine.queues, server.services.engine.workers
            await queues.pause("default", "admin")
            await workers.set_status(worker.id, WorkerStatus.DISABLED, "x", "admin")
            number = await server.submit(job(unblock="manual"))
            viewer = await server.role(Role.VIEWER)
            for _ in range(3):
                told = (await server.admin.get(f"/api/v1/jobs/{number}/explain")).json()
                change = told["smallest_change"]
                for step in () if change is None else change["steps"]:
                    request = step["request"]
                    path, body = request["path"], request["body"]
                    refused = await viewer.request(request["method"], path, json=body)
                    assert refused.status_code == 403, step
                    done = await server.admin.request(request["method"], path, json=body)
                    assert done.status_code == 200, (step, done.text)
                    assert Action(request["needs"])
            (given,) = (await worker.sync(want=1)).jobs
            assert given.job == number

    run(scene())
