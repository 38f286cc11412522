"""Jobs over HTTP: submit, list, show, wait, cancel, retry, unblock, prioritise."""

import asyncio
from typing import Any

import pytest

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, job, running_server
from windlass.domain.access.rights import Role
from windlass.domain.config import Config
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.messages.sync import Finished

# The design's names, in its order, and what is shown beside them.
FIELDS = [
    "id", "namespace", "workflow", "name", "task", "args", "queue", "state", "priority",
    "requires", "resources", "after", "after_any", "allow_failure", "unblock", "attempt",
    "attempts", "retry_count", "retries", "max_retries", "retry_on", "no_retry_on", "backoff",
    "lost_count", "not_before", "timeout",
    "timeout_from", "timeout_at", "idle_timeout", "last_activity_at", "transitions", "dynamic",
    "quarantined",
    "result", "progress", "log", "artifacts", "supersedes", "superseded_by", "labels", "key",
    "key_for", "submitted_by", "created_at", "assigned_at", "started_at", "finished_at", "reason",
]  # fmt: skip
BESIDE = {
    "exit_code", "failure", "worker", "secrets", "start_before", "finish_before",
    "capability_grace", "estimated_start", "estimated_end", "overdue", "peak_memory", "suggestions",
    "statistics", "indices",
    "prefers", "apart", "rate", "concurrency", "preemptible",
    "dependencies", "dependents", "dependents_more", "steps", "options",
}  # fmt: skip


async def _fail_one(server: RunningServer) -> int:
    worker = await server.worker()
    number = await server.submit()
    (given,) = (await worker.sync(want=1)).jobs
    ended = Finished(given.job, given.attempt, "failed", 3, "execution", "it said no")
    await worker.sync(finished=(ended,))
    return number


def test_a_job_has_the_names_that_scripts_build_on() -> None:
    async def scenario() -> None:
        async with running_server("memory:") as server:
            number = await _fail_one(server)
            shown = await server.show(number)
            assert [name for name in shown if name not in BESIDE] == FIELDS
            assert set(shown) == {*FIELDS, *BESIDE}
            assert set(shown["priority"]) == {"base", "adjustment", "effective", "inherited"}
            assert shown["log"] == {"state": "none", "bytes": 0}
            (attempt,) = shown["attempts"]
            assert {"number", "worker", "state", "failure", "started_at", "finished_at"} <= {
                *attempt
            }
            failure = {"class": "execution", "message": "it said no", "exception": None}
            assert attempt["failure"] == failure
            assert attempt["exit_code"] == 3
            assert shown["created_at"].endswith("Z")
            moves = [(t["from"], t["to"]) for t in shown["transitions"]]
            assert moves[0] == (None, "queued")
            assert moves[-1] == ("running", "failed")

    run(scenario())


def test_retries_are_counted_and_not_failures() -> None:
    async def scenario() -> None:
        at_once = Config(retry=RetryPolicy(initial_backoff_ms=0))
        async with running_server("memory:", at_once) as server:
            worker = await server.worker()
            number = await server.submit(job(retries=1, retry_on=["execution"]))
            for retries in (0, 1):
                (given,) = (await worker.sync(want=1)).jobs
                assert (await server.show(number))["retry_count"] == retries
                said = Finished(given.job, given.attempt, "failed", 3, "execution", "no")
                await worker.sync(finished=(said,))
            shown = await server.show(number)
            assert (shown["state"], shown["retry_count"], shown["max_retries"]) == ("failed", 1, 1)

    run(scenario())


def test_many_jobs_are_submitted_at_once_or_not_at_all() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            good = {"jobs": [job(name="x"), job(name="y", after=["x"])], "workflow": {"name": "w"}}
            reply = (await server.admin.post("/api/v1/jobs", json=good)).json()
            assert reply["applied"] == [True, True]
            assert (await server.show(reply["ids"][1]))["after"] == [reply["ids"][0]]
            assert (await server.show(reply["ids"][1]))["workflow"] == reply["workflow"]
            bad = {"jobs": [job(), job(priority="urgent")]}
            refused = await server.admin.post("/api/v1/jobs", json=bad)
            assert refused.status_code == 422
            assert error_of(refused)["field"] == "jobs[1].priority"
            assert len((await server.admin.get("/api/v1/jobs")).json()["jobs"]) == 2

    run(scenario())


def test_the_same_key_names_the_same_job() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            body = {"jobs": [job(key="nightly")]}
            first = (await server.admin.post("/api/v1/jobs", json=body)).json()
            again = (await server.admin.post("/api/v1/jobs", json=body)).json()
            assert again.pop("at") >= first["at"]  # so that a handle takes the job for its own
            assert again == {"ids": first["ids"], "applied": [False], "workflow": None}
            other = {"jobs": [job(key="nightly", queue="batch")]}
            reply = await server.admin.post("/api/v1/jobs", json=other)
            assert (reply.status_code, error_of(reply)["code"]) == (409, "key_conflict")

    run(scenario())


