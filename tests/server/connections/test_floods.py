"""Floods against a real server: it stays small, serves others, and recovers."""

import asyncio
import json
import resource
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import pytest

from tests.cli.program import Program
from tests.server.connections.raw import Wire, place_of, request, status_of, wire_to
from tests.support.forms import by_form
from tests.support.running import run
from tests.support.running_server import job
from tests.support.waiting import until
from windlass.ports.loop_time import pass_time

pytestmark = pytest.mark.slow

PER_CALLER: Final = by_form(400, 4_000)
MANY: Final = by_form(1_000, 10_000)  # connections
WORKERS: Final = by_form(60, 10_000)
PROBES: Final = 15
# A flood may slow others down so much: it shares two processors with the server and this test.
RATIO: Final = 25
FLOOR_S: Final = 0.4  # where the quiet server is so fast that a ratio says nothing
MAX_GROWTH: Final = by_form(120, 700) * 2**20

Attack = Callable[["Target"], AbstractAsyncContextManager[None]]


class Target(NamedTuple):
    """A server as a process."""

    address: str
    pid: int
    token: str

    def memory(self) -> int:
        """Bytes that it uses now."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) * 1024

    async def call(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        """The decoded answer to one request on a connection of its own."""
        async with wire_to(self.address) as wire:
            answer = await self.ask(wire, method, path, body, token)
        assert status_of(answer) in (200, 201), answer
        text = answer.partition(b"\r\n\r\n")[2]
        return json.loads(text) if text.startswith(b"{") else text.decode()

    async def ask(
        self, wire: Wire, method: str, path: str, body: Any = None, token: str = ""
    ) -> bytes:
        """The answer to one request."""
        content = b"" if body is None else json.dumps(body).encode()
        fields = (
            f"authorization: Bearer {token or self.token}", f"content-length: {len(content)}",
            "content-type: application/json",
        )  # fmt: skip
        await wire.send(request(path, *fields, method=method) + content)
        return await wire.answer()

    async def latency(self) -> float:
        """What another caller waits for an answer, typically, with its connection."""
        loop = asyncio.get_running_loop()
        taken = []
        for _ in range(PROBES):
            began = loop.time()
            await self.call("GET", "/api/v1/jobs")
            taken.append(loop.time() - began)
        return median(taken)

    async def connections(self) -> int:
        """How many it has, beside the one that asks."""
        name = "windlass_http_connections "
        text = await self.call("GET", "/metrics")
        found = next(line for line in text.splitlines() if line.startswith(name))
        return int(float(found.removeprefix(name))) - 1


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder = tmp_path_factory.mktemp("flooded")
    program = Program(folder / "data")
    place = ("--store", f"sqlite://{folder}/windlass.db", "--blobs", f"file://{folder}/blobs")
    limits = (
        "--set", "http.header_timeout=1500ms", "--set", "http.body_timeout=1500ms",
        "--set", f"http.connections_per_caller={PER_CALLER}", "--log-level", "warning",
    )  # fmt: skip
    with program.running("server", *place, "--listen", "127.0.0.1:0", *limits) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        token = (folder / "data" / "admin-token").read_text().strip()
        yield Target(address, process.pid, token)
    assert process.returncode == 0


async def _withstands(target: Target, attack: Attack) -> None:
    """Checks that others are served during an attack, and that nothing is left of it."""
    quiet = await target.latency()
    before = target.memory()
    async with attack(target):
        flooded = await target.latency()
        grown = target.memory() - before
    assert flooded <= max(RATIO * quiet, FLOOR_S), f"{flooded:.3f} s, quiet {quiet:.3f} s"
    assert grown <= MAX_GROWTH, f"{grown / 2**20:.0f} MiB"

    async def recovered() -> bool:
        return await target.connections() <= 2

    await until("the connections of the attack are gone", recovered, 60)
    assert await target.latency() <= max(RATIO * quiet, FLOOR_S)
    assert target.memory() - before <= MAX_GROWTH


async def _open(target: Target, count: int) -> list[Wire]:
    opened: list[Wire] = []
    for _ in range(count):
        with suppress(OSError):
            opened.append(Wire(*await asyncio.open_connection(*place_of(target.address))))
    return opened


@asynccontextmanager
async def _meanwhile(*attackers: Awaitable[Any]) -> AsyncIterator[None]:
    """Lets attackers act until the block ends."""
    tasks = [asyncio.ensure_future(attacker) for attacker in attackers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _dripping(start: bytes) -> Attack:
    @asynccontextmanager
    async def attack(target: Target) -> AsyncIterator[None]:
        wires = await _open(target, 250)
        for wire in wires:
            await wire.send(start)

        async def drip() -> None:
            while True:
                await pass_time(0.1)
                for wire in wires:
                    if not wire.writer.transport.is_closing():
                        wire.writer.write(b"x")

        async with _meanwhile(drip()):
            yield
            for wire in wires:
                await wire.rest()  # the server ends each of them by itself
        for wire in wires:
            wire.close()

    return attack


def test_slow_headers(target: Target) -> None:
    run(_withstands(target, _dripping(b"GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ")))


def test_slow_bodies(target: Target) -> None:
    fields = ("content-type: application/json", "content-length: 100000")
    head = request("/api/v1/workers/enrol", *fields, method="POST")
    run(_withstands(target, _dripping(head)))


def test_ten_thousand_connections(target: Target) -> None:
    @asynccontextmanager
    async def attack(target: Target) -> AsyncIterator[None]:
        wires = await _open(target, MANY)
        assert await target.connections() <= PER_CALLER
        yield
        for wire in wires:
            wire.close()

    run(_withstands(target, attack))


def test_floods_of_headers(target: Target) -> None:
    heads = (
        b"GET / HTTP/1.1\r\nx: " + b"x" * 500_000,
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 50_000,
        b"GET /" + b"x" * 500_000,
    )

    async def flood(target: Target) -> None:
        for round_ in range(100_000):  # ended with the block
            async with wire_to(target.address) as wire:
                await wire.send(heads[round_ % len(heads)])
                assert status_of(await wire.rest()) in (0, 431)

    @asynccontextmanager
    async def attack(target: Target) -> AsyncIterator[None]:
        async with _meanwhile(*(flood(target) for _ in range(by_form(8, 100)))):
            yield

    run(_withstands(target, attack))


def test_floods_of_requests_without_reading_the_answers(target: Target) -> None:
    @asynccontextmanager
    async def attack(target: Target) -> AsyncIterator[None]:
        wires = await _open(target, by_form(100, 1_000))
        many = request() * 4_000
        async with _meanwhile(*(wire.send(many) for wire in wires)):
            yield
        for wire in wires:
            wire.close()

    run(_withstands(target, attack))


async def _enrolled(target: Target, name: str) -> dict[str, Any]:
    body = {"name": name, "slots": 4}
    answer: dict[str, Any] = await target.call("POST", "/api/v1/workers/enrol", body)
    return answer


def test_a_flood_of_log_output(target: Target) -> None:
    piece = b"x" * 1_000_000

    async def flood(target: Target, path: str, token: str) -> None:
        fields = (
            f"authorization: Bearer {token}", f"content-length: {len(piece)}",
            "content-type: application/octet-stream",
        )  # fmt: skip
        async with wire_to(target.address) as wire:
            for number in range(by_form(40, 400)):
                where = f"{path}&offset={number * len(piece)}"
                await wire.send(request(where, *fields, method="POST") + piece)
                assert status_of(await wire.answer()) == 200

    @asynccontextmanager
    async def attack(target: Target) -> AsyncIterator[None]:
        worker = await _enrolled(target, "chatty")
        await target.call("POST", "/api/v1/jobs", {"jobs": [job()] * 4})
        sync = {"incarnation": worker["incarnation"], "seq": 1, "want": 4}
        own = f"/api/v1/workers/{worker['worker']}"
        given = await target.call("POST", f"{own}/sync", sync, worker["token"])
        paths = [
            f"{own}/jobs/{one['job']}/attempts/1/log?incarnation={worker['incarnation']}"
            for one in given["jobs"]
        ]
        assert len(paths) == 4
        async with _meanwhile(*(flood(target, path, worker["token"]) for path in paths)):
            yield

    run(_withstands(target, attack))


def test_ten_thousand_workers_that_reconnect(target: Target) -> None:
    """All of them at once, from one address: each has a token, so none takes another's place."""

    # One process plays all workers: each of these sends as soon as it is connected, as they would.
    at_once = asyncio.Semaphore(500)

    async def sync(worker: dict[str, Any], seq: int, wires: list[Wire]) -> None:
        body = {"incarnation": worker["incarnation"], "seq": seq}
        path = f"/api/v1/workers/{worker['worker']}/sync"
        for _ in range(20):
            async with at_once:
                wire = Wire(*await asyncio.open_connection(*place_of(target.address)))
                with suppress(asyncio.IncompleteReadError, ConnectionError):
                    answer = await target.ask(wire, "POST", path, body, worker["token"])
                    if status_of(answer) == 200:
                        wires.append(wire)
                        return
            wire.close()
            await pass_time(1)  # as Retry-After says
        raise AssertionError("a worker found no way back")

    async def scenario() -> None:
        workers = [await _enrolled(target, f"w{number}") for number in range(WORKERS)]

        @asynccontextmanager
        async def attack(target: Target) -> AsyncIterator[None]:
            wires: list[Wire] = []
            for seq in range(1, 4):
                for wire in wires:
                    wire.close()
                wires.clear()
                await asyncio.gather(*(sync(worker, seq, wires) for worker in workers))
            assert await target.connections() >= WORKERS
            yield
            for wire in wires:
                wire.close()

        await _withstands(target, attack)

    run(scenario())
