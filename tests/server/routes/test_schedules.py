"""Templates, schedules and reactions over HTTP: what is shown, to whom, and what is refused."""

from typing import Any

import httpx
import pytest

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, job, running_server
from windlass.client.client import AsyncClient
from windlass.client.service import Service
from windlass.client.transport import Transport
from windlass.domain.access.rights import Role
from windlass.domain.values.errors import Unreachable

SECRET = "never shown"
HOOK = {"webhook": {"url": "https://example.com/hook", "secret": SECRET}}
BODY: dict[str, Any] = {
    "name": "release ${{ parameters.tag }}",
    "priority": 2,
    "parameters": {"tag": {"type": "string"}, "count": {"type": "integer", "default": 1}},
    "on_failure": [HOOK],
    "jobs": {
        "build": {"run": ["echo", "${{ parameters.tag }}"]},
        "test": {"run": ["true"], "after": ["build"]},
    },
}


async def put(client: httpx.AsyncClient, path: str, body: Any) -> Any:
    reply = await client.put(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def refused(reply: httpx.Response, field: str, status: int = 422) -> str:
    assert reply.status_code == status, reply.text
    error = error_of(reply)
    assert error["field"] == field
    return str(error["message"])


def test_a_template_has_versions_and_is_started_with_parameters() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            operator = await server.role(Role.OPERATOR)
            path = "/api/v1/templates/release"
            assert await put(operator, path, {"body": BODY}) == {
                "name": "release", "namespace": "default", "version": 1, "applied": True
            }  # fmt: skip
            assert (await put(operator, path, {"body": BODY}))["applied"] is False
            changed = await put(operator, path, {"body": {**BODY, "priority": 5}})
            assert (changed["version"], changed["applied"]) == (2, True)
            shown = (await server.admin.get(path, params={"version": 1})).json()
            assert (shown["version"], shown["priority"]) == (1, 2)
            submitter = await server.role(Role.SUBMITTER)
            start = {"parameters": {"tag": "v1"}, "key": "one"}
            made = (await submitter.post(f"{path}/start", json=start)).json()
            assert (made["template"], made["applied"], len(made["ids"])) == ("release@2", True, 2)
            again = (await submitter.post(f"{path}/start", json=start)).json()
            assert (again["workflow"], again["applied"]) == (made["workflow"], False)
            first = await server.show(made["ids"][0])
            assert first["args"]["argv"] == ["echo", "v1"]
            assert first["priority"]["base"] == 5
            old = {"parameters": {"tag": "v0"}, "version": 1, "priority": "high"}
            older = (await submitter.post(f"{path}/start", json=old)).json()
            assert older["template"] == "release@1"
            assert (await server.show(older["ids"][0]))["priority"]["base"] == 1
            assert (await operator.delete(path)).json() == {"applied": True}
            gone = await submitter.post(f"{path}/start", json=start)
            assert gone.status_code == 404
            back = await put(operator, path, {"body": {**BODY, "priority": 5}})
            assert (back["version"], back["applied"]) == (3, True)

    run(scenario())


def test_secrets_of_webhooks_are_shown_nowhere() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            path = "/api/v1/templates/release"
            await put(server.admin, path, {"body": BODY})
            made = await server.admin.post(f"{path}/start", json={"parameters": {"tag": "x"}})
            number = made.json()["workflow"]
            for place in (
                path, "/api/v1/templates", f"/api/v1/workflows/{number}", "/api/v1/workflows",
                f"/api/v1/workflows/{number}/reactions", f"/api/v1/workflows/{number}/jobs",
                "/api/v1/events?follow=false",
            ):  # fmt: skip
                reply = await server.admin.get(place)
                assert reply.status_code == 200, place
                assert SECRET not in reply.text, place
            shown = (await server.admin.get(path)).json()["body"]
            back = await server.admin.put(path, json={"body": shown})
            assert "secret itself" in await refused(back, "on_failure[0].webhook.secret")

    run(scenario())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"body": {"jobs": {}}}, "name"),
        ({"body": {"name": "t", "jobs": {"a": {"run": ["true"], "after": ["b"]}}}},
         "jobs.a.after"),
        ({"body": {**BODY, "jobs": {"a": {"run": ["x"], "after": ["b"]}}}}, "jobs.a.after"),
        ({"body": {**BODY, "jobs": {"${{ parameters.tag }}": {"run": ["x"], "retries": -1}}}},
         "jobs.value-of-tag.retries"),
        ({"body": {**BODY, "what": 1}}, "the workflow"),
        ({"body": {**BODY, "namespace": "other"}}, "namespace"),
        ({"body": {**BODY, "on_end": [{}]}}, "on_end[0]"),
    ],
)  # fmt: skip
def test_templates_that_cannot_be_are_refused(body: dict[str, Any], field: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await refused(await server.admin.put("/api/v1/templates/t", json=body), field)
            assert (await server.admin.get("/api/v1/templates")).json() == {"templates": []}

    run(scenario())


@pytest.mark.parametrize(
    ("start", "field"),
    [
        ({}, "parameters.tag"),
        ({"parameters": {"tag": "x", "count": "many"}}, "parameters.count"),
        ({"parameters": {"tag": "x", "other": 1}}, "parameters"),
        ({"parameters": {"tag": "x"}, "priority": "urgent"}, "workflow.priority"),
    ],
)
def test_wrong_parameters_are_named(start: dict[str, Any], field: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await put(server.admin, "/api/v1/templates/t", {"body": BODY})
            reply = await server.admin.post("/api/v1/templates/t/start", json=start)
            await refused(reply, field)
            assert (await server.admin.get("/api/v1/workflows")).json()["workflows"] == []

    run(scenario())


def test_a_schedule_is_put_paused_run_and_removed() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            path = "/api/v1/schedules/nightly"
            wanted = {"cron": "0 3 * * *", "zone": "Europe/Berlin", "jobs": [job()]}
            made = await put(server.admin, path, wanted)
            assert made["applied"] is True
            assert made["schedule"]["jobs"] == [job()]
            assert (await put(server.admin, path, wanted))["applied"] is False
            assert (await server.admin.post(f"{path}/pause")).json() == {"applied": True}
            shown = (await server.admin.get(path)).json()
            assert (shown["paused"], shown["next_at"]) == (True, None)
            assert (await server.admin.post(f"{path}/resume")).json() == {"applied": True}
            ran = (await server.admin.post(f"{path}/run")).json()
            assert (ran["state"], ran["slot"]) == ("started", None)
            found = (await server.admin.get(path)).json()
            (run_shown,) = found["runs"]
            assert found["words"] == "At 03:00 every day, Europe/Berlin time"
            assert found["coming"][0] == found["next_at"]
            assert found["coming"] == sorted(set(found["coming"]))
            assert len(found["coming"]) == 5
            assert run_shown == {**ran, "workflow_state": "queued"}
            skipped = (await server.admin.post(f"{path}/run")).json()
            assert skipped["state"] == "skipped"
            assert (await server.admin.delete(path)).json() == {"applied": True}
            assert (await server.admin.get(path)).status_code == 404
            assert (await server.admin.post(f"{path}/run")).status_code == 404

    run(scenario())


def test_what_is_wrong_with_a_schedule_is_named() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            path = "/api/v1/schedules/s"
            for change, field, status in (
                ({"cron": "0 0 30 2 *"}, "cron", 422),
                ({"every": "10s"}, "cron", 422),
                ({"cron": None}, "cron", 422),
                ({"cron": None, "every": "0.2s"}, "every", 422),
                ({"cron": None, "every": -1}, "every", 422),
                ({"cron": None, "every": "10s", "zone": "Europe/Berlin"}, "zone", 422),
                ({"zone": "Nowhere"}, "zone", 422),
                ({"overlap": "sometimes"}, "overlap", 400),
                ({"catch_up_limit": 0}, "catch_up_limit", 422),
                ({"template": "x"}, "template", 422),
                ({"jobs": [], "template": "x"}, "template", 404),
                ({"jobs": []}, "template", 422),
                ({"jobs": [job(timeout="soon")]}, "jobs[0].timeout", 422),
            ):
                body = {"cron": "0 * * * *", "jobs": [job()], **change}
                reply = await server.admin.put(path, json=body)
                assert reply.status_code == status, (change, reply.text)
                assert error_of(reply)["field"] == field, (change, reply.text)

    run(scenario())


async def _of_team(server: RunningServer, role: Role) -> httpx.AsyncClient:
    return await server.role(role, "red")


def test_a_namespace_sees_its_own_templates_and_schedules_only() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            red = await _of_team(server, Role.OPERATOR)
            plain = {"name": "t", "jobs": {"a": {"run": ["true"]}}}
            await put(red, "/api/v1/templates/t", {"body": plain})
            await put(server.admin, "/api/v1/templates/t", {"body": {**plain, "name": "other"}})
            await put(red, "/api/v1/schedules/s", {"cron": "@daily", "template": "t"})
            await put(server.admin, "/api/v1/schedules/s", {"cron": "@hourly", "template": "t"})
            seen = (await red.get("/api/v1/templates")).json()["templates"]
            assert [t["namespace"] for t in seen] == ["red"]
            assert len((await server.admin.get("/api/v1/templates")).json()["templates"]) == 2
            (schedule,) = (await red.get("/api/v1/schedules")).json()["schedules"]
            assert schedule["cron"] == "@daily"
            made = (await red.post("/api/v1/templates/t/start", json={})).json()
            assert (await red.get(f"/api/v1/workflows/{made['workflow']}")).json()["name"] == "t"
            for call in (
                red.get("/api/v1/templates/t", params={"namespace": "default"}),
                red.put("/api/v1/schedules/s", params={"namespace": "default"},
                        json={"cron": "@daily", "template": "t"}),
                red.post("/api/v1/schedules/s/run", params={"namespace": "default"}),
            ):  # fmt: skip
                assert (await call).status_code == 403
            other = await server.submit(job(), by=server.admin)
            assert other
            hers = await server.admin.post("/api/v1/templates/t/start", json={})
            place = f"/api/v1/workflows/{hers.json()['workflow']}/reactions"
            assert (await red.get(place)).status_code == 404

    run(scenario())


def test_the_client_starts_templates_and_keeps_schedules() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            token = await server.token(Role.OPERATOR)
            service = Service(Transport(server.address, token))
            async with AsyncClient(service=service) as client:
                await client.templates.put("t", BODY)
                made = await client.start_template("t", {"tag": "x"}, key="k")
                again = await client.start_template("t@1", {"tag": "x"}, key="k")
                assert made.id == again.id
                put_done = await client.schedules.put(
                    "s", "@daily", template="t", parameters={"tag": "y"}
                )
                assert put_done.schedule.parameters == {"tag": "y"}
                assert (await client.schedules.run("s")).state == "started"
                assert await client.schedules.pause("s") is True
                assert [s.paused for s in await client.schedules.list()] == [True]
                assert len((await client.schedules.show("s")).runs) == 1
                assert await made.reactions() == []
                assert await client.schedules.remove("s") is True
                assert [t.name for t in await client.templates.list()] == ["t"]
                assert (await client.templates.show("t", 1)).version == 1
                assert await client.templates.remove("t") is True

    run(scenario())


def test_what_parameters_to_come_may_set_right_is_not_refused() -> None:
    body = {
        "name": "t",
        "parameters": {
            "time": {}, "name": {}, "number": {"type": "integer"}, "systems": {"type": "list"},
        },
        "jobs": {
            "a": {"run": ["x"], "timeout": "${{ parameters.time }}"},
            "b": {"run": ["x"], "after": ["${{ parameters.name }}"]},
            "c": {"run": ["x"], "count": "${{ parameters.number }}"},
            "d": {"run": ["x"], "matrix": {"os": "${{ parameters.systems }}"}},
        },
    }  # fmt: skip

    async def scenario() -> None:
        async with running_server() as server:
            await put(server.admin, "/api/v1/templates/t", {"body": body})
            given = {"time": "5m", "name": "a", "number": 2, "systems": ["x", "y"]}
            start = {"parameters": given}
            made = await server.admin.post("/api/v1/templates/t/start", json=start)
            assert len(made.json()["ids"]) == 6

    run(scenario())


def test_a_start_that_is_sent_again_is_answered_as_before() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await put(server.admin, "/api/v1/templates/t", {"body": BODY})
            start = {"parameters": {"tag": "v1"}, "submission_key": "s"}
            first, again = [
                (await server.admin.post("/api/v1/templates/t/start", json=start)).json()
                for _ in range(2)
            ]
            assert again == {**first, "applied": False, "at": 0}
            other = {**start, "submission_key": "another"}
            more = (await server.admin.post("/api/v1/templates/t/start", json=other)).json()
            assert more["workflow"] != first["workflow"]

    run(scenario())


def test_the_client_repeats_a_start_whose_answer_was_lost() -> None:
    class Forgetful(Transport):
        """Loses the first answer."""

        lost = 0

        async def call(self, *args: Any, **kwargs: Any) -> Any:
            answer = await super().call(*args, **kwargs)
            if "/start" in args[1] and not self.lost:
                self.lost += 1
                raise Unreachable("the answer was lost")
            return answer

    async def scenario() -> None:
        async with running_server() as server:
            await put(server.admin, "/api/v1/templates/t", {"body": BODY})
            transport = Forgetful(server.address, await server.token(Role.SUBMITTER))
            async with AsyncClient(service=Service(transport)) as client:
                made = await client.start_template("t", {"tag": "x"})
            assert transport.lost == 1
            (only,) = (await server.admin.get("/api/v1/workflows")).json()["workflows"]
            assert only["id"] == made.id

    run(scenario())
