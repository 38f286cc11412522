"""`windlass up`: server, store and workers in one command."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from windlass.assembly.backend import POOLS, ServerOptions
from windlass.assembly.server import ensure_admin_token, running_services
from windlass.cli.commands.start.hidden_from_jobs import folders_of, hide_from_jobs
from windlass.cli.commands.start.local_server import (
    NO_PLUGIN_FLAGS,
    PluginFlags,
    announced,
    local_address,
    obey_signals,
    plugin_options,
    prepare_data,
    sign_in_link,
)
from windlass.cli.commands.start.own_workers import (
    OwnWorkers,
    end_pool_workers,
    report_draining,
    sole_owner,
)
from windlass.cli.options.configuration import NONE_SET, CoreOptions, Settings
from windlass.cli.options.flags import Flag, Misused
from windlass.cli.options.worker import (
    APP_VARIABLE,
    FILE_VARIABLE,
    IMPORT_VARIABLE,
    ISOLATION_VARIABLE,
    NAMESPACES_VARIABLE,
    NO_VARIABLES,
    PASS_VARIABLE,
    Apps,
    Imports,
    JobVariables,
    Mode,
    Namespaces,
    named_namespaces,
)
from windlass.cli.output.logging import DEFAULT_LOG, LogOptions, use_log
from windlass.cli.output.text import BOLD_GREEN, say
from windlass.client.settings import DEFAULT_PORT, data_directory
from windlass.domain.rows.events import Level
from windlass.domain.values.addresses import is_loopback
from windlass.ports.loop_time import spare_what_is_loaded
from windlass.providers.local import names_below
from windlass.server.app import start_serving
from windlass.server.serve import Listen, address_of, bind, parse_listen
from windlass.worker.attempt.secrets import load_secrets
from windlass.worker.keeper.processes import become_private

SLACK_MS = 5_000


def up(
    *,
    data: Path | None = None,
    port: int | None = None,
    listen: str | None = None,
    workers: int = 1,
    slots: int | None = None,
    store: str | None = None,
    modules: Imports = None,
    apps: Apps = None,
    reload: Flag = False,
    isolation: Mode = "auto",
    namespaces: Namespaces = None,
    secrets: Path | None = None,
    no_dashboard: Flag = False,
    plugins: PluginFlags = NO_PLUGIN_FLAGS,
    variables: JobVariables = NO_VARIABLES,
    log: LogOptions = DEFAULT_LOG,
    core: CoreOptions = NONE_SET,
) -> None:
    """Start a server, its store and workers on this machine.

    Parameters
    ----------
    data
        The data directory. Default: WINDLASS_DATA, else ~/.local/share/windlass.
    port
        The port to listen on, on this machine only; 0 picks a free one. Default: 7420.
    listen
        HOST:PORT instead, for other machines too. The first start prints the admin token if
        its output is a terminal.
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
    reload
        Start workers again when the code of their functions changes, for development.
    isolation
        How strictly jobs are separated: auto, process, user, sandbox or container.
    namespaces
        The namespaces whose jobs the workers take, comma-separated; '*' is all. Default: all, but
        with isolation process only `default`.
    secrets
        A directory of secrets for jobs, one file each; NAMESPACE/ has those of a namespace.
    no_dashboard
        Serve the API only, without the web page.
    """
    level = use_log(log)
    become_private()
    settings = core.settings()
    directory = data_directory(data)
    prepare_data(directory)
    # What it has imported would stay as it is: then only workers check arguments.
    imported = () if reload else (*(modules or ()), *(apps or ()))
    options = _options(directory, store, settings, imported, level, plugins)
    _pass_on(variables, modules or (), apps or (), isolation, namespaces)
    _hide(folders_of(directory, options.store, options.blobs), secrets)
    where = _listen(port, listen)
    slots = slots or os.cpu_count() or 1
    with sole_owner(directory, workers) as alone:
        uvloop.run(
            _up(directory, options, where, workers, slots, alone, not no_dashboard, reload, secrets)
        )


def _hide(folders: list[Path], secrets: Path | None) -> None:
    """Hides folders from jobs, also that of secrets, which must be readable."""
    if secrets is not None:
        load_secrets({}, folder=secrets)  # a worker that refuses them would start again for ever
        folders = [*folders, secrets.absolute()]
    hide_from_jobs(folders, os.environ)


def _options(
    directory: Path, store: str | None, settings: Settings, imported: Sequence[str],
    level: Level, plugins: PluginFlags,
) -> ServerOptions:  # fmt: skip
    return ServerOptions(
        store or f"sqlite://{(directory / 'windlass.db').absolute()}",
        f"file://{(directory / 'blobs').absolute()}",
        settings.config,
        tuple(imported),
        data=directory,
        sign_in=settings.sign_in,
        log_level=level,
        plugins=plugin_options(plugins),
    )


def _listen(port: int | None, text: str | None) -> Listen:
    if text is None:
        return Listen(port=DEFAULT_PORT if port is None else port)
    if port is not None:
        raise Misused("--port and --listen exclude each other: --listen has a port, HOST:PORT")
    host, number = parse_listen(text)
    return Listen(host=host, port=number)


def _pass_on(
    variables: JobVariables, modules: Sequence[str], apps: Sequence[str], isolation: Mode,
    namespaces: str | None,
) -> None:  # fmt: skip
    """Puts what workers need where they find it: into the environment they inherit."""
    os.environ[ISOLATION_VARIABLE] = isolation
    if namespaces is not None:
        os.environ[NAMESPACES_VARIABLE] = ",".join(named_namespaces(namespaces))
    if modules:
        os.environ[IMPORT_VARIABLE] = " ".join(modules)
    if apps:
        os.environ[APP_VARIABLE] = " ".join(apps)
    found = variables.read(os.environ)
    os.environ.pop(FILE_VARIABLE, None)
    os.environ.update(found)
    os.environ[PASS_VARIABLE] = " ".join(found)


async def _up(
    directory: Path, options: ServerOptions, listen: Listen, workers: int, slots: int, alone: bool,
    dashboard: bool, reload: bool, secrets: Path | None,
) -> None:  # fmt: skip
    stopping = obey_signals()
    bound = bind(listen)
    address = local_address(address_of(listen, bound))
    options = options._replace(address=address, stopped=stopping.soon.is_set)
    async with running_services(options) as services:
        token_file = directory / "admin-token"
        had_token = token_file.exists()
        token = await ensure_admin_token(services, token_file)
        serving = start_serving(services, listen, bound, dashboard=dashboard)
        own = OwnWorkers(directory, address, services.access, slots, reload, secrets)
        with announced(directory, address):
            if alone:
                await own.end_others(workers)
            keepers = [asyncio.create_task(own.keep(n, stopping)) for n in range(workers)]
            spare_what_is_loaded()
            say(f"windlass is up at {address_of(listen, bound)}", BOLD_GREEN)
            say(f"  data in {directory}, {_counted(workers, slots)}")
            # What goes to a file or a log can be read by others.
            is_private = sys.stdout.isatty()
            if not is_loopback(listen.host):
                shown = is_private and not had_token
                say(f"  token: {token}" if shown else f"  token in {token_file}")
            if dashboard and is_private:
                say(f"  dashboard: {await sign_in_link(services, address, token)}")
            elif dashboard:
                say(f"  dashboard: {address} (`windlass dashboard` prints a link that signs in)")
            say("  try: windlass run -- echo hello")
            sys.stdout.flush()
            await stopping.soon.wait()
            # Commands find the server while it drains: to cancel what it waits for.
            pools = directory / POOLS
            names = own.names(workers)
            reporting = asyncio.create_task(
                report_draining(services, lambda: names | names_below(pools))
            )
            # The server is going away, so workers of its local pools would serve nobody.
            await services.stop_pools()
            limit = options.config.drain_limit_ms + SLACK_MS
            await asyncio.gather(*keepers, end_pool_workers(pools, limit, stopping.at_once))
            reporting.cancel()
        await serving.stop()


def _counted(workers: int, slots: int) -> str:
    if not workers:
        return "no workers"
    many = "worker" if workers == 1 else "workers"
    each = "" if workers == 1 else " each"
    return f"{workers} {many} with {slots} slot{'' if slots == 1 else 's'}{each}"
