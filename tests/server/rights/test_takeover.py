"""Finding 10 of the attack: who ends a worker that is alive, and speaks for its jobs."""

from typing import Any

import pytest

from tests.server.test_security_findings import ENROL, taken
from tests.support.running import run
from tests.support.running_server import (
    FakeWorker,
    RunningServer,
    error_of,
    running_server,
)
from windlass.client.transport import ServerError
from windlass.domain.access.rights import Role
from windlass.domain.values.errors import Conflict
from windlass.messages.sync import Finished


async def _holding(server: RunningServer) -> tuple[FakeWorker, int]:
    """A live worker that runs a job."""
    victim = await server.worker("victim")
    number = await server.submit()
    await taken(victim)
    return victim, number


def _takeover(victim: FakeWorker, number: int) -> dict[str, Any]:
    """What ends a live worker and reports results of its jobs, if it is believed."""
    finished = [{"job": number, "attempt": 1, "outcome": "completed", "result": "forged"}]
    stopped = {"incarnation": victim.incarnation, "finished": finished}
    return {"name": "victim", "takeover": True, "replaces": 9, "stopped": stopped}


@pytest.mark.parametrize("who", ["stranger", "worker", "code", "worker with code", "operator of a"])
@pytest.mark.parametrize("busy", [True, False])
def test_finding_10_nobody_ends_a_live_worker_without_proof(who: str, busy: bool) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            victim, number = await _holding(server)
            if not busy:
                await victim.sync(finished=(Finished(number, 1, "completed", 0),))
            other = await server.worker("other")
            code, _ = await server.services.access.create_code(60_000)
            limited = await server.token(Role.OPERATOR, "a")
            tokens = {"worker": other.token, "worker with code": other.secret}
            client = await server.http({**tokens, "operator of a": limited}.get(who))
            body = _takeover(victim, number) | ({"code": code} if "code" in who else {})
            reply = await client.post(ENROL, json=body)
            expected = "name_in_use" if "code" in who else "name_taken"
            assert (reply.status_code, error_of(reply)["code"]) == (409, expected)
            shown = await server.show(number)
            assert (shown["state"], shown["result"]) == ("running" if busy else "completed", None)
            await victim.sync()
            fresh = {"name": "fresh", "code": code}
            assert (await (await server.http(None)).post(ENROL, json=fresh)).status_code == 200

    run(scenario())


def test_finding_10_nobody_speaks_for_the_jobs_of_a_disabled_worker() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            victim, number = await _holding(server)
            await server.admin.post(f"/api/v1/workers/{victim.id}/disable")
            code, _ = await server.services.access.create_code(60_000)
            body = _takeover(victim, number) | {"code": code}
            reply = await (await server.http(None)).post(ENROL, json=body)
            assert (reply.status_code, error_of(reply)["code"]) == (409, "name_in_use")
            assert (await server.show(number))["result"] is None

    run(scenario())


@pytest.mark.parametrize("proof", ["secret", "token", "code", "operator"])
def test_finding_10_a_live_worker_is_replaced_with_proof(proof: str) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            victim, number = await _holding(server)
            access = server.services.access
            code, _ = await access.create_code(60_000, None, "victim", takeover=True)
            operator = await server.token(Role.OPERATOR)
            tokens = {"secret": victim.secret, "token": victim.token, "operator": operator}
            client = await server.http(tokens.get(proof))
            body = _takeover(victim, number) | ({"code": code} if proof == "code" else {})
            reply = await client.post(ENROL, json=body)
            assert reply.status_code == 200, reply.text
            assert reply.json()["worker"] == victim.id
            assert (await server.show(number))["result"] == "forged"  # it is the worker's own
            with pytest.raises(Conflict, match="has ended"):
                await victim.sync()
            server.services.access.forget()  # a few seconds pass
            with pytest.raises(ServerError) as refused:
                await victim.sync()
            assert refused.value.status == 401

    run(scenario())


def test_finding_10_a_code_for_one_worker_enrols_no_other() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            body = {"worker": "one"}
            code = (await server.admin.post("/api/v1/codes", json=body)).json()["code"]
            client = await server.http(None)
            for name, status in (("two", 403), ("one", 200), ("one", 403)):
                reply = await client.post(ENROL, json={"name": name, "code": code})
                assert reply.status_code == status, (name, reply.text)
            asked = await server.admin.post("/api/v1/codes", json={"takeover": True})
            assert (asked.status_code, error_of(asked)["field"]) == (422, "worker")

    run(scenario())


def test_finding_10_an_ordinary_code_enrols_the_name_of_a_silent_worker() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            gone = await server.worker("gone")
            await gone.gateway.leave(gone.id, gone.incarnation)
            again = await server.worker("gone")
            assert (again.id, again.incarnation) == (gone.id, gone.incarnation + 1)

    run(scenario())
