"""A worker with a code enrols again, and again, whatever was lost on the way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, running_server
from tests.support.waiting import until
from windlass.assembly.http_agent import http_agent
from windlass.client.gateway import HttpGateway, WorkerToken
from windlass.client.transport import ServerError, Transport
from windlass.clock import RealSecrets
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.fleet.epochs import begin_epoch
from windlass.messages.sync import EnrolReply, EnrolRequest
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.agent.state import recall

PATIENCE_S = 60


async def _code(server: RunningServer) -> str:
    code, _ = await server.services.access.create_code(600_000)
    return code


async def _enrol(
    server: RunningServer, token: WorkerToken, name: str = "w1", code: str | None = None
) -> EnrolReply:
    gateway = HttpGateway(Transport(server.address), token)
    try:
        return await gateway.enrol(EnrolRequest(name=name, code=code))
    finally:
        await gateway.close()


async def _names(server: RunningServer) -> list[tuple[str, str]]:
    listed = (await server.admin.get("/api/v1/workers")).json()["workers"]
    return [(worker["name"], worker["status"]) for worker in listed]


class Notes:
    """A state directory that keeps what was stored, one note after the other."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, bool]] = []

    def token(self, note: int | None = None) -> WorkerToken:
        """The token as a process finds it; `note` names the one that it finds as the newest."""
        token, accepted = (None, False) if note is None else self.kept[note]
        return WorkerToken(RealSecrets().secret, token, accepted, self._keep)

    def _keep(self, token: str, accepted: bool) -> None:
        self.kept.append((token, accepted))


@pytest.mark.parametrize("by_code", [True, False])
def test_an_enrolment_whose_answer_was_lost_is_repeated_and_leaves_one_worker(
    by_code: bool,
) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            notes = Notes()
            code = await _code(server) if by_code else None
            first = await _enrol(server, notes.token(), code=code)
            # The answer never came: the worker only knows what it has stored before it asked.
            assert notes.kept[0][1] is False
            again = await _enrol(server, notes.token(0), code=code)
            assert again.worker == first.worker
            assert again.incarnation > first.incarnation
            tokens = [t for t in await server.services.access.tokens() if t.worker]
            assert [t.incarnation for t in tokens] == [0, again.incarnation]
            assert await _names(server) == [("w1", "idle" if by_code else "pending_approval")]

    run(scenario())


def test_a_code_that_came_with_a_refused_enrolment_is_not_used_up() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            holder = await server.worker("w1")
            await server.submit()
            await holder.sync(want=1)
            code = await _code(server)
            client = await server.http(None)
            reply = await client.post("/api/v1/workers/enrol", json={"name": "w1", "code": code})
            assert (reply.status_code, error_of(reply)["code"]) == (409, "name_in_use")
            assert (await _enrol(server, Notes().token(), "w2", code)).status == "online"

    run(scenario())


def test_a_worker_whose_token_is_refused_uses_its_code_and_a_new_token() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            notes = Notes()
            await _enrol(server, notes.token(), code=await _code(server))
            secret, session = [t for t in await server.services.access.tokens() if t.worker]
            assert (secret.incarnation, session.incarnation) == (0, 1)
            await server.services.access.revoke(secret.id)
            assert all(t.revoked_at for t in await server.services.access.tokens() if t.worker)
            with pytest.raises(ServerError, match=r"token is not valid.*code is not valid"):
                await _enrol(server, notes.token(-1), code="enrol_used")
            code, _ = await server.services.access.create_code(600_000, None, "w1", takeover=True)
            again = await _enrol(server, notes.token(-1), code=code)
            assert again.token is not None
            assert notes.kept[-1][0] != notes.kept[0][0]

    run(scenario())


def test_a_worker_that_waits_for_approval_is_approved_by_a_code() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            notes = Notes()
            assert (await _enrol(server, notes.token())).status == "pending_approval"
            again = await _enrol(server, notes.token(-1), code=await _code(server))
            assert again.status == "online"
            assert await _names(server) == [("w1", "idle")]

    run(scenario())


def test_a_token_of_another_is_not_given_to_a_worker() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            other = await server.worker("w1")
            client = await server.http(None)
            for token, status in ((other.token, 409), ("wl_short", 422), ("x" * 50, 422)):
                body = {"name": "w2", "code": await _code(server), "token": token}
                reply = await client.post("/api/v1/workers/enrol", json=body)
                assert reply.status_code == status, reply.text
                assert token not in reply.text
            assert await _names(server) == [("w1", "idle")]

    run(scenario())


@asynccontextmanager
async def _agent(server: RunningServer, options: WorkerOptions) -> AsyncIterator[Agent]:
    """An agent as `windlass worker` starts it, enrolled."""
    transport = Transport(server.address)
    agent = http_agent(transport, options)
    running = asyncio.create_task(agent.run())
    try:
        await asyncio.wait_for(agent.enrolled.wait(), PATIENCE_S)
        yield agent
    finally:
        agent.stop()
        await running
        await transport.close()


def test_a_worker_with_a_code_outlives_lost_leases_restores_and_restarts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            engine = server.services.engine
            options = WorkerOptions(name="w1", state=tmp_path / "w1", code=await _code(server))

            async def lose(agent: Agent) -> None:
                ended = await engine.workers.enrol(Enrolment(name="w1", takeover=True))
                engine.waiting_syncs.wake_all()

                async def is_back() -> bool:
                    return agent.enrolled.is_set() and agent.incarnation > ended.incarnation

                await until("it has enrolled again", is_back, PATIENCE_S)

            async with _agent(server, options) as agent:
                await lose(agent)
                await engine.run(lambda work: begin_epoch(work, "me"))
                await engine.refresh()
                await lose(agent)
            async with _agent(server, options) as agent:
                assert agent.incarnation == recall(options.state).incarnation
            assert [name for name, _ in await _names(server)] == ["w1"]

    run(scenario())
