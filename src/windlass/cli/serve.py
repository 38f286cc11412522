"""Commands that start things: up, server, worker; and those that look after a store."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from windlass.cli.jobs import Json
from windlass.cli.output import FAILED, console, print_json, print_table, say
from windlass.client.client import Client
from windlass.client.settings import DEFAULT_PORT, Running, data_directory, find_server
from windlass.clock import RealClock
from windlass.domain.errors import InvalidInput, WindlassError
from windlass.domain.job import check_name
from windlass.server.app import create_app
from windlass.server.serve import Listen, Serving, address_of, bind, is_loopback, parse_listen
from windlass.wire.system import Verified
from windlass.wiring import (
    ServerOptions,
    direct_agent,
    ensure_admin_token,
    http_agent,
    make_private,
    running_engine,
    running_services,
    upgrade_store,
)
from windlass.worker.options import WorkerOptions

RESTART_MS = 1_000

database = App(name="db", help="Look after the database.")


def up(
    *,
    data: Path | None = None,
    port: int = DEFAULT_PORT,
    workers: int = 1,
    slots: int | None = None,
    store: str | None = None,
) -> None:
    """Start everything here: server, store and workers, on an embedded database.

    Parameters
    ----------
    data
        The data directory. Default: WINDLASS_DATA, else one in your home.
    port
        Where the server listens on this machine; 0 takes a free one.
    workers
        How many worker processes to start beside it; 0 starts none.
    slots
        Jobs each worker runs at once. Default: the number of processors.
    store
        Another store than the embedded one, such as postgresql://….
    """
    directory = data_directory(data)
    make_private(directory)
    options = ServerOptions(
        store or f"sqlite://{(directory / 'windlass.db').absolute()}",
        f"file://{(directory / 'blobs').absolute()}",
    )
    listen = Listen(port=port)
    asyncio.run(_up(directory, options, listen, workers, slots or os.cpu_count() or 1))


async def _up(
    directory: Path, options: ServerOptions, listen: Listen, workers: int, slots: int
) -> None:
    stop = _stop_on_signals()
    bound = bind(listen)
    address = address_of(listen, bound)
    async with running_services(options) as services:
        token = await ensure_admin_token(services, directory / "admin-token")
        serving = Serving(create_app(services), listen, bound)
        serving.start()
        marker = directory / "server.json"
        marker.write_bytes(msgspec.json.encode(Running(address, os.getpid())))
        keepers = [
            asyncio.create_task(_keep_worker(stop, directory, address, token, n, slots))
            for n in range(workers)
        ]
        console.print(f"windlass is up at {address}", style="bold green")
        console.print(f"  data in {directory}, {workers} workers with {slots} slots each")
        console.print("  try: windlass run -- echo hello", highlight=False)
        sys.stdout.flush()
        await stop.wait()
        marker.unlink(missing_ok=True)
        await asyncio.gather(*keepers)
        services.engine.wakeups.wake_all()
        await serving.stop()


async def _keep_worker(
    stop: asyncio.Event, directory: Path, address: str, token: str, number: int, slots: int
) -> None:
    """Run one worker process until the end; one that dies is started again."""
    clock = RealClock()
    stopping = asyncio.create_task(stop.wait())
    while not stop.is_set():
        process = await _start_worker(directory, address, token, number, slots)
        ended = asyncio.create_task(process.wait())
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            process.terminate()
            await ended
        elif not stop.is_set():
            console.print(f"worker {number + 1} ended with {process.returncode}", style="yellow")
            await clock.sleep_ms(RESTART_MS)
    stopping.cancel()


async def _start_worker(
    directory: Path, address: str, token: str, number: int, slots: int
) -> asyncio.subprocess.Process:
    environment = {**os.environ, "WINDLASS_TOKEN": token}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "windlass", "worker", "--server", address,
        "--name", f"{os.uname().nodename}-{number + 1}", "--slots", str(slots),
        "--state", str(directory / "workers" / str(number + 1)),
        env=environment, start_new_session=True,
    )  # fmt: skip


def server(
    *,
    store: str,
    blobs: str,
    listen: str = f"127.0.0.1:{DEFAULT_PORT}",
    data: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
) -> None:
    """Start a server; any number of them may share one PostgreSQL.

    Parameters
    ----------
    store
        sqlite:///path or postgresql://…
    blobs
        Where logs and artifacts go: file:///directory or s3://bucket/prefix.
    listen
        HOST:PORT. Beyond this machine only if the store has a token.
    data
        Where the admin token of a loopback start is kept.
    certificate
        A TLS certificate, with its key in --key.
    """
    host, port = parse_listen(listen)
    where = Listen(host=host, port=port, certificate=certificate, key=key)
    asyncio.run(_serve(data_directory(data), ServerOptions(store, blobs), where))


async def _serve(directory: Path, options: ServerOptions, listen: Listen) -> None:
    stop = _stop_on_signals()
    bound = bind(listen)
    async with running_services(options) as services:
        if is_loopback(listen.host):
            make_private(directory)
            await ensure_admin_token(services, directory / "admin-token")
        elif not await services.access.tokens():
            raise InvalidInput(
                "listen",
                "a loopback address until there is a token (start on 127.0.0.1 once)",
                listen.host,
            )
        serving = Serving(create_app(services), listen, bound)
        console.print(f"windlass server at {address_of(listen, bound)}", style="bold green")
        sys.stdout.flush()
        await serving.until_stopped(stop, services.engine.wakeups.wake_all)


def worker(
    *,
    server: str | None = None,
    store: str | None = None,
    blobs: str | None = None,
    name: str | None = None,
    slots: int = 1,
    state: Path | None = None,
    code: str | None = None,
    resources: str | None = None,
) -> None:
    """Start a worker: it takes jobs from a server, or straight from a store.

    Parameters
    ----------
    server
        The server's address. Default: WINDLASS_SERVER, else the one started here.
    store
        Instead of a server: the store itself, with --blobs.
    name
        What the worker is called. Default: the host's name.
    slots
        How many jobs it runs at once.
    state
        A directory of its own, for its token and what it left running.
    code
        A single-use enrolment code (`windlass workers code`).
    resources
        What it offers beside what is found, such as gpus=1,licences=4.
    """
    named = name or os.uname().nodename
    check_name("name", named)
    options = WorkerOptions(
        name=named,
        state=state or data_directory() / "workers" / named,
        slots=slots,
        code=code,
        metadata=_offered(resources),
    )
    if store is not None:
        if blobs is None:
            raise InvalidInput("blobs", "given together with --store", None)
        asyncio.run(_work_beside(ServerOptions(store, blobs), options))
        return
    found = find_server(server)
    asyncio.run(_work(found.server, found.token, options))


async def _work(server: str, token: str | None, options: WorkerOptions) -> None:
    agent = http_agent(server, token, options)
    agent.obey_signals()
    await agent.run()


async def _work_beside(server: ServerOptions, options: WorkerOptions) -> None:
    async with running_engine(server) as (engine, files, _):
        agent = direct_agent(engine, files, options)
        agent.obey_signals()
        await agent.run()


@database.command
def upgrade(*, store: str) -> None:
    """Bring a database's schema up to date."""
    asyncio.run(upgrade_store(store))
    say("up to date")


