"""Servers and workers as real processes on one store, some of them killed on the way."""

import asyncio
import os
import random
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.loopback import die_with_parent, free_port

START_S = 60
# Short, so that a lost worker is soon known to be lost; the lease must outlast two heartbeats,
# the grace of a stopped process and five seconds.
TIMES = (
    "--set", "heartbeat_interval=1s",
    "--set", "heartbeat_timeout=9s",
    "--set", "term_grace=1s",
    "--set", "health_interval=500ms",
    "--set", "cleanup_interval=1s",
    "--set", "bad_worker_jobs=0",
)  # fmt: skip


class Part(NamedTuple):
    """One process of the fleet."""

    name: str
    process: asyncio.subprocess.Process


class Fleet:
    """Processes of `windlass`, each started anew under its name after it was killed."""

    def __init__(
        self,
        folder: Path,
        store: str,
        *,
        servers: int = 1,
        seed: int = 1,
        blobs: str | None = None,
        variables: Mapping[str, str] | None = None,
        times: Sequence[str] = TIMES,
        slots: int = 3,
        isolation: str = "process",
    ) -> None:
        self._folder = folder
        self._slots = slots
        self._isolation = isolation
        self._times = times
        self._store = store
        self._blobs = blobs or f"file://{folder}/blobs"
        self._variables = dict(variables or {})  # for servers only
        self.chance = random.Random(seed)
        self._ports = {f"server-{n}": free_port() for n in range(1, servers + 1)}
        self._running: dict[str, Part] = {}
        self.killed: list[str] = []

    @property
    def address(self) -> str:
        """All servers, in the order in which a client should ask them."""
        return ",".join(f"http://127.0.0.1:{port}" for port in self._ports.values())

    @property
    def servers(self) -> list[str]:
        """The names of all servers."""
        return list(self._ports)

    @property
    def token(self) -> str:
        """The admin token that the first server left."""
        return (self._folder / "server-1" / "admin-token").read_text().strip()

    async def start_servers(self) -> None:
        """Starts all of them in order: the first makes the token."""
        if self._store.startswith("postgresql:"):
            code, said = await self.run("db", "upgrade", "--store", self._store)
            assert code == 0, said
        for name in self._ports:
            await self.start_server(name)

    async def start_server(self, name: str) -> None:
        """Start one and wait until it listens."""
        part = await self._start(
            name, "server", "--store", self._store, "--blobs", self._blobs,
            "--listen", f"127.0.0.1:{self._ports[name]}", "--data", str(self._folder / name),
            *self._times, variables=self._variables,
        )  # fmt: skip
        assert part.process.stdout is not None
        async with asyncio.timeout(START_S):
            line = await part.process.stdout.readline()
        assert b"windlass server at" in line, line

    async def stop_servers(self) -> None:
        """Asks all servers to stop, and waits for them."""
        for name in self._ports:
            part = self._running.pop(name)
            part.process.terminate()
            await part.process.wait()

    async def continue_on(self, store: str) -> None:
        """Starts the servers again where they were, with another store."""
        self._store = store
        for name in self._ports:
            await self.start_server(name)

    async def start_worker(self, name: str, *words: str) -> None:
        """Start a worker with these flags; it enrols by itself, in its own time."""
        addresses = self.address.split(",")
        self.chance.shuffle(addresses)
        await self._start(
            name, "worker", "--server", ",".join(addresses), "--name", name,
            "--slots", str(self._slots), "--state", str(self._folder / name), *words,
        )  # fmt: skip

    async def kill(self, name: str) -> None:
        """Kill −9, and wait until it is gone."""
        part = self._running.pop(name)
        part.process.kill()
        await part.process.wait()
        self.killed.append(name)

    def send(self, name: str, signal_number: int) -> None:
        """Send a signal, such as SIGSTOP; what is stopped has to go on before `stop`."""
        self._running[name].process.send_signal(signal_number)

    async def kill_and_replace(self, kind: str) -> None:
        """Kill one of a kind. A worker may come back under its name, or another comes."""
        name = self.chance.choice(sorted(n for n in self._running if n.startswith(kind)))
        await self.kill(name)
        if kind == "server":
            await self.start_server(name)
        elif self.chance.random() < 0.5:
            await self.start_worker(name)
        else:
            await self.start_worker(f"worker-{len(self.killed) + 100}")

    @property
    def workers_obey(self) -> bool:
        """Whether all workers that run have a handler for SIGTERM yet."""
        running = self._running.items()
        return all(_obeys(p.process.pid) for name, p in running if name.startswith("worker"))

    async def stop(self) -> dict[str, int | None]:
        """Tell all to stop, workers first; how they ended."""
        ends: dict[str, int | None] = {}
        for kind in ("worker", "server"):
            parts = [part for name, part in self._running.items() if name.startswith(kind)]
            for part in parts:
                if part.process.returncode is None:
                    part.process.terminate()
            for part in parts:
                ends[part.name] = await part.process.wait()
        self._running.clear()
        return ends

    async def run(self, *words: str) -> tuple[int | None, bytes]:
        """Run a command against the first server; its exit code and output."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "windlass", *words,
            env=self._environment(), stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await process.communicate()
        return process.returncode, output

    async def _start(
        self, name: str, *words: str, variables: Mapping[str, str] | None = None
    ) -> Part:
        with (self._folder / f"{name}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "windlass", *words,
                env=self._environment() | dict(variables or {}),
                stdout=asyncio.subprocess.PIPE, stderr=log,
                start_new_session=True, preexec_fn=die_with_parent,
            )  # fmt: skip
        part = self._running[name] = Part(name, process)
        return part

    def _environment(self) -> dict[str, str]:
        own = {k: v for k, v in os.environ.items() if not k.startswith("WINDLASS_")}
        given = {
            "WINDLASS_SERVER": self.address, "WINDLASS_DATA": str(self._folder / "server-1"),
            "WINDLASS_ISOLATION": self._isolation,
        }  # fmt: skip
        token = self._folder / "server-1" / "admin-token"
        if token.exists():
            given["WINDLASS_TOKEN"] = token.read_text().strip()
        return own | given

    def tails(self) -> str:
        """The ends of the processes' logs, for the message of a failure."""
        logs = sorted(self._folder.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in logs)


def _obeys(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)
