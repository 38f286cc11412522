"""A token sees its own namespaces only."""

import json
from typing import Any

import httpx

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, job, running_server
from windlass.domain.access.rights import Role


async def _two(server: RunningServer) -> tuple[httpx.AsyncClient, httpx.AsyncClient, int, int]:
    ours = await server.role(Role.OPERATOR, "a")
    theirs = await server.role(Role.OPERATOR, "b")
    mine = await server.submit(job(name="mine"), by=ours)
    other = await server.submit(job(name="other"), by=theirs)
    return ours, theirs, mine, other


def test_jobs_of_others_do_not_exist() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ours, _, mine, other = await _two(server)
            assert (await ours.get(f"/api/v1/jobs/{mine}")).json()["namespace"] == "a"
            for method, rest in (
                ("GET", ""), ("GET", "/wait?timeout=0"), ("GET", "/log"), ("GET", "/artifacts"),
                ("GET", "/artifacts/x"), ("GET", "/events"), ("POST", "/cancel"),
                ("POST", "/retry"), ("GET", "/log?follow=true"),
            ):  # fmt: skip
                reply = await ours.request(method, f"/api/v1/jobs/{other}{rest}")
                assert reply.status_code == 404, (method, rest)
                assert error_of(reply)["code"] == "not_found"
            for rest, body in (("unblock", {}), ("priority", {"adjustment": -1})):
                reply = await ours.post(f"/api/v1/jobs/{other}/{rest}", json=body)
                assert reply.status_code == 404, rest
            reply = await ours.post("/api/v1/jobs/cancel", json={"ids": [mine, other]})
            assert reply.status_code == 404
            assert (await server.show(mine))["state"] == "queued"

    run(scenario())


def test_lists_show_the_own_namespace_only() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ours, _, mine, _ = await _two(server)
            listed = (await ours.get("/api/v1/jobs")).json()["jobs"]
            assert [shown["id"] for shown in listed] == [mine]
            assert (await ours.get("/api/v1/namespaces")).json() == {"namespaces": ["a"]}
            reply = await ours.get("/api/v1/jobs", params={"namespace": "b"})
            assert reply.status_code == 403
            everything = (await server.admin.get("/api/v1/jobs")).json()["jobs"]
            assert len(everything) == 2

    run(scenario())


def test_events_are_those_of_the_own_namespace() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ours, _, mine, other = await _two(server)
            text = (await ours.get("/api/v1/events?follow=false")).text
            assert f'"job":{mine},' in text
            assert f'"job":{other},' not in text

    run(scenario())


def test_a_token_submits_to_its_own_namespace_only() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ours, theirs, _, other = await _two(server)
            new = {"jobs": [job()], "workflow": {"name": "w"}}
            made = (await theirs.post("/api/v1/jobs", json=new)).json()
            for body, status in (
                ({"jobs": [job(namespace="b")]}, 403),
                ({"jobs": [job()], "workflow": {"name": "w", "namespace": "b"}}, 403),
                ({"jobs": [job(parent=other)]}, 404),
                ({"jobs": [job(workflow=made["workflow"])]}, 404),
                ({"jobs": [job(after=[other])]}, 422),
            ):
                reply = await ours.post("/api/v1/jobs", json=body)
                assert reply.status_code == status, (body, reply.text)

    run(scenario())


def test_references_do_not_tell_jobs_of_others_from_missing_ones() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ours, theirs, _, other = await _two(server)
            new = {"jobs": [job()], "workflow": {"name": "w"}}
            flow = (await theirs.post("/api/v1/jobs", json=new)).json()["workflow"]
            item = {"job": 0, "artifact": "x"}
            for body, foreign in (
                ({"jobs": [job(after=[0])]}, other),
                ({"jobs": [job(after_any=[0])]}, other),
                ({"jobs": [job(parent=0)]}, other),
                ({"jobs": [job(workflow=0)]}, flow),
                ({"jobs": [job(args={"argv": ["true"], "inputs": [item]})]}, other),
            ):
                asked = json.dumps(body)
                answers = []
                for number in (foreign, 4_000):
                    text = asked.replace("[0]", f"[{number}]").replace(": 0", f": {number}")
                    reply = await ours.post("/api/v1/jobs", json=json.loads(text))
                    shown = reply.text if reply.status_code != 201 else ""
                    answers.append((reply.status_code, shown.replace(str(number), "N")))
                assert answers[0] == answers[1], body

    run(scenario())


