"""Workflows over HTTP: made by submitting, listed, shown, waited for, canceled, retried."""

import asyncio
from typing import Any

import pytest

from tests.support.running import run
from tests.support.running_server import FakeWorker, RunningServer, error_of, job, running_server
from windlass.client.client import AsyncClient
from windlass.client.errors import WorkflowFailed
from windlass.client.service import Service
from windlass.client.transport import Transport
from windlass.client.workflows import AsyncWorkflow
from windlass.domain.access.rights import Role
from windlass.messages.sync import Finished

# The design's names and the contract's, and what is shown beside them.
FIELDS = {
    "id", "name", "namespace", "state", "counts", "jobs", "priority", "key", "submitted_by",
    "created_at", "finished_at", "run", "fail_fast", "labels", "template", "parameters", "reason",
}  # fmt: skip
BESIDE = {"on_success", "on_failure", "on_end", "supersedes", "outputs"}


async def _make(server: RunningServer, *jobs: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"jobs": list(jobs), "workflow": {"name": "release", **fields}}
    reply = await server.admin.post("/api/v1/jobs", json=body)
    assert reply.status_code == 201, reply.text
    made: dict[str, Any] = reply.json()
    return made


async def _show(server: RunningServer, workflow: int) -> dict[str, Any]:
    shown: dict[str, Any] = (await server.admin.get(f"/api/v1/workflows/{workflow}")).json()
    return shown


async def _run_all(worker: FakeWorker, outcome: str = "completed") -> None:
    while jobs := (await worker.sync(want=10)).jobs:
        ended = tuple(Finished(each.job, each.attempt, outcome) for each in jobs)  # type: ignore[arg-type]
        await worker.sync(finished=ended)


def test_a_workflow_has_the_names_that_scripts_build_on() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            made = await _make(
                server, job(name="a"), job(after=["a"]),
                priority="high", key="k", fail_fast=True, labels={"team": "a"},
                template="release@2", parameters={"version": "1.2"},
                on_end=[{"webhook": {"url": "https://example.org/x", "secret": "s3cret"}}],
            )  # fmt: skip
            shown = await _show(server, made["workflow"])
            assert set(shown) == FIELDS | BESIDE
            assert shown["counts"] == {"queued": 1, "blocked": 1}
            assert (shown["jobs"], shown["state"], shown["run"]) == (2, "queued", 1)
            assert (shown["priority"], shown["key"], shown["fail_fast"]) == (1, "k", True)
            assert (shown["labels"], shown["template"]) == ({"team": "a"}, "release@2")
            assert shown["parameters"] == {"version": "1.2"}
            assert shown["submitted_by"].startswith("admin")
            assert shown["finished_at"] is None
            assert "s3cret" not in str(shown)
            assert shown["on_end"][0]["webhook"]["url"] == "https://example.org/x"

    run(scenario())


def test_lists_are_filtered_and_paged() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            one = (await _make(server, labels={"a": "1"}))["workflow"]
            two = (await _make(server, job(), name="nightly", key="k"))["workflow"]
            three = (await _make(server, job(), labels={"a": "1", "b": "2"}))["workflow"]

            async def listed(**query: Any) -> list[int]:
                reply = await server.admin.get("/api/v1/workflows", params=query)
                assert reply.status_code == 200, reply.text
                return [shown["id"] for shown in reply.json()["workflows"]]

            assert await listed() == [three, two, one]
            assert await listed(state="completed") == [one]
            assert await listed(state=["queued", "completed"]) == [three, two, one]
            assert await listed(name="nightly") == [two]
            assert await listed(key="k") == [two]
            assert await listed(label=["a=1", "b=2"]) == [three]
            page = (await server.admin.get("/api/v1/workflows?limit=2")).json()
            assert [shown["id"] for shown in page["workflows"]] == [three, two]
            rest = (await server.admin.get(f"/api/v1/workflows?after={page['next']}")).json()
            assert [shown["id"] for shown in rest["workflows"]] == [one]
            assert rest["next"] is None
            bad = await server.admin.get("/api/v1/workflows?state=pending")
            assert (bad.status_code, error_of(bad)["field"]) == (422, "state")

    run(scenario())


