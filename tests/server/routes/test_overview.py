"""The overview and what needs attention, over HTTP, as different callers see them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.support.running import run
from tests.support.running_server import FakeWorker, RunningServer, error_of, job, running_server
from windlass.domain.access.rights import Role
from windlass.domain.lifecycle.states import State
from windlass.domain.matching.workers import LEAVING, WorkerStatus, offline
from windlass.domain.rows.files import LogRow, LogState
from windlass.domain.rows.records import Due, Ticket, Worker
from windlass.domain.rows.steps import StepKind, StepRow, StepState
from windlass.domain.values.ids import AttemptNo, JobId, ShapeId
from windlass.engine.history import series
from windlass.engine.loops.statistics import SeriesLoop
from windlass.messages.sync import Finished
from windlass.operations import attention
from windlass.operations.overview import Table
from windlass.operations.past import Span
from windlass.store.sql.transaction import WriteTx

OVERVIEW = "/api/v1/overview"
ATTENTION = "/api/v1/attention"


@asynccontextmanager
async def counting_server() -> AsyncIterator[RunningServer]:
    """A server whose figures are up to date after `count`."""
    async with running_server() as server:
        yield server


async def count(server: RunningServer) -> None:
    engine = server.services.engine
    await SeriesLoop(engine).run_once(await engine.now())


async def get(client: httpx.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    reply = await client.get(path, params=query)
    assert reply.status_code == 200, reply.text
    told: dict[str, Any] = reply.json()
    return told


async def run_one(server: RunningServer, worker: FakeWorker) -> None:
    given = await worker.sync(want=1, wait_ms=0)
    (taken,) = given.jobs
    await worker.sync(finished=(Finished(taken.job, taken.attempt, "completed"),))


def test_an_overview_adds_up_what_happened(monkeypatch: Any) -> None:
    monkeypatch.setattr(series, "SETTLED_MS", 0)

    async def scenario() -> None:
        async with counting_server() as server:
            worker = await server.worker()
            await server.submit(*[job(queue="a")] * 3, job(queue="b"))
            await run_one(server, worker)
            await count(server)
            told = await get(server.admin, OVERVIEW)
            assert told["step"] == 60
            assert len(told["times"]) in (60, 61)
            total = told["total"]
            assert (sum(total["submitted"]), sum(total["completed"])) == (4, 1)
            assert total["now"] == {"queued": 3}
            queues = {one["queue"]: one for one in told["queues"]}
            assert set(queues) == {"a", "b"}
            assert sum(one["completed"][-1] for one in queues.values()) <= 1
            assert [value for value in total["run_p50"] if value is not None] != []
            assert told["workers_now"] == {"online": 1}
            await server.submit(job(queue="a"))  # not counted yet, and shown
            assert (await get(server.admin, OVERVIEW))["total"]["now"] == {"queued": 4}

    run(scenario())


def test_an_overview_shows_only_namespaces_that_the_caller_sees(monkeypatch: Any) -> None:
    monkeypatch.setattr(series, "SETTLED_MS", 0)

    async def scenario() -> None:
        async with counting_server() as server:
            await server.submit(job(queue="mine", namespace="team"))
            await server.submit(*[job(queue="secret", namespace="other")] * 2)
            await count(server)
            limited = await server.role(Role.VIEWER, "team")
            told = await get(limited, OVERVIEW)
            assert [one["queue"] for one in told["queues"]] == ["mine"]
            assert told["total"]["now"] == {"queued": 1}
            assert "secret" not in str(told)
            assert (await limited.get(OVERVIEW, params={"namespace": "other"})).status_code == 403
            whole = await get(server.admin, OVERVIEW, namespace="other")
            assert whole["total"]["now"] == {"queued": 2}
            stranger = await server.http("nobody")
            assert (await stranger.get(OVERVIEW)).status_code == 401
            worker = await server.worker()
            as_worker = await server.http(worker.token)
            assert (await as_worker.get(OVERVIEW)).status_code == 403

    run(scenario())


def test_a_range_that_costs_too_much_is_refused() -> None:
    async def scenario() -> None:
        async with counting_server() as server:
            for query, said in (
                ({"since": "90d"}, "41 days"),
                ({"since": "1h", "until": "2h"}, "before until"),
                ({"since": "soon"}, "since"),
                ({"as_of": "2099-01-01T00:00:00Z"}, "past"),
            ):
                reply = await server.admin.get(OVERVIEW, params=query)
                assert reply.status_code == 422, reply.text
                assert said in error_of(reply)["message"]
            steps = {"1h": 60, "6h": 600, "24h": 600, "7d": 3_600}
            for since, step in steps.items():
                told = await get(server.admin, OVERVIEW, since=since)
                assert told["step"] == step
                assert len(told["times"]) <= 200

    run(scenario())


async def trouble(server: RunningServer) -> None:
    """Makes one of each thing that needs attention, in the namespace `team`."""
    engine = server.services.engine
    team = {"namespace": "team"}
    await server.worker("fine")
    await server.pending("stranger")
    broken = await server.worker("broken")
    reply = await server.admin.post(f"/api/v1/workers/{broken.id}/disable")
    assert reply.status_code == 200, reply.text
    await server.submit(job(requires=["gpu >= 9"], queue="gpus", **team))
    await server.submit(job(queue="held", **team))
    await server.admin.post("/api/v1/queues/held/pause")
    asking = await server.submit(job(**team))
    row = StepRow(asking, "q", StepKind.QUESTION, StepState.PENDING, 1, 0, namespace="team")
    log = LogRow(asking, 1, int(LogState.LOST), 5, 0, 0)
    place = Due(
        2**50,
        JobId(asking),
        State.SUSPENDED.code,
        Ticket(ShapeId(1), 0, JobId(asking), AttemptNo(1), None, None, None),
    )
    await engine.store.transact(lambda tx: tx.steps.put(row))
    await engine.store.transact(lambda tx: tx.places.add_due([place]))
    await engine.store.transact(lambda tx: tx.files.put_log(log))


def test_attention_tells_what_is_wrong_why_and_what_helps() -> None:
    async def scenario() -> None:
        async with counting_server() as server:
            await trouble(server)
            items = (await get(server.admin, ATTENTION))["items"]
            kinds = {one["kind"]: one for one in items}
            assert {"worker", "impossible", "paused", "question", "lost_log"} <= set(kinds)
            assert "gpu" in kinds["impossible"]["reason"]
            assert kinds["impossible"]["link"] == "jobs/1"  # the one that it counts
            ranks = ["error", "warning", "info"]
            found = [ranks.index(one["severity"]) for one in items]
            assert found == sorted(found)
            # The action does what it says.
            action = kinds["paused"]["help"]
            assert action["needs"] == "manage-queues"
            done = await server.admin.post(action["path"])
            assert done.status_code == 200, done.text
            after = (await get(server.admin, ATTENTION))["items"]
            assert "paused" not in {one["kind"] for one in after}

    run(scenario())


def test_workers_are_told_in_sentences_unless_they_were_sent_away() -> None:
    """A worker that was drained before it went is what somebody wanted."""

    async def scenario() -> None:
        async with counting_server() as server:
            workers = [await server.worker(name) for name in ("stopped", "drained", "lost")]
            for worker in workers[1:]:
                await server.admin.post(f"/api/v1/workers/{worker.id}/drain")

            async def titles() -> set[str]:
                items = (await get(server.admin, ATTENTION))["items"]
                return {one["title"] for one in items if one["kind"] == "worker"}

            assert await titles() == {"2 workers take no more jobs"}

            async def lose(tx: WriteTx) -> None:
                rows = [view.worker for view in await tx.views.workers_with_counts()]
                found = [row for row in rows if row.id == workers[2].id]
                await tx.workers.update([offline(row, "no heartbeat") for row in found])

            engine = server.services.engine
            for worker in workers[:2]:
                await engine.workers.leave(worker.id, worker.incarnation)
            await engine.store.transact(lose)
            assert await titles() == {"Worker stopped is offline", "Worker lost is offline"}

    run(scenario())


def test_several_workers_are_told_in_the_plural() -> None:
    async def scenario() -> None:
        async with counting_server() as server:
            for name in ("a", "b"):
                await server.worker(name)

            async def told(change: Callable[[Worker], Worker]) -> tuple[str, str]:
                async def apply(tx: WriteTx) -> None:
                    rows = [view.worker for view in await tx.views.workers_with_counts()]
                    await tx.workers.update([change(row) for row in rows])

                await server.services.engine.store.transact(apply)
                (item,) = (await get(server.admin, ATTENTION))["items"]
                return item["title"], item["reason"]

            silent = await told(lambda row: row._replace(status=WorkerStatus.UNHEALTHY))
            assert silent == ("2 workers missed a heartbeat", "They are unhealthy.")
            gone = await told(lambda row: offline(row, "lost"))
            assert gone == ("2 workers are offline", "No heartbeat came in time.")

    run(scenario())


class _Every:
    """Stands for a flag that every job has: it takes three lost workers to earn the real one."""

    def __rand__(self, flags: int) -> int:
        return 1


def test_quarantined_jobs_lead_to_themselves_and_are_retried_in_the_namespace_that_is_shown(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(attention, "QUARANTINED", _Every())

    async def scenario() -> None:
        async with counting_server() as server:
            worker = await server.worker("w", slots=2)
            jobs = [await server.submit(job(namespace=name)) for name in ("team", "other")]
            await worker.sync(want=2)
            failed = (Finished(one, 1, "failed", 1) for one in jobs)
            await worker.sync(finished=tuple(failed))
            (item,) = (await get(server.admin, ATTENTION, namespace="team"))["items"]
            assert (item["count"], item["link"]) == (1, "jobs?dead=true&namespace=team")
            listed = await get(server.admin, "/api/v1/jobs", dead="true", namespace="team")
            assert [one["id"] for one in listed["jobs"]] == jobs[:1]
            done = await server.admin.post(item["help"]["path"], json=item["help"]["body"])
            assert done.json()["applied"] == 1
            (other,) = (await get(server.admin, ATTENTION))["items"]
            assert (other["count"], other["link"]) == (1, "jobs?dead=true")

    run(scenario())


def test_attention_shows_only_what_the_caller_sees() -> None:
    async def scenario() -> None:
        async with counting_server() as server:
            await trouble(server)
            limited = await server.role(Role.VIEWER, "elsewhere")
            assert (await get(limited, ATTENTION))["items"] == []
            team = await server.role(Role.VIEWER, "team")
            kinds = {one["kind"] for one in (await get(team, ATTENTION))["items"]}
            assert kinds == {"impossible", "paused", "question", "lost_log"}
            assert (await team.get(ATTENTION, params={"namespace": "other"})).status_code == 403

    run(scenario())


def test_failures_are_told_by_error_and_exactly_these_are_retried() -> None:
    async def scenario() -> None:
        async with counting_server() as server:
            worker = await server.worker("w", slots=99)
            team = {"namespace": "team", "retries": 0}
            first = await server.submit(
                *[job(name=name, **team) for name in ("a1", "a2", "b", "c")]
            )
            refused = await server.submit(job(name="d", **team))
            given = (await worker.sync(want=99)).jobs
            ends = {first: "no row 1", first + 1: "no row 2", first + 2: "disk full"}
            done = [
                Finished(one.job, one.attempt, "failed", 1, "execution", ends[one.job])
                if one.job in ends
                else Finished(
                    one.job, one.attempt, "failed", None, "configuration", "no", misfit=True
                )
                if one.job == refused
                else Finished(one.job, one.attempt)
                for one in given
            ]
            await worker.sync(finished=tuple(done))
            items = (await get(server.admin, ATTENTION, namespace="team"))["items"]
            by_title = {one["title"]: one for one in items}
            assert set(by_title) == {
                "2 jobs (a…) failed",
                f"Job {first + 2} (b) failed",
                f"Job {refused} (d) was rejected",
            }
            both = by_title["2 jobs (a…) failed"]
            assert both["first_at"] <= both["last_at"]
            listed = (await server.admin.get(f"/api/v1/{both['link']}")).json()
            assert [one["id"] for one in listed["jobs"]] == [first + 1, first]
            assert both["help"]["needs"] == "change-jobs"
            reply = await server.admin.post(both["help"]["path"], json=both["help"]["body"])
            assert reply.json()["applied"] == 2
            left = {one["title"] for one in (await get(server.admin, ATTENTION))["items"]}
            assert left == set(by_title) - {"2 jobs (a…) failed"}
            limited = await server.role(Role.VIEWER, "elsewhere")
            assert (await get(limited, ATTENTION))["items"] == []
            assert (await limited.get(f"/api/v1/{both['link']}")).json()["jobs"] == []
            viewer = await server.role(Role.VIEWER, "team")
            refusal = await viewer.post(both["help"]["path"], json=both["help"]["body"])
            assert refusal.status_code == 403

    run(scenario())


def test_a_failed_workflow_is_told_once_with_what_failed_in_it() -> None:
    async def scenario() -> None:
        async with counting_server() as server:
            worker = await server.worker("w", slots=9)
            jobs = [
                job(name="compile", retries=0),
                job(name="lint", retries=0, allow_failure=True),
                job(name="deploy", after=["compile"]),
            ]
            body = {"workflow": {"name": "nightly"}, "jobs": jobs}
            reply = await server.admin.post("/api/v1/jobs", json=body)
            assert reply.status_code == 201, reply.text
            given = (await worker.sync(want=9)).jobs
            ends = [
                Finished(one.job, one.attempt, "failed", 3, "execution", "exit code 3")
                for one in given
            ]
            await worker.sync(finished=tuple(ends))
            (item,) = (await get(server.admin, ATTENTION))["items"]
            compiled = reply.json()["ids"][0]
            assert item["title"] == "Workflow nightly failed"
            assert item["reason"] == f"Job {compiled} (compile) failed: exit code 3"
            assert item["key"] == "failed_workflow default nightly"
            done = await server.admin.post(item["help"]["path"], json=item["help"]["body"])
            assert done.status_code == 200, done.text
            assert (await get(server.admin, ATTENTION))["items"] == []

    run(scenario())


def test_a_filter_by_id_takes_a_bounded_number() -> None:
    async def scenario() -> None:
        async with counting_server() as server:
            many = {"action": "retry", "where": {"id": list(range(1, 1_002))}}
            reply = await server.admin.post("/api/v1/jobs/bulk", json=many)
            assert reply.status_code == 422
            assert error_of(reply)["message"] == "expected id to be at most 1,000 jobs, got 1001"

    run(scenario())


def test_attention_tells_of_a_worker_on_probation_and_how_to_end_it() -> None:
    async def scenario() -> None:
        async with counting_server() as server:
            worker, store = await server.worker("w"), server.services.engine.store

            async def put(status: WorkerStatus, reason: str) -> None:
                async def write(tx: WriteTx) -> None:
                    row = (await tx.workers.lock([worker.id]))[worker.id]
                    await tx.workers.update([row._replace(status=int(status), reason=reason)])

                await store.transact(write)

            await put(WorkerStatus.DRAINING, LEAVING)  # which needs nobody
            assert (await get(server.admin, ATTENTION))["items"] == []
            await put(WorkerStatus.PROBATION, "5 of 10 failed")
            (item,) = (await get(server.admin, ATTENTION))["items"]
            assert (item["kind"], item["severity"]) == ("worker", "warning")
            assert (item["title"], item["reason"]) == ("Worker w is on probation", "5 of 10 failed")
            assert item["help"]["label"] == "End probation"
            assert (await server.admin.post(item["help"]["path"])).status_code == 200
            assert (await get(server.admin, ATTENTION))["items"] == []

    run(scenario())


def test_attention_tells_of_jobs_near_their_timeout_in_one_item() -> None:
    async def scenario() -> None:
        async with counting_server() as server:
            engine = server.services.engine
            worker = await server.worker("w", slots=9)
            wishes: tuple[object, ...] = (1_000, "none", 900, 1_000)
            jobs = [await server.submit(job(namespace="team", timeout=one)) for one in wishes]
            await worker.sync(want=9, prefetch=True)
            team = await server.role(Role.VIEWER, "team")

            async def begin(number: int, seconds_ago: int) -> list[Any]:
                """Returns what needs attention once this job has run for so long."""
                began = await engine.now() - seconds_ago * 1_000
                rows = [(jobs[number], began, None)]
                await engine.store.transact(lambda tx: tx.leases.start(rows))
                items: list[Any] = (await get(team, ATTENTION))["items"]
                assert all(one["kind"] == "timeout" for one in items)
                return items

            assert await begin(0, 700) == []
            assert await begin(1, 90_000) == []
            (only,) = await begin(2, 790)
            assert (only["count"], only["link"], only["exact"]) == (1, f"jobs/{jobs[2]}", True)
            (both,) = await begin(3, 810)
            assert (both["count"], both["link"]) == (2, "jobs?state=running&sort=running")
            assert both["look"]["link"] == f"jobs/{jobs[2]}"
            limited = await server.role(Role.VIEWER, "elsewhere")
            assert (await get(limited, ATTENTION))["items"] == []

    run(scenario())


def test_a_workflow_that_waits_for_a_person_offers_the_approval(monkeypatch: Any) -> None:
    monkeypatch.setattr(attention, "SETTLED_MS", -1)

    async def scenario() -> None:
        async with counting_server() as server:
            outside = await server.submit(job(unblock="manual"))
            gate = job(name="go", unblock="manual")
            many = [job(name=f"then {n}", after=["go"]) for n in range(2 * attention.MAX_BLOCKED)]
            body = {"workflow": {"name": "deploy"}, "jobs": [gate, *many]}
            assert (await server.admin.post("/api/v1/jobs", json=body)).status_code == 201
            body = {"workflow": {"name": "held"}, "jobs": [job(name="late", after=[outside])]}
            assert (await server.admin.post("/api/v1/jobs", json=body)).status_code == 201
            items = (await get(server.admin, ATTENTION))["items"]
            kinds = {one["kind"]: one for one in items}
            assert kinds["stalled"]["title"] == "Workflow held does not move"
            assert kinds["approval"]["title"] == "Workflow deploy waits for approval"
            action = kinds["approval"]["help"]
            assert action["needs"] == "unblock-jobs"
            done = await server.admin.post(action["path"], json=action["body"])
            assert done.status_code == 200, done.text
            after = (await get(server.admin, ATTENTION))["items"]
            assert "approval" not in {one["kind"] for one in after}

    run(scenario())


class _Counted(dict[tuple[str, str], dict[int, int]]):
    """Depths that count how often somebody looks at all of them."""

    looks = 0

    def items(self) -> Any:
        self.looks += 1
        return super().items()


def test_depths_are_looked_at_once_however_many_queues_there_are() -> None:
    depths = _Counted({("default", f"q{n}"): {State.QUEUED.code: n} for n in range(200)})
    table = Table(Span(0, 60_000, 60_000), 60_000, [], depths)
    assert table.queues()[0] == "q199"
    assert table.show(None, table.queues()).now == {"queued": sum(range(200))}
    assert table.show("q7", ["q7"]).now == {"queued": 7}
    assert depths.looks == 1
