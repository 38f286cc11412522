"""Steps, signals and questions over HTTP."""

from typing import Any

import httpx
import msgspec

from tests.support.running import run
from tests.support.running_server import FakeWorker, RunningServer, job, running_server
from windlass.domain.access.rights import Role
from windlass.domain.job.job import JobSpec
from windlass.messages.jobs import SubmitRequest
from windlass.messages.steps import StepRequest
from windlass.messages.sync import Finished
from windlass.ports.gateway import Holder


async def suspended(server: RunningServer, worker: FakeWorker, number: int, **asked: Any) -> None:
    """Runs a job up to what it waits for."""
    await worker.sync(want=1)
    reply = await ask(server, worker, number, 1, **asked)
    assert reply.json() == {"state": "pending", "value": None}
    await worker.sync(finished=(Finished(number, 1, "suspended"),))
    assert (await server.show(number))["state"] == "suspended"


async def ask(
    server: RunningServer, worker: FakeWorker, number: int, attempt: int, **asked: Any
) -> httpx.Response:
    http = await server.http(worker.token)
    path, query = f"{worker.path(number, attempt)}/steps", {"incarnation": worker.incarnation}
    return await http.post(path, params=query, json=asked)


def test_a_signal_continues_a_job_and_a_job_shows_its_steps() -> None:
    async def body() -> None:
        async with running_server() as server:
            worker = await server.worker()
            number = await server.submit()
            await suspended(server, worker, number, do="wait_for", key="w", name="paid")
            reply = await server.admin.post(
                "/api/v1/signals", json={"name": "paid", "payload": [1]}
            )
            assert reply.status_code == 201
            assert reply.json()["told"] == 1
            await worker.sync(want=1)
            got = await ask(server, worker, number, 2, do="wait_for", key="w", name="paid")
            assert got.json() == {"state": "done", "value": [1]}
            (step,) = (await server.show(number))["steps"]
            assert (step["key"], step["kind"], step["state"]) == ("w", "signal", "done")

    run(body())


def test_answers_are_checked_and_taken_once() -> None:
    async def body() -> None:
        async with running_server() as server:
            worker = await server.worker()
            number = await server.submit()
            schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            await suspended(server, worker, number, do="ask", key="q", question="?", schema=schema)
            listed = (await server.admin.get("/api/v1/questions")).json()["questions"]
            assert [(one["job"], one["question"], one["schema"]) for one in listed] == [
                (number, "?", schema)
            ]
            path = f"/api/v1/jobs/{number}/answer"
            wrong = await server.admin.post(path, json={"value": {"n": "x"}})
            assert wrong.status_code == 422
            error = wrong.json()["error"]
            assert (error["field"], error["expected"]) == ("answer.n", "a whole number")
            right = await server.admin.post(path, json={"value": {"n": 1}})
            assert right.json() == {"job": number, "key": "q"}
            again = await server.admin.post(path, json={"value": {"n": 2}, "key": "q"})
            assert (again.status_code, again.json()["error"]["code"]) == (409, "answered")

    run(body())


def test_questions_and_signals_stay_in_their_namespace() -> None:
    async def body() -> None:
        async with running_server() as server:
            worker = await server.worker()
            number = await server.submit(job(namespace="a"))
            await suspended(server, worker, number, do="ask", key="q", question="?", schema=None)
            theirs = await server.role(Role.OPERATOR, "b")
            assert (await theirs.get("/api/v1/questions")).json() == {
                "questions": [],
                "next": None,
            }
            path = f"/api/v1/jobs/{number}/answer"
            assert (await theirs.post(path, json={"value": 1})).status_code == 404
            sent = await theirs.post("/api/v1/signals", json={"name": "x", "namespace": "a"})
            assert sent.status_code == 403
            viewer = await server.role(Role.VIEWER, "a")
            (seen,) = (await viewer.get("/api/v1/questions")).json()["questions"]
            assert not seen["may_answer"]
            assert (await viewer.post(path, json={"value": 1})).status_code == 403
            assert (await viewer.post("/api/v1/signals", json={"name": "x"})).status_code == 403
            submitter = await server.role(Role.SUBMITTER, "a")
            (seen,) = (await submitter.get("/api/v1/questions")).json()["questions"]
            assert not seen["may_answer"]
            assert (await submitter.post(path, json={"value": 1})).status_code == 403
            mine = await server.role(Role.OPERATOR, "a")
            assert (await mine.get("/api/v1/questions")).json()["questions"][0]["may_answer"]
            assert (await mine.post(path, json={"value": 1})).status_code == 200
            kept = await server.services.engine.store.snapshot()
            assert kept.signals == ()

    run(body())


def test_only_the_holder_of_the_lease_stores_steps() -> None:
    async def body() -> None:
        async with running_server() as server:
            worker, other = await server.worker(), await server.worker("w2")
            number = await server.submit()
            await worker.sync(want=1)
            stored = await ask(server, worker, number, 1, do="store", key="k", value=1)
            assert stored.json() == {"state": "done", "value": 1}
            lost = await ask(server, other, number, 1, do="store", key="l", value=1)
            assert (lost.status_code, lost.json()["error"]["code"]) == (409, "lease_lost")
            http = await server.http(other.token)
            query = {"incarnation": worker.incarnation}
            stolen = await http.post(
                f"{worker.path(number)}/steps", params=query, json={"do": "find", "key": "k"}
            )
            assert stolen.status_code == 403
            assert [step["key"] for step in (await server.show(number))["steps"]] == ["k"]

    run(body())


def test_a_function_gets_the_results_of_its_children_over_http() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker(slots=2)
            number = await server.submit(job())
            (parent,) = (await worker.sync(want=1)).jobs
            holder = Holder(worker.id, worker.incarnation, number, parent.attempt)
            request = SubmitRequest(jobs=[JobSpec(task="shell", args={"argv": ["a"]})], key="k")
            (child,) = (await worker.gateway.submit(holder, request)).ids
            join = StepRequest(do="join", key="c", jobs=[child])
            assert (await worker.gateway.step(holder, join)).state == "pending"
            told = (await worker.sync(want=1, received=parent.lease)).jobs
            given = next(one for one in told if one.job == child)
            result = msgspec.Raw(b'{"n":3}')
            done = Finished(child, given.attempt, "completed", 0, result=result)
            await worker.sync(finished=(done,))
            reply = await worker.gateway.step(holder, join)
            assert reply.state == "done"
            assert [(one["id"], one["result"]) for one in reply.value] == [(child, {"n": 3})]

    run(scenario())