def test_its_jobs_are_listed() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            made = await _make(server, job(name="a"), job(name="b"))
            await server.submit()
            path = f"/api/v1/workflows/{made['workflow']}/jobs"
            page = (await server.admin.get(path, params={"limit": 1})).json()
            assert [shown["name"] for shown in page["jobs"]] == ["b"]
            rest = (await server.admin.get(path, params={"after": page["next"]})).json()
            assert [shown["name"] for shown in rest["jobs"]] == ["a"]

    run(scenario())


def test_a_wait_ends_with_the_workflow() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            made = await _make(server, job())
            path = f"/api/v1/workflows/{made['workflow']}/wait"
            early = (await server.admin.get(path, params={"timeout": 0})).json()
            assert early["state"] == "queued"
            waiting = asyncio.ensure_future(server.admin.get(path, params={"timeout": 30}))
            await _run_all(await server.worker())
            assert (await waiting).json()["state"] == "completed"

    run(scenario())


def test_it_is_canceled_and_the_reason_is_shown() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            made = await _make(server, job(), job())
            path = f"/api/v1/workflows/{made['workflow']}/cancel"
            done = (await server.admin.post(path, json={"reason": "wrong branch"})).json()
            assert done == {"id": made["workflow"], "state": "canceled", "applied": True}
            again = (await server.admin.post(path, json={})).json()
            assert again["applied"] is False
            shown = await _show(server, made["workflow"])
            assert (shown["state"], shown["reason"]) == ("canceled", "wrong branch")
            join = await server.admin.post(
                "/api/v1/jobs", json={"jobs": [job(workflow=made["workflow"])]}
            )
            assert (join.status_code, error_of(join)["code"]) == (409, "workflow_ended")
            reopened = {"jobs": [job(workflow=made["workflow"])], "reopen": True}
            assert (await server.admin.post("/api/v1/jobs", json=reopened)).status_code == 201

    run(scenario())


def test_it_is_retried_in_part_or_from_scratch() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            made = await _make(server, job(name="a"), job(name="b", after=["a"]))
            worker = await server.worker()
            await _run_all(worker, "failed")
            path = f"/api/v1/workflows/{made['workflow']}/retry"
            done = (await server.admin.post(path, json={})).json()
            assert done == {
                "id": made["workflow"],
                "applied": True,
                "at": 0,
            }  # the id is as old as it was
            await _run_all(worker)
            assert (await _show(server, made["workflow"]))["run"] == 2
            again = (await server.admin.post(path, json={"failed": False})).json()
            assert again["id"] != made["workflow"]
            assert again["at"] > 0
            shown = await _show(server, again["id"])
            assert (shown["supersedes"], shown["jobs"]) == (made["workflow"], 2)

    run(scenario())


def test_workflows_of_others_do_not_exist() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            ours = await server.role(Role.SUBMITTER, "a")
            theirs = (await _make(server, job(), namespace=None))["workflow"]
            for method, rest in (
                ("GET", ""), ("GET", "/jobs"), ("GET", "/wait?timeout=0"), ("POST", "/cancel"),
                ("POST", "/retry"),
            ):  # fmt: skip
                body: dict[str, Any] | None = {} if method == "POST" else None
                path = f"/api/v1/workflows/{theirs}{rest}"
                reply = await ours.request(method, path, json=body)
                assert reply.status_code == 404, (method, rest)
            assert (await ours.get("/api/v1/workflows")).json()["workflows"] == []
            body = {"jobs": [job(workflow=theirs)]}
            assert (await ours.post("/api/v1/jobs", json=body)).status_code == 404
            viewer = await server.role(Role.VIEWER)
            refused = await viewer.post(f"/api/v1/workflows/{theirs}/cancel", json={})
            assert refused.status_code == 403

    run(scenario())


def test_a_handle_shows_waits_cancels_and_retries() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            service = Service(Transport(server.address, await server.token(Role.ADMIN)))
            async with AsyncClient(service=service):
                made = await _make(server, job(name="a"), job(name="b", after=["a"]))
                handle = AsyncWorkflow(service, made["workflow"])
                assert (await handle.info()).state == "queued"
                assert [each.name for each in await handle.jobs()] == ["b", "a"]
                worker = await server.worker()
                await _run_all(worker, "failed")
                with pytest.raises(WorkflowFailed, match="1 failed, 1 aborted"):
                    await handle.complete(30)
                await handle.retry()
                await _run_all(worker)
                assert (await handle.complete(30)).state == "completed"
                anew = await handle.retry(failed=False)
                assert await anew.cancel("not needed")
                assert (await anew.wait(30)).state == "canceled"

    run(scenario())