def test_a_list_is_filtered_and_goes_on_from_its_cursor() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ids = [
                await server.submit(job(labels={"n": str(n)}, queue=f"q{n % 2}")) for n in range(5)
            ]
            await server.admin.post(f"/api/v1/jobs/{ids[0]}/cancel")

            async def listed(**query: Any) -> list[int]:
                found: list[int] = []
                while True:
                    reply = (await server.admin.get("/api/v1/jobs", params=query)).json()
                    found += [shown["id"] for shown in reply["jobs"]]
                    if reply["next"] is None:
                        return found
                    query["after"] = reply["next"]

            assert await listed(limit=2) == ids[::-1]
            assert await listed(state="canceled") == [ids[0]]
            assert await listed(state=["pending", "canceled"]) == ids[::-1]
            assert await listed(queue="q1") == [ids[3], ids[1]]
            assert await listed(label="n=4") == [ids[4]]
            assert await listed(task="python") == []
            assert await listed(submitted_by="nobody") == []
            assert await listed(dead="true") == []

    run(scenario())


def test_a_wait_is_answered_when_the_job_ends_and_not_before() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            number = await server.submit()
            path = f"/api/v1/jobs/{number}/wait"
            assert (await server.admin.get(path, params={"timeout": 0})).json()["state"] == "queued"
            waiting = asyncio.create_task(server.admin.get(path, params={"timeout": 25}))
            await server.admin.post(f"/api/v1/jobs/{number}/cancel", params={"reason": "enough"})
            ended = (await waiting).json()
            assert (ended["state"], ended["reason"]) == ("canceled", "enough")

    run(scenario())


def test_cancel_says_what_it_changed() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            number = await server.submit()
            path = f"/api/v1/jobs/{number}/cancel"
            first = (await server.admin.post(path)).json()
            assert first == {"id": number, "state": "canceled", "applied": True}
            assert (await server.admin.post(path)).json()["applied"] is False
            reply = await server.admin.post("/api/v1/jobs/cancel", json={"ids": [number, 999]})
            assert reply.json()["jobs"] == [
                {"id": number, "state": "canceled", "applied": False},
                {"id": 999, "state": None, "applied": False},
            ]

    run(scenario())


def test_a_retry_supersedes_and_repeats_its_answer() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            number = await _fail_one(server)
            path = f"/api/v1/jobs/{number}/retry"
            first = (await server.admin.post(path)).json()
            again = (await server.admin.post(path)).json()
            assert first["applied"] is True
            assert again == {"id": first["id"], "applied": False, "at": 0}
            assert (await server.show(number))["superseded_by"] == first["id"]
            refused = await server.admin.post(f"/api/v1/jobs/{first['id']}/retry")
            assert (refused.status_code, error_of(refused)["code"]) == (409, "not_retryable")

    run(scenario())


@pytest.mark.parametrize(("accept", "state"), [(True, "queued"), (False, "aborted")])
def test_an_operator_accepts_or_rejects_a_job_that_waits(accept: bool, state: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            number = await server.submit(job(unblock="manual"))
            assert (await server.show(number))["state"] == "blocked"
            path = f"/api/v1/jobs/{number}/unblock"
            reply = await server.admin.post(path, json={"accept": accept, "reason": "no"})
            assert reply.json() == {"applied": True}
            assert (await server.show(number))["state"] == state

    run(scenario())


def test_a_submitter_only_lowers_the_priority_of_its_own_jobs() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            submitter = await server.role(Role.SUBMITTER)
            other = await server.role(Role.SUBMITTER)
            path = f"/api/v1/jobs/{await server.submit(by=submitter)}/priority"
            lower = await submitter.post(path, json={"adjustment": -5})
            assert lower.json()["effective"] == -5
            assert lower.json()["score"] == pytest.approx(45, abs=0.5)
            for client, adjustment in ((submitter, -4), (other, -6)):
                reply = await client.post(path, json={"adjustment": adjustment})
                assert (reply.status_code, error_of(reply)["code"]) == (403, "forbidden")
            raised = await server.admin.post(path, json={"adjustment": 5})
            assert raised.json()["adjustment"] == 5
            assert (await server.admin.post(path, json={"adjustment": 5})).json()[
                "applied"
            ] is False

    run(scenario())


def test_errors_name_the_field_as_clients_do() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            for fields, named in (
                ({"retries": -1}, "retries"),
                ({"timeout": "soon"}, "timeout"),
                ({"idle_timeout": -1}, "idle_timeout"),
                ({"duration": "x"}, "duration"),
                ({"not_before": "tomorrow"}, "not_before"),
                ({"queue": ""}, "queue"),
                ({"task": ""}, "task"),
                ({"args": {"argv": []}}, "args.argv"),
                ({"args": {"argv": "true"}}, "args.argv"),
                ({"requires": ["memory >"]}, "requires"),
                ({"task": 3}, "task"),
            ):
                reply = await server.admin.post("/api/v1/jobs", json={"jobs": [job(**fields)]})
                assert reply.status_code in (400, 422), fields
                error = error_of(reply)
                assert error["code"] == "invalid_input"
                assert error["field"].removeprefix("jobs[0].").startswith(named), error
                assert error["expected"]

    run(scenario())
