"""Clients and commands go on when their server is killed and started again."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

import windlass
from tests.cli.program import Program
from tests.support.running import run
from tests.support.running_server import FakeWorker, running_server
from tests.support.waiting import until
from windlass.client.client import AsyncClient
from windlass.client.gateway import HttpGateway, WorkerToken
from windlass.client.handles import AsyncJob
from windlass.client.reconnect import Reconnect
from windlass.client.service import Service
from windlass.client.transport import Transport
from windlass.client.waiting import gather_async
from windlass.clock import RealSecrets
from windlass.domain.access.rights import Role
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput, Lost, Unreachable
from windlass.messages.sync import Finished
from windlass.ports.gateway import Holder

LIMIT_S = 30
NOTHING = JobSpec(task="shell", args={"argv": ["true"]})


class Installation:
    """A server as a process of its own, which can be killed and started on the same port."""

    def __init__(self, place: Path, stack: ExitStack, store: str | None = None) -> None:
        self.program = Program(place / "data")
        used = store or f"sqlite://{place}/windlass.db"
        self._place = ("--store", used, "--blobs", f"file://{place}/blobs")
        self._stack = stack
        self.address = ""

    def start(self) -> None:
        listen = self.address.removeprefix("http://") or "127.0.0.1:0"
        words = ("server", *self._place, "--listen", listen)
        self.process = self._stack.enter_context(self.program.running(*words))
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def client(self) -> AsyncClient:
        return AsyncClient(data=self.program.data)

    def command(self, *words: str) -> "subprocess.Popen[str]":
        return self._stack.enter_context(self.program.running(*words))


@contextmanager
def _installed(place: Path) -> Iterator[Installation]:
    with ExitStack() as stack:
        installed = Installation(place, stack)
        installed.start()
        yield installed


@asynccontextmanager
async def _worker(client: AsyncClient, address: str) -> AsyncIterator[FakeWorker]:
    own = WorkerToken(RealSecrets().secret)
    gateway = HttpGateway(Transport(address, client.transport.token), own)
    try:
        yield await FakeWorker(gateway, own, "w1").enrol(slots=2)
    finally:
        await gateway.close()


async def _meets_again(worker: FakeWorker) -> bool:
    """Returns whether the worker's connections, which the kill has broken, work again."""
    try:
        await worker.sync()
    except Unreachable:
        return False
    return True


async def _take(worker: FakeWorker, client: AsyncClient, count: int) -> list[Holder]:
    """Takes so many jobs once they are there; each writes one line."""

    async def are_there() -> bool:
        return len(await client.jobs(state=["queued"])) == count

    await until("the jobs", are_there, LIMIT_S)
    given = (await worker.sync(want=count)).jobs
    held = [Holder(worker.id, worker.incarnation, one.job, one.attempt) for one in given]
    for holder in held:
        await worker.gateway.append_log(holder, 0, b"one\n")
    return held


async def _finish(worker: FakeWorker, held: list[Holder]) -> None:
    """Writes a second line of each job and completes it."""
    for holder in held:
        await worker.gateway.append_log(holder, 4, b"two\n")
        await worker.gateway.end_log(holder, 8, "committed")
    ends = tuple(Finished(holder.job, holder.attempt, "completed", 0) for holder in held)
    await worker.sync(finished=ends)


