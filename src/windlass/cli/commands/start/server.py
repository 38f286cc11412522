"""`windlass server`."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import uvloop

from windlass.assembly.backend import ServerOptions
from windlass.assembly.server import ensure_admin_token, running_services
from windlass.cli.commands.start.hidden_from_jobs import folders_of, hide_from_jobs
from windlass.cli.commands.start.local_server import (
    NO_PLUGIN_FLAGS,
    PluginFlags,
    announced,
    local_address,
    notify_ready,
    obey_signals,
    plugin_options,
    prepare_data,
)
from windlass.cli.options.configuration import NONE_SET, CoreOptions
from windlass.cli.options.flags import Flag, Many, Misused
from windlass.cli.options.worker import Imports
from windlass.cli.output.logging import DEFAULT_LOG, LogOptions, use_log
from windlass.cli.output.text import BOLD_GREEN, say
from windlass.client.settings import DEFAULT_PORT, data_directory
from windlass.domain.values.addresses import is_loopback
from windlass.domain.values.errors import InvalidInput
from windlass.ports.loop_time import spare_what_is_loaded
from windlass.server.app import start_serving
from windlass.server.connections.connection import raise_file_limit
from windlass.server.connections.tls import TlsFiles, load_context
from windlass.server.serve import Listen, address_of, bind, parse_listen
from windlass.worker.keeper.processes import become_private


def server(
    *,
    store: str,
    blobs: str,
    listen: str = f"127.0.0.1:{DEFAULT_PORT}",
    data: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    tls_client_ca: Path | None = None,
    allowed_host: Many = None,
    modules: Imports = None,
    no_dashboard: Flag = False,
    plugins: PluginFlags = NO_PLUGIN_FLAGS,
    log: LogOptions = DEFAULT_LOG,
    core: CoreOptions = NONE_SET,
) -> None:
    """Start a server; any number of servers may share one PostgreSQL database.

    Parameters
    ----------
    store
        sqlite:///path or postgresql://…
    blobs
        Where to keep logs and artifacts: file:///directory or s3://bucket/prefix.
    listen
        HOST:PORT. An address beyond this machine needs a token in the store.
    data
        Where the server writes its address and, on loopback, its admin token. Default:
        WINDLASS_DATA, else ~/.local/share/windlass.
    tls_cert
        The certificate (PEM, with its chain) for https; needs --tls-key. Files that change are
        loaded again.
    tls_key
        The key (PEM) of --tls-cert.
    tls_client_ca
        The certificate authorities (PEM) for workers. With it, each worker needs a certificate
        in its own name.
    allowed_host
        A name under which clients reach the server, beside http.host_names. Repeatable.
    modules
        A module with tasks whose arguments the server checks on submission. Repeatable.
    no_dashboard
        Serve the API only, without the web page.
    """
    level = use_log(log)
    become_private()
    settings = core.settings()
    host, port = parse_listen(listen)
    where = Listen(host=host, port=port, tls=_tls_files(tls_cert, tls_key, tls_client_ca))
    raise_file_limit()
    directory = data_directory(data)
    imports = tuple(modules or ())
    options = ServerOptions(
        store, blobs, settings.config, imports, data=directory, log_level=level,
        sign_in=settings.sign_in, plugins=plugin_options(plugins),
    )  # fmt: skip
    hide_from_jobs(folders_of(directory, store, blobs), os.environ)
    uvloop.run(_serve(directory, options, where, tuple(allowed_host or ()), not no_dashboard))


def _tls_files(
    certificate: Path | None, key: Path | None, client_ca: Path | None
) -> TlsFiles | None:
    """Returns the files; raises `InvalidInput` unless they are complete and belong together."""
    if certificate is None and key is None:
        if client_ca is not None:
            raise Misused("--tls-client-ca needs --tls-cert and --tls-key")
        return None
    if certificate is None or key is None:
        given, missing = "--tls-cert", "--tls-key"
        if certificate is None:
            given, missing = missing, given
        raise Misused(f"{given} needs {missing}")
    files = TlsFiles(certificate, key, client_ca)
    load_context(files)
    return files


async def _serve(
    directory: Path, options: ServerOptions, listen: Listen, names: tuple[str, ...], dashboard: bool
) -> None:
    stop = obey_signals().soon
    bound = bind(listen)
    address = address_of(listen, bound)
    options = options._replace(address=local_address(address), stopped=stop.is_set)
    async with running_services(options) as services:
        if is_loopback(listen.host):
            prepare_data(directory)
            await ensure_admin_token(services, directory / "admin-token")
        elif not await services.access.tokens():
            raise InvalidInput(
                "listen",
                "a loopback address until there is a token: make one with `windlass db token`",
                listen.host,
            )
        serving = start_serving(services, listen, bound, names, dashboard)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, serving.reload_certificate)
        with announced(directory, local_address(address)):
            spare_what_is_loaded()
            say(f"windlass server at {address}", BOLD_GREEN)
            sys.stdout.flush()
            notify_ready()
            await stop.wait()
            await serving.stop()
