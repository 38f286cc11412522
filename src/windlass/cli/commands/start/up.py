"""`windlass up`: server, store and workers in one command."""

import asyncio
import os
import sys
from pathlib import Path

import uvloop

from windlass.cli.commands.start.local_server import announced, prepare_data, stop_on_signals
from windlass.cli.commands.start.log import use_log
from windlass.cli.commands.start.own_workers import OwnWorkers, sole_owner
from windlass.cli.options.core_flags import NO_FLAGS, ConfigFile, CoreFlags, settings_of
from windlass.cli.options.log import DEFAULT_LOG, LogOptions
from windlass.cli.options.worker import (
    APP_VARIABLE,
    FILE_VARIABLE,
    IMPORT_VARIABLE,
    NO_VARIABLES,
    PASS_VARIABLE,
    Apps,
    Imports,
    JobVariables,
)
from windlass.cli.output.text import BOLD_GREEN, say
from windlass.client.settings import DEFAULT_PORT, data_directory
from windlass.clock import RealClock
from windlass.providers.local import end_workers
from windlass.server.app import start_serving
from windlass.server.serve import Listen, address_of, bind
from windlass.wiring.backend import ServerOptions
from windlass.wiring.server import POOLS, ensure_admin_token, running_services
from windlass.worker.keeper.processes import become_private

SLACK_MS = 5_000


def up(
    *,
    data: Path | None = None,
    port: int = DEFAULT_PORT,
    workers: int = 1,
    slots: int | None = None,
    store: str | None = None,
    modules: Imports = None,
    apps: Apps = None,
    variables: JobVariables = NO_VARIABLES,
    log: LogOptions = DEFAULT_LOG,
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
    apps
        A package that the workers import with all modules below it. Repeatable.
    """
    level = use_log(log)
    become_private()
    settings = settings_of(core, config)
    directory = data_directory(data)
    prepare_data(directory)
    options = ServerOptions(
        store or f"sqlite://{(directory / 'windlass.db').absolute()}",
        f"file://{(directory / 'blobs').absolute()}",
        settings.config,
        (*(modules or ()), *(apps or ())),
        data=directory,
        log_level=level,
        sign_in=settings.sign_in,
    )
    if modules:
        os.environ[IMPORT_VARIABLE] = " ".join(modules)  # The workers inherit it.
    if apps:
        os.environ[APP_VARIABLE] = " ".join(apps)
    _pass_on(variables)
    listen = Listen(port=port)
    slots = slots or os.cpu_count() or 1
    with sole_owner(directory, workers) as alone:
        uvloop.run(_up(directory, options, listen, workers, slots, alone))


def _pass_on(variables: JobVariables) -> None:
    """Puts the variables of jobs where workers find them: into the environment they inherit."""
    found = variables.read(os.environ)
    os.environ.pop(FILE_VARIABLE, None)
    os.environ.update(found)
    os.environ[PASS_VARIABLE] = " ".join(found)


async def _up(
    directory: Path, options: ServerOptions, listen: Listen, workers: int, slots: int, alone: bool
) -> None:
    stop = stop_on_signals()
    bound = bind(listen)
    address = address_of(listen, bound)
    async with running_services(options._replace(address=address, stopped=stop.is_set)) as services:
        await ensure_admin_token(services, directory / "admin-token")
        serving = start_serving(services, listen, bound)
        own = OwnWorkers(directory, address, services.access, slots)
        with announced(directory, address):
            if alone:
                await own.end_others(workers)
            keepers = [asyncio.create_task(own.keep(n, stop)) for n in range(workers)]
            say(f"windlass is up at {address}", BOLD_GREEN)
            say(f"  data in {directory}, {_counted(workers, slots)}")
            say("  try: windlass run -- echo hello")
            sys.stdout.flush()
            await stop.wait()
        await asyncio.gather(*keepers)
        # The server is going away, so workers of its local pools would serve nobody.
        await services.stop_pools()
        await end_workers(directory / POOLS, RealClock(), options.config.drain_limit_ms + SLACK_MS)
        await serving.stop()


def _counted(workers: int, slots: int) -> str:
    many = "worker" if workers == 1 else "workers"
    each = "" if workers == 1 else " each"
    return f"{workers} {many} with {slots} slot{'' if slots == 1 else 's'}{each}"
