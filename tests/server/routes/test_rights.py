"""Whose jobs a submitter may change, and the priorities that roles may give."""

from typing import Any

import httpx
import pytest

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, job, running_server
from windlass.domain.access.policy import AccessPolicy
from windlass.domain.access.rights import Role
from windlass.domain.config import Config, validate
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput
from windlass.messages.jobs import SubmitRequest
from windlass.messages.sync import Finished
from windlass.ports.gateway import Holder


async def _workflow(server: RunningServer, by: httpx.AsyncClient) -> int:
    body = {"jobs": [job(name="a")], "workflow": {"name": "w"}}
    reply = await by.post("/api/v1/jobs", json=body)
    return int(reply.json()["workflow"])


def _changes(number: int, flow: int) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("/api/v1/jobs/cancel", {"ids": [number]}),
        (f"/api/v1/jobs/{number}/cancel", {}),
        (f"/api/v1/jobs/{number}/retry", {}),
        (f"/api/v1/jobs/{number}/priority", {"adjustment": -1}),
        (f"/api/v1/workflows/{flow}/cancel", {"reason": "no"}),
        (f"/api/v1/workflows/{flow}/retry", {"failed": True}),
    ]


def test_a_submitter_changes_only_its_own_jobs_and_workflows() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            mine, other = [await server.role(Role.SUBMITTER) for _ in range(2)]
            number, flow = await server.submit(by=mine), await _workflow(server, mine)
            for path, body in _changes(number, flow):
                reply = await other.post(path, json=body)
                assert (reply.status_code, error_of(reply)["code"]) == (403, "forbidden"), path
                assert "submitter-2 submitted it" in error_of(reply)["message"]
            assert (await server.show(number))["state"] == "queued"
            assert (await mine.post(f"/api/v1/jobs/{number}/cancel")).json()["applied"] is True
            assert (await mine.post(f"/api/v1/jobs/{number}/retry")).status_code == 200
            ended = await mine.post(f"/api/v1/workflows/{flow}/cancel", json={"reason": "x"})
            assert ended.json()["applied"] is True

    run(scenario())


@pytest.mark.parametrize("action", ["cancel", "retry"])
def test_a_bulk_change_leaves_the_jobs_of_others_as_they_are(action: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            submitter = await server.role(Role.SUBMITTER)
            mine = await server.submit(job(queue="q"), by=submitter)
            theirs = await server.submit(job(queue="q"))
            if action == "retry":
                worker = await server.worker()
                given = (await worker.sync(want=2)).jobs
                ends = [Finished(one.job, one.attempt, "failed", 1, "execution") for one in given]
                await worker.sync(finished=tuple(ends))
            body = {"action": action, "where": {"queue": "q", "state": ["queued", "failed"]}}
            told = (await submitter.post("/api/v1/jobs/bulk", json=body)).json()
            assert (told["matched"], told["applied"], told["refusals"]) == (2, 1, 1)
            (refused,) = told["refused"]
            assert refused["id"] == theirs
            assert "its own jobs" in refused["reason"]
            assert (await server.show(mine))["state"] != (await server.show(theirs))["state"] or (
                action == "retry"
            )

    run(scenario())


def test_what_an_own_job_submitted_is_own_too() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            mine, other = [await server.role(Role.SUBMITTER) for _ in range(2)]
            body = {"jobs": [job(name="a")], "workflow": {"name": "w"}}
            await mine.post("/api/v1/jobs", json=body)
            worker = await server.worker()
            (given,) = (await worker.sync(want=1)).jobs
            holder = Holder(worker.id, worker.incarnation, given.job, given.attempt)
            made = await worker.gateway.submit(holder, SubmitRequest(jobs=[_spec()], key="k"))
            path = f"/api/v1/jobs/{made.ids[0]}/cancel"
            assert (await other.post(path)).status_code == 403
            assert (await mine.post(path)).json()["applied"] is True

    run(scenario())


def test_the_setting_lets_submitters_change_all_jobs_that_they_see() -> None:
    async def scenario() -> None:
        config = Config(access=AccessPolicy(submitter_changes_all=1))
        async with running_server(config=config) as server:
            number = await server.submit()
            within = await server.role(Role.SUBMITTER, "default")
            stranger = await server.role(Role.SUBMITTER, "elsewhere")
            path = f"/api/v1/jobs/{number}/cancel"
            assert (await stranger.post(path)).status_code == 404
            assert (await within.post(path)).json()["applied"] is True

    run(scenario())


def test_priorities_are_bounded_by_role() -> None:
    async def scenario() -> None:
        bounds = AccessPolicy(submitter_priority_min=-5, operator_priority_max=1_000)
        async with running_server(config=Config(access=bounds)) as server:
            submitter = await server.role(Role.SUBMITTER)
            operator = await server.role(Role.OPERATOR)
            high = await server.submit(job(priority=999_999))
            flow = {"name": "w", "priority": 101}
            too_much: list[dict[str, Any]] = [
                {"jobs": [job(), job(priority=999_999)]},
                {"jobs": [job(priority="101")]},
                {"jobs": [job(priority=-6)]},
                {"jobs": [job(parent=high)]},
                {"jobs": [job(priority="+101")]},
                {"jobs": [job()], "workflow": flow},
            ]
            for body in too_much:
                reply = await submitter.post("/api/v1/jobs", json=body)
                assert reply.status_code == 422, body
                error = error_of(reply)
                assert error["field"].endswith("priority")
                assert error["expected"] == "from -5 to 100, for the role submitter"
            for body in ({"jobs": [job(priority=100)]}, {"jobs": [job(priority="low")]}):
                assert (await submitter.post("/api/v1/jobs", json=body)).status_code == 201
            refused = await operator.post("/api/v1/jobs", json={"jobs": [job(priority=1_001)]})
            assert refused.status_code == 422
            number = await server.submit(job(priority=900), by=operator)
            for adjustment, status in ((101, 403), (100, 200)):
                path = f"/api/v1/jobs/{number}/priority"
                reply = await operator.post(path, json={"adjustment": adjustment})
                assert reply.status_code == status

    run(scenario())


def test_a_job_does_not_raise_its_children_beyond_the_bounds() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            submitter = await server.role(Role.SUBMITTER)
            await server.submit(job(priority=90), by=submitter)
            worker = await server.worker()
            (given,) = (await worker.sync(want=1)).jobs
            holder = Holder(worker.id, worker.incarnation, given.job, given.attempt)
            request = SubmitRequest(jobs=[_spec(priority="+11")], key="a")
            with pytest.raises(InvalidInput, match="from -1000000 to 100"):
                await worker.gateway.submit(holder, request)
            made = await worker.gateway.submit(
                holder, SubmitRequest(jobs=[_spec(priority="+10"), _spec()], key="b")
            )
            assert len(made.ids) == 2

    run(scenario())


def test_bounds_that_nothing_lies_between_are_refused_at_start() -> None:
    config = Config(access=AccessPolicy(submitter_priority_min=5, submitter_priority_max=4))
    with pytest.raises(InvalidInput, match=r"access\.submitter_priority_max"):
        validate(config)


def _spec(**fields: Any) -> JobSpec:
    return JobSpec(task="shell", args={"argv": ["true"]}, **fields)