def verify(*, json: Json = False) -> None:
    """Replay the log of a running installation and check the invariants."""
    with Client() as client:
        transport = client.asynchronous.transport
        found = client.run(transport.call("POST", "/api/v1/verify", Verified, timeout=600))
    if json:
        print_json(found)
    elif not found.violations:
        say("nothing wrong: the log replays to the state, the invariants hold")
    else:
        rows = [(v.invariant, v.job or "", v.seq or "", v.message) for v in found.violations]
        print_table(("invariant", "job", "seq", "message"), rows, "")
    if found.violations:
        raise SystemExit(FAILED)


def doctor(*, json: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """Check this installation: is a server known, does it answer, are there workers?"""
    findings: list[tuple[str, str, str]] = [("python", "ok", sys.version.split()[0])]
    try:
        found = find_server()
        findings.append(("server known", "ok", found.server))
        with Client() as client:
            jobs = client.jobs(1)
        findings.append(("server answers", "ok", f"{len(jobs)} jobs seen"))
    except WindlassError as error:
        findings.append(("server", "problem", str(error)))
    if json:
        print_json([{"check": c, "state": s, "detail": d} for c, s, d in findings])
    else:
        print_table(("check", "state", "detail"), findings, "")
    if any(state != "ok" for _, state, _ in findings):
        raise SystemExit(FAILED)


def _offered(resources: str | None) -> dict[str, int | str]:
    offered: dict[str, int | str] = {}
    for part in (resources or "").split(","):
        if not part:
            continue
        name, separator, value = part.partition("=")
        if not separator:
            raise InvalidInput("resources", "name=amount, divided by commas", part)
        known = {"cpus": "system:cpus", "memory": "system:memory", "gpus": "system:gpus"}
        key = known.get(name, f"resource:{name}")
        offered[key] = int(value) if value.isdigit() else value
    return offered


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
