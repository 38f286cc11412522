"""Numbers that no column and no calendar holds are refused as input, and never break a statement.

PostgreSQL has the smallest columns: 32 bits for attempts, counts, exit codes and priorities.
"""

from collections.abc import Iterator
from typing import Any, Final

from tests.support.running import run
from tests.support.running_server import FakeWorker, RunningServer, error_of, job, running_server
from windlass.assembly.stores import upgrade_store
from windlass.domain.access.rights import Role
from windlass.domain.config import Config
from windlass.messages.sync import Assignment

NUMBERS: Final = (2**31, 2**63, 2**64, -1)
BEFORE_YEAR_1: Final = -62_135_596_800_001  # in ms
FLOW: Final = {"name": "t", "jobs": {"a": {"run": ["true"]}}}
REPORTS: Final = ("started", "finished", "released", "held")
DAILY: Final = {"cron": "0 0 * * *"}

PATIENT: Final = Config(heartbeat_timeout_ms=3_600_000)  # the workers of this test never beat

Sent = tuple[str, str, dict[str, Any]]  # method, path and body


def _by_workers(number: int, worker: FakeWorker, held: Assignment) -> Iterator[Sent]:
    """What a worker may say of a job that it holds, each with one number of this size."""
    attempt = f"jobs/{held.job}/attempts/{held.attempt}"
    ours = f"?incarnation={worker.incarnation}"
    sync = {"incarnation": worker.incarnation}
    for name in ("incarnation", "received", "want", "epoch", "wait_ms"):
        yield "POST", "sync", {**sync, name: number}
    for part in REPORTS:
        for name in ("job", "attempt"):
            one = {"job": held.job, "attempt": held.attempt, name: number}
            yield "POST", "sync", {**sync, part: [one]}
    yield "POST", "leave", {"incarnation": number}
    yield "POST", f"{attempt}/log/end{ours}", {"bytes": number}
    yield "POST", f"{attempt}/log/end{ours}", {"bytes": 1, "peak_memory": number}
    yield "POST", f"{attempt}/duration{ours}", {"duration_ms": number}
    yield "POST", f"{attempt}/progress{ours}", {"progress": number}


def _by_admins(number: int, waiting: int) -> Iterator[Sent]:
    for option in ("priority", "retries", "timeout", "parent", "workflow", "deadline_in"):
        yield "POST", "jobs", {"jobs": [job(**{option: number})]}
    yield "POST", "jobs", {"jobs": [job(after=[number])]}
    yield "POST", "jobs", {"jobs": [job(resources={"gpu": number})]}
    yield "POST", "jobs", {"jobs": [job()], "workflow": {"name": "w", "priority": number}}
    yield from _about_jobs(number)
    yield "POST", "jobs/delete", {"ids": [number]}
    edit = {"action": "prioritize", "where": {"name": "waiting"}}
    yield "POST", "jobs/bulk", {**edit, "adjustment": number}
    yield "POST", "jobs/bulk", {**edit, "adjustment": 1, "after": number}
    yield "POST", "jobs/bulk", {**edit, "adjustment": 1, "where": {"workflow": number}}
    yield "POST", f"jobs/{waiting}/priority", {"adjustment": number}
    yield "POST", "namespaces/default/weight", {"weight": number}
    yield "POST", "queues/other/limits", {"max_running": number}
    yield "POST", "queues/other/limits", {"max_per_worker": number}
    yield "PUT", "templates/t", {"body": {**FLOW, "priority": number}}
    yield "POST", "templates/known/start", {"version": number}
    yield "POST", "templates/known/start", {"priority": number}
    yield "PUT", "schedules/s", {**DAILY, "jobs": [job()], "catch_up_limit": number}
    yield "PUT", "schedules/s", {**DAILY, "template": "known", "priority": number}
    yield "POST", "workers/enrol", {"name": "w2", "slots": number}
    yield "POST", "workers/enrol", {"name": "w2", "replaces": number}
    for size in ("max", "min", "slots"):
        yield "PUT", "pools/p", {"provider": "local", size: number}