class Output:
    """What a command has printed so far, read without waiting for more."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self._descriptor = process.stdout.fileno()
        os.set_blocking(self._descriptor, False)
        self._text = b""

    async def shows(self, word: bytes) -> bool:
        with suppress(BlockingIOError):
            self._text += os.read(self._descriptor, 65_536)
        return word in self._text


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


async def _joined(chunks: AsyncIterator[bytes], first: asyncio.Event) -> bytes:
    whole = b""
    async for chunk in chunks:
        whole += chunk
        first.set()
    return whole


def test_waits_logs_and_commands_go_on_after_the_server_was_killed(tmp_path: Path) -> None:
    async def scenario(installed: Installation) -> None:
        async with (
            installed.client() as client,
            _worker(client, installed.address) as worker,
        ):
            (job,) = await client.submit_many([NOTHING], workflow="w")
            number = (await job.info()).workflow
            assert number is not None
            commands = [
                installed.command("logs", "-f", str(job.id)),
                installed.command("workflows", "watch", str(number)),
                installed.command("run", "--", "true"),
            ]
            events = Output(installed.command("events", "-f", "--kind", "job", "--json"))
            held = await _take(worker, client, 2)
            began = asyncio.Event()
            following = asyncio.ensure_future(_joined(job.logs(follow=True), began))
            waiting = asyncio.ensure_future(job.wait())
            result = asyncio.ensure_future(job.result())
            flow = asyncio.ensure_future(client.workflow(number).wait())
            await began.wait()
            lines = [_line(one) for one in commands]
            await until("events", lambda: events.shows(b'"running"'), LIMIT_S)
            installed.kill()
            installed.start()
            await until("the worker", lambda: _meets_again(worker), LIMIT_S)
            await _finish(worker, held)
            async with asyncio.timeout(LIMIT_S):
                assert await following == b"one\ntwo\n"
                assert (await waiting).state == "completed"
                assert await result is None
                assert (await flow).state == "completed"
            rest = [one.communicate(timeout=LIMIT_S)[0] for one in commands]
            assert [one.returncode for one in commands] == [0, 0, 0]
            assert lines[0] + rest[0] == lines[2] + rest[2] == "one\ntwo\n"
            assert "workflow w 1: completed" in rest[1]
            await until("the last event", lambda: events.shows(b'"completed"'), LIMIT_S)

    with _installed(tmp_path) as installed:
        run(scenario(installed))


def test_a_server_that_stays_away_is_given_up_after_the_time_limit() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            transport = Transport(server.address, await server.token(Role.ADMIN))
            client = AsyncClient(service=Service(transport, Reconnect(0.05)))
            job = await client.submit(NOTHING)
        waits = (job.wait(), job.result(), anext(aiter(job.logs(follow=True))), client.jobs())
        for call in waits:
            with pytest.raises(Unreachable, match=r"gave up after 0\.05 s: no server at http"):
                await call
        await client.close()

    run(scenario())


def test_a_client_that_no_server_ever_answered_fails_at_once() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            transport = Transport(server.address, await server.token(Role.ADMIN))
        job: AsyncJob[None] = AsyncJob(Service(transport, Reconnect(LIMIT_S)), 1)
        with pytest.raises(Unreachable, match=r"^no server at"):
            await asyncio.wait_for(job.wait(), LIMIT_S / 2)
        await transport.close()

    run(scenario())


def test_an_impossible_time_limit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="reconnect"):
        Reconnect(-1)


def test_a_download_that_breaks_off_goes_on_where_it_was() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\n"
    answers = [head + b"01234", head + b"0123456789"]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answers.pop(0))
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        service = Service(Transport(f"http://127.0.0.1:{port}"))
        async with server:
            whole = b"".join([chunk async for chunk in service.artifact(1, "a")])
        await service.close()
        assert whole == b"0123456789"
        assert answers == []

    run(scenario())


def test_a_client_of_a_module_is_made_before_its_server_starts(tmp_path: Path) -> None:
    with ExitStack() as stack:
        installed = Installation(tmp_path, stack)
        client = stack.enter_context(windlass.Client(data=installed.program.data))
        with pytest.raises(Unreachable, match="no server is known"):
            client.jobs()
        installed.start()
        assert client.submit(NOTHING).info().state == "queued"


def test_a_handle_never_shows_the_job_that_got_its_id_after_a_loss(tmp_path: Path) -> None:
    """A whole data directory was put back from a backup, and nobody said so."""

    async def scenario(installation: Installation) -> None:
        async with installation.client() as alice:
            first = await alice.submit(NOTHING)
            stop(installation)
            shutil.copytree(tmp_path / "place", tmp_path / "backup")
            installation.start()
            lost = await alice.submit(NOTHING)
            stop(installation)
            shutil.rmtree(tmp_path / "place")
            shutil.move(tmp_path / "backup", tmp_path / "place")
            installation.start()
            async with installation.client() as bob:
                other = await bob.submit(NOTHING)
                assert other.id == lost.id
                calls = (
                    lost.info, lost.result, lambda: gather_async(lost), lost.cancel,
                    lambda: alice.cancel([first, lost]),
                )  # fmt: skip
                for ask in calls:
                    with pytest.raises(Lost, match=f"job {lost.id} was lost") as caught:
                        await ask()
                    assert caught.value.code == "job_lost"
                assert (await other.info()).state == "queued"
            assert (await first.info()).id == first.id

    with ExitStack() as stack:
        (tmp_path / "place").mkdir()
        installation = Installation(tmp_path / "place", stack)
        installation.start()
        run(scenario(installation))


def stop(installation: Installation) -> None:
    installation.process.terminate()
    installation.process.wait()
