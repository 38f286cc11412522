"""Pages of very many workers over HTTP: filters, counts, cursor."""

from typing import Any

from tests.support.running import run
from tests.support.running_server import RunningServer, job, running_server
from windlass.domain.access.rights import Role

LINUX = {"system:os": "linux", "system:architectures": ["amd64"], "system:memory": 8 * 2**30}
ARM = {"system:os": "linux", "system:architectures": ["arm64"], "system:memory": 2**30}


async def _fleet(server: RunningServer, client: Any = None, **query: Any) -> Any:
    reply = await (client or server.admin).get("/api/v1/fleet", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


def _names(page: Any) -> list[str]:
    return [worker["name"] for worker in page["workers"]]


def test_workers_are_filtered_counted_and_paged() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            for name, metadata in (("b1", LINUX), ("a1", LINUX), ("c1", ARM)):
                await server.worker(name, metadata=metadata)
            busy = await server.worker("d1", metadata=ARM)
            await server.submit()
            await busy.sync(want=1)
            pooled = await server.worker("p1", metadata=LINUX)
            await server.admin.put(f"/api/v1/workers/{pooled.id}/static", json={"pool:name": "big"})
            await server.admin.post(f"/api/v1/workers/{pooled.id}/drain")
            whole = await _fleet(server)
            assert _names(whole) == ["a1", "b1", "c1", "d1", "p1"]
            assert whole["statuses"] == {"busy": 1, "draining": 1, "idle": 3}
            assert whole["kinds"] == {
                "big": {"draining": 1},
                "linux/amd64": {"idle": 2},
                "linux/arm64": {"busy": 1, "idle": 1},
            }
            first = await _fleet(server, limit=2)
            assert (_names(first), first["next"], first["total"]) == (["a1", "b1"], "b1", 5)
            rest = await _fleet(server, limit=3, after="b1")
            assert (_names(rest), rest["next"]) == (["c1", "d1", "p1"], None)
            idle = await _fleet(server, state="idle", kind="linux/arm64")
            assert (_names(idle), idle["statuses"]) == (["c1"], {"busy": 1, "idle": 1})
            assert _names(await _fleet(server, pool="big")) == ["p1"]
            assert _names(await _fleet(server, name="A")) == ["a1"]
            large = await _fleet(server, requires="memory>=4GiB")
            assert _names(large) == ["a1", "b1", "p1"]
            wrong = await server.admin.get("/api/v1/fleet", params={"state": "lazy"})
            assert wrong.status_code == 422
            assert "one of idle, busy" in wrong.text

    run(scenario())


def test_a_filter_finds_out_nothing_that_the_caller_may_not_see() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.worker("w1", metadata={"secret:key": ["b"], "namespaces": ["b"]})
            limited = await server.role(Role.VIEWER, "a")
            for clause in ("secret:key has b", "namespaces has b"):
                assert _names(await _fleet(server, requires=clause)) == ["w1"]
                assert _names(await _fleet(server, limited, requires=clause)) == []

    run(scenario())


def test_namespaces_show_what_runs_and_waits_in_those_that_the_caller_sees() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker("w1")
            await server.submit(job(namespace="a"))
            await worker.sync(want=1)
            await server.submit(job(namespace="a"), job(namespace="b"))
            await server.admin.post("/api/v1/namespaces/b/weight", json={"weight": 3})
            whole = (await server.admin.get("/api/v1/namespaces/loads")).json()["namespaces"]
            assert [(n["name"], n["running"], n["ready"], n["weight"]) for n in whole] == [
                ("a", 1, 1, 1), ("b", 0, 1, 3),
            ]  # fmt: skip
            limited = await server.role(Role.ADMIN, "b")
            seen = (await limited.get("/api/v1/namespaces/loads")).json()["namespaces"]
            assert [(n["name"], n["weight"]) for n in seen] == [("b", None)]

    run(scenario())
