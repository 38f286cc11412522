"""Tasks with their schemas over HTTP, and jobs before they are submitted."""

from typing import Any

from tests.support.running import run
from tests.support.running_server import RunningServer, job, running_server
from windlass.domain.access.rights import Role

RESIZE = {
    "name": "resize",
    "path": "shop:resize",
    "doc": "Resizes.",
    "schema": {"type": "object", "properties": {"width": {"type": "integer"}}},
    "options": {"queue": "batch"},
}


def told(*tasks: Any, **metadata: Any) -> dict[str, Any]:
    return {"functions:schemas": list(tasks), **metadata}


async def names(server: RunningServer, client: Any = None) -> set[str]:
    reply = await (client or server.admin).get("/api/v1/tasks")
    assert reply.status_code == 200, reply.text
    return {task["name"] for task in reply.json()["tasks"] if not task["is_built_in"]}


def test_built_in_tasks_and_functions_of_live_workers_are_listed() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.worker("w1", metadata=told(RESIZE))
            await server.worker("w2", metadata=told(RESIZE, {"name": "a:b", "path": "a:b"}))
            gone = await server.worker("w3", metadata=told({"name": "gone", "path": "x:gone"}))
            await server.admin.post(f"/api/v1/workers/{gone.id}/disable")
            await server.pending("w4")
            listed = (await server.admin.get("/api/v1/tasks")).json()["tasks"]
            by_name = {task["name"]: task for task in listed}
            assert set(by_name) == {
                "shell", "python", "ffmpeg", "gstreamer", "media", "resize", "a:b",
            }  # fmt: skip
            assert by_name["shell"]["schema"]["required"] == ["argv"]
            assert by_name["shell"]["schema"]["$defs"]["Input"]["properties"]
            assert by_name["resize"]["workers"] == 2
            assert by_name["resize"]["schema"] == RESIZE["schema"]
            assert by_name["resize"]["options"] == {"queue": "batch"}

    run(scenario())


def test_a_limited_token_sees_functions_of_its_own_workers_only() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.worker("all", metadata=told({"name": "all", "path": "x:all"}))
            for name in ("a", "b"):
                task = {"name": name, "path": f"x:{name}"}
                await server.worker(name, metadata=told(task, namespaces=[name]))
            task = {"name": "ab", "path": "x:ab"}
            await server.worker("ab", metadata=told(task, namespaces=["a", "b"]))
            assert await names(server, await server.role(Role.SUBMITTER, "a")) == {"a"}
            assert await names(server) == {"all", "a", "b", "ab"}

    run(scenario())


def test_a_hostile_worker_neither_floods_nor_injects_nor_replaces_a_built_in_task() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            bad = [
                {"name": "shell", "path": "x:y", "doc": "mine"},
                {"name": "<b>\x1b[1m", "path": "x:y"},
                {"name": "ok", "path": "x:y", "doc": "\x1b]0;x\x07<script>"},
                *({"name": f"n{n}", "path": "x:y"} for n in range(1_000)),
            ]
            await server.worker("w1", metadata=told(*bad))
            listed = (await server.admin.get("/api/v1/tasks")).json()["tasks"]
            by_name = {task["name"]: task for task in listed}
            assert len(listed) < 110
            assert by_name["shell"]["is_built_in"]
            assert by_name["shell"]["doc"] != "mine"
            assert by_name["ok"]["doc"] == "]0;x<script>"
            assert all(name.isprintable() for name in by_name)
            many = [{"name": f"m{n}", "path": "x:y"} for n in range(100)]
            for number in range(2, 14):
                named = [{**one, "name": f"{number}{one['name']}"} for one in many]
                await server.worker(f"w{number}", metadata=told(*named))
            server.services.tasks._known = None  # as some seconds later
            whole = (await server.admin.get("/api/v1/tasks")).json()
            assert len(whole["tasks"]) <= 1_005
            assert whole["more"]

    run(scenario())


def test_a_preview_tells_what_is_wrong_with_each_field_and_submits_nothing() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            wrong = {
                "task": "shell", "args": {"argv": []}, "timeout": "soon", "requires": ["?"],
                "unknown": 1,
            }  # fmt: skip
            reply = await server.admin.post("/api/v1/jobs/preview", json={"job": wrong})
            shown = reply.json()
            assert {one["field"] for one in shown["problems"]} == {
                "args.argv", "timeout", "requires", "unknown",
            }  # fmt: skip
            assert "jobs[0]" not in reply.text
            assert shown["command"] is None
            assert (await server.admin.get("/api/v1/jobs")).json()["jobs"] == []
            empty = (await server.admin.post("/api/v1/jobs/preview", json={"job": {}})).json()
            assert [one["field"] for one in empty["problems"]] == ["task"]

    run(scenario())


def test_a_preview_shows_the_texts_that_submit_it() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.worker("w1", metadata=told(RESIZE))
            good = job(queue="batch", timeout="90s")
            shown = (await server.admin.post("/api/v1/jobs/preview", json={"job": good})).json()
            assert shown["problems"] == []
            assert shown["command"] == "windlass submit --queue batch --timeout 1m30s -- true"
            assert "windlass.named('shell')" in shown["python"]
            assert shown["notes"] == []
            named = {"task": "resize", "args": {"width": 3}}
            shown = (await server.admin.post("/api/v1/jobs/preview", json={"job": named})).json()
            assert shown["call"] == """windlass call shop:resize '{"width":3}'"""
            missing = {"task": "resise"}
            shown = (await server.admin.post("/api/v1/jobs/preview", json={"job": missing})).json()
            assert "resize" in shown["notes"][0]

    run(scenario())


def test_a_preview_has_the_rights_of_its_caller() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            client = await server.role(Role.SUBMITTER, "a")
            foreign = {"job": job(namespace="b")}
            shown = (await client.post("/api/v1/jobs/preview", json=foreign)).json()
            assert [one["field"] for one in shown["problems"]] == ["namespace"]
            hidden = await server.submit(job(namespace="b"))
            child = {"job": job(parent=hidden)}
            shown = (await client.post("/api/v1/jobs/preview", json=child)).json()
            assert [one["field"] for one in shown["problems"]] == ["parent"]

    run(scenario())


def test_a_template_is_checked_with_its_parameters_and_not_started() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            body = {
                "name": "t",
                "parameters": {"to": {"type": "string"}, "n": {"type": "integer", "default": 1}},
                "jobs": {"a": {"run": ["echo", "${{ parameters.to }}"]}},
            }
            await server.admin.put("/api/v1/templates/t", json={"body": body})

            async def preview(**parameters: Any) -> Any:
                given = {"parameters": parameters}
                reply = await server.admin.post("/api/v1/templates/t/preview", json=given)
                assert reply.status_code == 200, reply.text
                return reply.json()

            fields: dict[str, dict[str, Any]] = {
                "to": {},
                "n": {"to": "x", "n": "many"},
                "m": {"to": "x", "m": 1},
            }
            for field, given in fields.items():
                (problem,) = (await preview(**given))["problems"]
                assert problem["field"] == f"parameters.{field}"
            shown = await preview(to="it's", n=2)
            assert shown["problems"] == []
            assert shown["command"] == (
                """windlass workflows start t --param 'to=it'"'"'s' --param n=2"""
            )
            assert """client.start_template('t', {'to': "it's", 'n': 2})""" in shown["python"]
            assert (await server.admin.get("/api/v1/workflows")).json()["workflows"] == []

    run(scenario())