def test_a_limited_token_sees_the_queues_and_namespaces_of_its_own() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ours, theirs, _, _ = await _two(server)
            await server.submit(job(queue="red"), by=ours)
            await server.submit(job(queue="blue"), by=theirs)
            code = {"functions:missing": {"b.tasks:f": "no b"}, "functions:known": ["b.tasks:g"]}
            serves = {
                "secret:KEY": ["a", "b"], "secret:OTHER": ["b"], "namespaces": ["a", "b"], **code,
            }  # fmt: skip
            await server.worker(metadata={**serves, "secret:ALL": ["*"], "cpu": 1})

            async def seen(client: httpx.AsyncClient) -> tuple[list[str], Any]:
                queues = (await client.get("/api/v1/queues")).json()["queues"]
                (worker,) = (await client.get("/api/v1/workers")).json()["workers"]
                assert worker["metadata"] == worker["dynamic"]
                return [queue["name"] for queue in queues], worker["metadata"]

            queues, metadata = await seen(ours)
            assert queues == ["default", "red"]
            limited = {"secret:KEY": ["a"], "namespaces": ["a"], "secret:ALL": ["*"], "cpu": 1}
            assert metadata == limited
            queues, metadata = await seen(server.admin)
            assert queues == ["blue", "default", "red"]
            assert metadata == {**serves, "secret:ALL": ["*"], "cpu": 1}

    run(scenario())


def test_keys_of_two_namespaces_do_not_meet() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ours, theirs, _, _ = await _two(server)
            first = await server.submit(job(key="nightly"), by=ours)
            second = await server.submit(job(key="nightly"), by=theirs)
            assert first != second

    run(scenario())


def test_an_admin_of_one_namespace_gives_no_more_than_it_has() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            limited = await server.role(Role.ADMIN, "a")
            for namespaces, status in (([], 403), (["b"], 403), (["a", "b"], 403), (["a"], 201)):
                body = {"name": "t", "role": "viewer", "namespaces": namespaces}
                reply = await limited.post("/api/v1/tokens", json=body)
                assert reply.status_code == status, namespaces
            listed = (await limited.get("/api/v1/tokens")).json()["tokens"]
            assert {tuple(token["namespaces"]) for token in listed} == {("a",)}
            everything = (await server.admin.get("/api/v1/tokens")).json()["tokens"]
            foreign = next(token for token in everything if not token["namespaces"])
            reply = await limited.delete(f"/api/v1/tokens/{foreign['id']}")
            assert reply.status_code == 404

    run(scenario())


def test_lists_and_counts_do_not_tell_how_many_jobs_others_have() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ours = await server.role(Role.SUBMITTER, "a")
            told = []
            for _ in range(2):
                preview = {"action": "cancel", "where": {"name": "x"}}
                told.append([
                    (await ours.get("/api/v1/jobs", params={"text": "x"})).json(),
                    (await ours.get("/api/v1/jobs", params={"name": "x"})).json(),
                    (await ours.get("/api/v1/jobs/count", params={"text": "x"})).json(),
                    (await ours.post("/api/v1/jobs/bulk/preview", json=preview)).json(),
                ])  # fmt: skip
                await server.submit(*({**job(), "namespace": "b", "name": "x"} for _ in range(50)))
            for before, after in zip(*told, strict=True):
                assert before.pop("after", 0) <= after.pop("after", 0)
                assert before == after

    run(scenario())
