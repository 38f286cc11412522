"""Graphs, progress, timelines and comparisons of workflows over HTTP."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.support.forms import by_form
from tests.support.running import run
from tests.support.running_server import FakeWorker, RunningServer, job, running_server
from windlass.domain.access.rights import Identity, Role
from windlass.domain.job.job import JobSpec
from windlass.engine import graphs as graphs_module
from windlass.engine.graphs import CHUNK
from windlass.engine.submit.submission import WorkflowSpec
from windlass.messages.sync import Finished, Started
from windlass.operations.dispatch.call import Call
from windlass.operations.graphs import graph


async def make(server: RunningServer, *jobs: dict[str, Any], **fields: Any) -> int:
    body = {"jobs": list(jobs), "workflow": {"name": "release", **fields}}
    reply = await server.admin.post("/api/v1/jobs", json=body)
    assert reply.status_code == 201, reply.text
    return int(reply.json()["workflow"])


async def ask(server: RunningServer, path: str, status: int = 200, **query: Any) -> dict[str, Any]:
    reply = await server.admin.get(f"/api/v1/workflows/{path}", params=query)
    assert reply.status_code == status, reply.text
    found: dict[str, Any] = reply.json()
    return found


async def run_jobs(worker: FakeWorker, count: int, outcome: str = "completed") -> None:
    """Runs so many jobs, in as many syncs as it takes."""
    while count > 0:
        jobs = (await worker.sync(want=count)).jobs
        await worker.sync(started=tuple(Started(each.job, each.attempt) for each in jobs))
        ended = tuple(Finished(each.job, each.attempt, outcome) for each in jobs)  # type: ignore[arg-type]
        await worker.sync(finished=ended)
        count -= len(jobs)


DIAMOND = (job(name="a"), job(name="b", after=["a"]), job(name="c", after=["a"]),
           job(name="d", after=["b", "c"], unblock="manual"))  # fmt: skip


@pytest.mark.parametrize("store", ["memory:", "sqlite"])
def test_a_graph_has_positions_edges_and_the_states_of_now(store: str, tmp_path: Any) -> None:
    address = store if store == "memory:" else f"sqlite:{tmp_path}/jobs.db"

    async def scenario() -> None:
        async with running_server(address) as server:
            workflow = await make(server, *DIAMOND)
            graph = await ask(server, f"{workflow}/graph")
            nodes = {node["label"]: node for node in graph["nodes"]}
            assert [nodes[name]["layer"] for name in "abcd"] == [0, 1, 1, 2]
            assert nodes["a"]["x"] < nodes["b"]["x"] == nodes["c"]["x"] < nodes["d"]["x"]
            assert graph["states"] == {"blocked": 3, "queued": 1}
            ids = {node["id"]: name for name, node in nodes.items()}
            assert {(ids[e["source"]], ids[e["target"]]) for e in graph["edges"]} == {
                ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"),
            }  # fmt: skip

            worker = await server.worker(slots=10)
            await run_jobs(worker, 1)
            states = await ask(server, f"{workflow}/graph/states")
            assert states["version"] == graph["version"]
            assert states["nodes"][nodes["a"]["id"]] == {"completed": 1}
            shown = (await server.admin.get(f"/api/v1/workflows/{workflow}")).json()
            assert states["states"] == shown["counts"]

    run(scenario())


def test_a_retry_changes_the_version_and_the_new_job_takes_the_place_of_the_old() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            workflow = await make(server, job(name="a", retries=0), job(after=["a"]))
            worker = await server.worker(slots=10)
            await run_jobs(worker, 1, "failed")
            before = await ask(server, f"{workflow}/graph")
            assert before["states"] == {"aborted": 1, "failed": 1}
            path = f"/api/v1/workflows/{workflow}/retry"
            assert (await server.admin.post(path, json={"failed": True})).status_code == 200
            after = await ask(server, f"{workflow}/graph")
            assert after["version"] != before["version"]
            assert after["states"] == {"blocked": 1, "queued": 1}
            assert len(after["edges"]) == 1
            assert [n["x"] for n in after["nodes"]] == [n["x"] for n in before["nodes"]]
            timeline = await ask(server, f"{workflow}/timeline")
            assert timeline["runs"] == 1  # that of the job that was retried

    run(scenario())


def test_groups_are_opened_by_id_and_their_counts_add_up_to_those_of_the_workflow() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            tests = [job(name=f"test[{n}]", after=["build"]) for n in range(150)]
            workflow = await make(server, job(name="build"), *tests)
            graph = await ask(server, f"{workflow}/graph")
            assert [(n["kind"], n["jobs"]) for n in graph["nodes"]] == [("job", 1), ("name", 150)]
            assert graph["nodes"][1]["states"] == {"blocked": 150}
            opened = await ask(server, f"{workflow}/graph", opened=["n:test", "n:test/p:1-120"])
            assert sum(n["jobs"] for n in opened["nodes"] if not n["open"]) == 151
            shown = (await server.admin.get(f"/api/v1/workflows/{workflow}")).json()
            assert opened["states"] == shown["counts"]
            last = max(int(n["id"]) for n in opened["nodes"] if n["kind"] == "job")
            found = await ask(server, f"{workflow}/graph", reveal=last)
            assert str(last) in {node["id"] for node in found["nodes"]}
            await ask(server, f"{workflow}/graph", 422, opened=["x"] * 51)

    run(scenario())


def test_the_jobs_of_a_group_are_listed_by_state_and_page() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            tests = [job(name=f"test[{n}]", after=["build"]) for n in range(150)]
            workflow = await make(server, job(name="build"), *tests)
            worker = await server.worker(slots=10)
            await run_jobs(worker, 6)
            group: dict[str, Any] = {"group": "n:test"}
            done = await ask(server, f"{workflow}/graph/jobs", **group, state="completed")
            assert len(done["jobs"]) == 5
            assert {one["state"] for one in done["jobs"]} == {"completed"}
            assert done["next"] is None
            seen: list[str] = []
            after: str | None = "0"
            while after is not None:
                page = await ask(server, f"{workflow}/graph/jobs", **group, after=after, limit=70)
                seen += [one["name"] for one in page["jobs"]]
                after = page["next"]
            assert sorted(seen) == sorted(f"test[{n}]" for n in range(150))
            part = await ask(server, f"{workflow}/graph/jobs", group="n:test/p:121-150")
            assert len(part["jobs"]) == 30
            gone = await ask(server, f"{workflow}/graph/jobs", 404, group="n:lint")
            assert gone["error"]["message"] == "group n:lint does not exist"

    run(scenario())


def test_the_jobs_of_a_group_of_others_are_not_found() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            workflow = await make(server, job(name="a", namespace="own"), namespace="own")
            path = f"/api/v1/workflows/{workflow}/graph/jobs"
            own = await (await server.role(Role.VIEWER, "own")).get(path)
            assert [one["name"] for one in own.json()["jobs"]] == ["a"]
            other = await (await server.role(Role.VIEWER, "other")).get(path)
            assert other.status_code == 404

    run(scenario())


def test_a_workflow_that_is_too_large_to_draw_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graphs_module, "MAX_JOBS", 3)

    async def scenario() -> None:
        async with running_server() as server:
            workflow = await make(server, *DIAMOND)
            for path in ("graph", "progress", "timeline"):
                error = (await ask(server, f"{workflow}/{path}", 409))["error"]
                assert error["code"] == "graph_too_large"
                assert error["message"] == (
                    f"workflow {workflow} has more than 3 jobs: its graph is too large. "
                    "Its jobs can be listed and filtered"
                )

    run(scenario())


def test_progress_tells_the_longest_chain_and_what_waits_for_approval() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            workflow = await make(server, *DIAMOND)
            worker = await server.worker(slots=10)
            await run_jobs(worker, 3)
            found = await ask(server, f"{workflow}/progress")
            assert (found["jobs"], found["done"], found["running"]) == (4, 3, 0)
            chain = [each["name"] for each in found["critical_path"]["jobs"]]
            assert chain[0] == "a"
            assert chain[-1] == "d"
            assert len(chain) == found["critical_path"]["length"] == 3
            (approval,) = found["approvals"]
            assert (approval["name"], approval["others"]) == ("d", 0)
            path = f"/api/v1/jobs/{approval['job']}/unblock"
            assert (await server.admin.post(path, json={})).status_code == 200
            assert (await ask(server, f"{workflow}/progress"))["approvals"] == []

    run(scenario())


def test_a_timeline_has_the_attempts_of_each_worker() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            workflow = await make(server, *DIAMOND)
            worker = await server.worker("box", slots=10)
            await run_jobs(worker, 3)
            found = await ask(server, f"{workflow}/timeline")
            assert {lane["name"] for lane in found["lanes"]} == {"box"}
            assert found["runs"] == 3
            bars = [bar for lane in found["lanes"] for bar in lane["bars"]]
            assert sum(bar["runs"] for bar in bars) == 3
            assert all(bar["start"] <= bar["end"] for bar in bars)
            named = await ask(server, f"{workflow}/timeline", by="name", limit=2)
            assert [lane["name"] for lane in named["lanes"]] == ["a", "b"]
            assert named["lanes_total"] == 3
            await ask(server, f"{workflow}/timeline", 422, by="colour")

    run(scenario())


def test_two_runs_are_compared_job_by_job() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            one = await make(server, job(name="same"), job(name="bad", queue="x"), job(name="old"))
            worker = await server.worker(slots=10)
            await run_jobs(worker, 3)
            other = {"task": "shell", "args": {"argv": ["true", "-v"]}, "name": "bad"}
            two = await make(server, job(name="same"), other, job(name="new"))
            jobs = (await worker.sync(want=9)).jobs
            await worker.sync(started=tuple(Started(each.job, each.attempt) for each in jobs))
            bad = [each.job for each in jobs if b"-v" in msgspec.json.encode(each)]
            assert len(bad) == 1
            await worker.sync(
                finished=tuple(
                    Finished(each.job, each.attempt, "failed" if each.job in bad else "completed")
                    for each in jobs
                )
            )
            found = await ask(server, "compare", a=one, b=two)
            assert (found["only_a"], found["only_b"]) == (1, 1)
            first = found["jobs"][0]
            assert first["name"] == "bad"
            assert first["state_differs"]
            assert first["arguments"] == [{"name": "argv", "a": ["true"], "b": ["true", "-v"]}]
            assert "same" not in {each["name"] for each in found["jobs"]}
            short = await ask(server, "compare", a=one, b=two, limit=1)
            assert (len(short["jobs"]), short["left_out"]) == (1, found["different"] - 1)

    run(scenario())


def test_comparing_with_a_workflow_of_others_tells_nothing() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            own = await make(server, job(name="a", namespace="own"), namespace="own")
            hidden = await make(server, job(name="a"))
            viewer = await server.role(Role.VIEWER, "own")
            for a, b, status in [(own, own, 200), (own, hidden, 404), (hidden, own, 404)]:
                path = f"/api/v1/workflows/compare?a={a}&b={b}"
                assert (await viewer.get(path)).status_code == status

    run(scenario())


def test_the_server_goes_on_while_a_large_graph_is_read() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            jobs = by_form(5_000, 100_000)
            specs = [
                JobSpec(task="shell", args={"argv": ["true"]}, name=f"j{n}", after=needs)
                for n in range(jobs)
                for needs in ((f"j{n - 1000}",) if n >= 1000 else (),)
            ]
            made = await server.services.engine.submit(specs, WorkflowSpec(name="large"))
            turns = 0
            loop = asyncio.get_running_loop()

            def count() -> None:
                nonlocal turns
                turns += 1
                loop.call_soon(count)

            call = Call(server.services, Identity(0, "x", Role.ADMIN))
            asking = asyncio.ensure_future(graph(call, made.known_workflow))
            loop.call_soon(count)
            found = await asking
            assert sum(node.jobs for node in found.nodes) == jobs
            assert len(found.nodes) < 500
            # It gave way after each chunk that was read, not just at the end.
            assert turns >= 2 * jobs // CHUNK

    run(scenario())


def test_states_that_no_event_told_of_are_read_again() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            workflow = await make(server, *DIAMOND)
            await ask(server, f"{workflow}/graph")
            loaded = await server.services.graphs.loaded(workflow)
            loaded.states[0] = 9  # as if an event had come too late to be seen
            found = await ask(server, f"{workflow}/graph/states")
            assert found["states"] == {"blocked": 3, "queued": 1}

    run(scenario())
