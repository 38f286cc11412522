"""What workers and pools did over time, over HTTP."""

from typing import Any

from tests.server.routes.test_pools import POOL
from tests.support.running import run
from tests.support.running_server import RunningServer, job, running_server
from windlass.domain.access.rights import Role
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import Event, EventKind
from windlass.messages.sync import Finished, Started
from windlass.operations.history import Machine, machines_of, sizes_of, spells_of


async def _history(server: RunningServer, path: str, client: Any = None, **query: str) -> Any:
    reply = await (client or server.admin).get(f"/api/v1/{path}/history", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_worker_shows_the_attempts_that_ran_on_it() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker("w1", slots=4)
            await server.worker("w2")
            done = await server.submit(job(namespace="a", name="the first"))
            await worker.sync(want=1)
            await worker.sync(started=(Started(done, 1),))
            await worker.sync(finished=(Finished(done, 1, "completed", 0),))
            held = await server.submit(job(namespace="b", queue="live", name="hidden"))
            await worker.sync(want=1)
            shown = await _history(server, f"workers/{worker.id}")
            first, second = shown["attempts"]
            assert (first["job"], first["state"], first["task"]) == (done, "completed", "shell")
            assert first["assigned_at"] <= first["started_at"] <= first["finished_at"]
            assert (second["job"], second["state"], second["queue"]) == (held, "running", "live")
            assert second["finished_at"] is None
            assert (first["name"], second["name"]) == ("the first", "hidden")
            assert not shown["more"]
            assert any("enrolled" in one["what"].lower() for one in shown["changes"])
            limited = await server.role(Role.VIEWER, "a")
            seen = await _history(server, f"workers/{worker.id}", limited)
            assert [one["job"] for one in seen["attempts"]] == [done, None]
            assert [one["queue"] for one in seen["attempts"]] == ["default", None]
            assert [one["name"] for one in seen["attempts"]] == ["the first", None]
            assert seen["changes"] == []
            before = await _history(server, f"workers/{worker.id}", since="2h", until="1h")
            assert before["attempts"] == []
            missing = await server.admin.get("/api/v1/workers/999/history")
            assert missing.status_code == 404
            wrong = await server.admin.get(
                f"/api/v1/workers/{worker.id}/history", params={"since": "1h", "until": "2h"}
            )
            assert wrong.status_code == 422

    run(scenario())


def test_a_long_history_is_cut_and_says_so() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker("w1", slots=2_000)
            held = await server.submit(*(job() for _ in range(1_002)))
            await worker.sync(want=2_000)
            done = (Finished(held + n, 1, "completed", 0) for n in range(1, 1_002))
            await worker.sync(finished=tuple(done))
            shown = await _history(server, f"workers/{worker.id}")
            ended = [one for one in shown["attempts"] if one["finished_at"]]
            assert len(ended) == 1_000
            assert shown["more"]
            # What it runs now is told however long it has run.
            assert [one["job"] for one in shown["attempts"] if not one["finished_at"]] == [held]

    run(scenario())


def test_a_pool_shows_its_changes_to_those_who_see_the_log() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            assert (await server.admin.put("/api/v1/pools/p", json=POOL)).status_code == 200
            shown = await _history(server, "pools/p")
            assert [one["what"] for one in shown["changes"]] == ["Pool p was created"]
            assert [(one["machines"], one["ready"]) for one in shown["sizes"]] == [(0, 0)]
            limited = await server.role(Role.VIEWER, "a")
            assert (await _history(server, "pools/p", limited))["changes"] == []
            assert (await server.admin.get("/api/v1/pools/q/history")).status_code == 404

    run(scenario())


def _pool(at: int, text: str, data: str) -> Event:
    return Event(at, at, EventKind.POOL, 0, 0, 0, 0, 0, 0, text, "pools", data)


def test_machines_and_sizes_follow_from_the_events_of_a_pool() -> None:
    events = [
        _pool(10, "asks", '{"pool":"p","tokens":["a","b"]}'),
        _pool(20, "online", '{"pool":"p","token":"a","state":"online"}'),
        _pool(25, "Worker old of pool p is gone: idle", '{"token":"old","state":"gone"}'),
        _pool(30, "Worker a of pool p is gone: idle", '{"token":"a","state":"gone"}'),
    ]
    machines = machines_of(events[::-1], [])
    assert machines == [
        Machine("old", "gone", None, None, 25, "idle"),
        Machine("a", "gone", 10, 20, 30, "idle"),
        Machine("b", "requested", 10),
    ]
    assert [tuple(one) for one in sizes_of(machines, 5, 40)] == [
        (5, 1, 0), (10, 3, 0), (20, 3, 1), (25, 2, 1), (30, 1, 0),
    ]  # fmt: skip


def test_an_attempt_whose_start_is_not_in_the_log_any_more_is_shown_with_its_end() -> None:
    end = Event(
        9, 90, EventKind.JOB, 3, 2, 7, 1, State.RUNNING.code, State.FAILED.code, "x", "", ""
    )
    (spell,) = spells_of([end], [])
    assert (spell.started_at, spell.finished_at, spell.state) == (None, 90, State.FAILED)