def _about_jobs(number: int) -> Iterator[Sent]:
    """What names a job, or several."""
    for path in ("cancel", "wait"):
        yield "POST", f"jobs/{path}", {"ids": [number]}
    yield "PUT", "names/default/x", {"job": number, "artifact": "a"}
    for option in ("parent", "workflow"):
        yield "POST", "jobs", {"jobs": [job(**{option: number})]}
    for option in ("after", "after_any"):
        yield "POST", "jobs", {"jobs": [job(**{option: [number]})]}
    where = {"workflow": number}
    yield "POST", "jobs/bulk", {"action": "cancel", "where": where}


def _stopped(number: int, worker: FakeWorker, held: Assignment) -> Iterator[dict[str, Any]]:
    """How a worker's last process may have ended; it proves to be that worker."""
    for place in ("attempt", "job", "exit_code"):
        finished = {"job": held.job, "attempt": held.attempt, place: number}
        stopped = {"incarnation": worker.incarnation, "finished": [finished]}
        yield {"name": worker.name, "takeover": True, "stopped": stopped}


async def _try_numbers(server: RunningServer, number: int) -> None:
    worker = await server.worker(f"w{number}", slots=2)
    await server.submit(job(), job())
    given, kept = (await worker.sync(want=2)).jobs
    waiting = await server.submit(job(name="waiting"))
    client = await server.http(worker.token)

    async def send(client: Any, method: str, path: str, body: Any) -> int:
        reply = await client.request(method, f"/api/v1/{path}", json=body)
        assert reply.status_code < 500, (method, path, body, reply.text)
        if reply.status_code in (400, 422):
            assert error_of(reply)["field"], body
        return int(reply.status_code)

    for seq, (method, path, body) in enumerate(_by_workers(number, worker, given), 10):
        body.update({"seq": seq} if path == "sync" else {})
        status = await send(client, method, f"workers/{worker.id}/{path}", body)
        parts = [part for name in REPORTS for part in body.get(name, ())]
        if "want" in body or "epoch" in body or any(part["attempt"] == number for part in parts):
            assert status == 422, body
    for call in _by_admins(number, waiting):
        await send(server.admin, *call)
    submitter = await server.role(Role.SUBMITTER, "default")  # whose rights to a job are looked up
    for call in _about_jobs(number):
        assert await send(submitter, *call) in (200, 400, 404, 422), call
    # An exit code is brought into range instead: what a program ended with is no mistake of ours.
    done = {"job": given.job, "attempt": given.attempt, "exit_code": number}
    body = {"incarnation": worker.incarnation, "seq": 1_000, "finished": [done]}
    assert await send(client, "POST", f"workers/{worker.id}/sync", body) == 200
    assert (await server.show(given.job))["state"] == "completed"
    own = await server.http(worker.secret)
    statuses = [
        await send(own, "POST", "workers/enrol", body) for body in _stopped(number, worker, kept)
    ]
    assert statuses in ([422, 422, 200], [422, 200, 200])  # a job of such a number may exist


def test_a_moment_before_all_calendars_is_refused() -> None:
    async def scenario() -> None:
        async with running_server("memory:") as server:
            number = await server.submit()
            for moment in (BEFORE_YEAR_1, -1, 2**64):
                shown = await server.admin.get(f"/api/v1/jobs/{number}?given_at={moment}")
                assert (shown.status_code, error_of(shown)["field"]) == (400, "given_at")
                for path in ("cancel", "delete", "wait"):
                    body = {"ids": [number], "given_at": [moment]}
                    reply = await server.admin.post(f"/api/v1/jobs/{path}", json=body)
                    assert (reply.status_code, error_of(reply)["field"]) == (400, "given_at[0]")

    run(scenario())


def test_numbers_that_no_column_holds_break_nothing(postgres_dsn: str) -> None:
    async def scenario() -> None:
        await upgrade_store(postgres_dsn)
        async with running_server(postgres_dsn, PATIENT) as server:
            known = await server.admin.put("/api/v1/templates/known", json={"body": FLOW})
            assert known.status_code < 300, known.text
            for number in NUMBERS:
                await _try_numbers(server, number)

    run(scenario())
