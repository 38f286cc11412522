"""`windlass up`: server, store and workers in one command."""

import asyncio
import os
import sys
from pathlib import Path

import uvloop

from windlass.cli.commands.start.hide_secrets import (
    CODE,
    HELD,
    KEEPS_NO_TOKEN,
    TOKEN,
    hold,
    secrets_of,
    without_secrets,
)
from windlass.cli.commands.start.local_server import announced, prepare_data, stop_on_signals
from windlass.cli.options.core_flags import NO_FLAGS, ConfigFile, CoreFlags, settings_of
from windlass.cli.options.worker import IMPORT_VARIABLE, Imports
from windlass.cli.output.text import BOLD_GREEN, YELLOW, say
from windlass.client.settings import DEFAULT_PORT, data_directory
from windlass.clock import RealClock
from windlass.engine.access import Access
from windlass.providers.local import end_workers
from windlass.server.app import create_app
from windlass.server.serve import Listen, Serving, address_of, bind
from windlass.wiring.backend import ServerOptions
from windlass.wiring.server import POOLS, ensure_admin_token, running_services
from windlass.worker.keeper.processes import become_private

RESTART_MS = 1_000
SLACK_MS = 5_000
CODE_MS = 600_000  # How long a worker may take to enrol.


def up(
    *,
    data: Path | None = None,
    port: int = DEFAULT_PORT,
    workers: int = 1,
    slots: int | None = None,
    store: str | None = None,
    modules: Imports = None,
    config: ConfigFile = None,
    core: CoreFlags = NO_FLAGS,
) -> None:
    """Start a server, its store and workers on this machine.

    Parameters
    ----------
    data
        The data directory. Default: WINDLASS_DATA, else ~/.local/share/windlass.
    port
        The port to listen on; 0 picks a free one.
    workers
        How many worker processes to start; 0 starts none.
    slots
        How many jobs each worker runs at the same time. Default: the number of CPUs.
    store
        A store such as postgresql://… Default: an SQLite database in the data directory.
    modules
        A module with tasks for the workers to run. Repeatable.
    """
    become_private()
    settings = settings_of(core, config)
    directory = data_directory(data)
    prepare_data(directory)
    options = ServerOptions(
        store or f"sqlite://{(directory / 'windlass.db').absolute()}",
        f"file://{(directory / 'blobs').absolute()}",
        settings.config,
        tuple(modules or ()),
        data=directory,
    )
    if modules:
        os.environ[IMPORT_VARIABLE] = " ".join(modules)  # The workers inherit it.
    listen = Listen(port=port)
    uvloop.run(_up(directory, options, listen, workers, slots or os.cpu_count() or 1))


async def _up(
    directory: Path, options: ServerOptions, listen: Listen, workers: int, slots: int
) -> None:
    stop = stop_on_signals()
    bound = bind(listen)
    address = address_of(listen, bound)
    async with running_services(options._replace(address=address)) as services:
        await ensure_admin_token(services, directory / "admin-token")
        serving = Serving(create_app(services), listen, bound)
        serving.start()
        with announced(directory, address):
            keepers = [
                asyncio.create_task(
                    _keep_worker(stop, directory, address, services.access, n, slots)
                )
                for n in range(workers)
            ]
            say(f"windlass is up at {address}", BOLD_GREEN)
            say(f"  data in {directory}, {_counted(workers, slots)}")
            say("  try: windlass run -- echo hello")
            sys.stdout.flush()
            await stop.wait()
        await asyncio.gather(*keepers)
        # The server is going away, so workers of its local pools would serve nobody.
        await services.stop_pools()
        await end_workers(directory / POOLS, RealClock(), options.config.drain_limit_ms + SLACK_MS)
        services.engine.waiting_syncs.wake_all()
        await serving.stop()


def _counted(workers: int, slots: int) -> str:
    many = "worker" if workers == 1 else "workers"
    each = "" if workers == 1 else " each"
    return f"{workers} {many} with {slots} slot{'' if slots == 1 else 's'}{each}"


async def _keep_worker(
    stop: asyncio.Event, directory: Path, address: str, access: Access, number: int, slots: int
) -> None:
    """Keeps one worker process running until `stop`; restarts it if it dies.

    Each start gets a new code for one enrolment: the worker never has a token of the server's.
    """
    clock = RealClock()
    stopping = asyncio.create_task(stop.wait())
    while not stop.is_set():
        code, _ = await access.create_code(CODE_MS, "windlass up")
        process = await _start_worker(directory, address, code, number, slots)
        ended = asyncio.create_task(process.wait())
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            process.terminate()
            await ended
        elif not stop.is_set():
            say(f"worker {number + 1} exited with code {process.returncode}; restarting", YELLOW)
            await clock.sleep_ms(RESTART_MS)
    stopping.cancel()


async def _start_worker(
    directory: Path, address: str, code: str, number: int, slots: int
) -> asyncio.subprocess.Process:
    given = {name: value for name, value in secrets_of(os.environ).items() if name != TOKEN}
    held = hold({**given, CODE: code, KEEPS_NO_TOKEN: "1"})
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "windlass", "worker", "--server", address,
            "--name", f"{os.uname().nodename}-{number + 1}", "--slots", str(slots),
            "--state", str(directory / "workers" / str(number + 1)),
            env={**without_secrets(os.environ), HELD: str(held)}, pass_fds=[held],
            start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(held)
