"""`windlass server`."""

import os
import ssl
import sys
from pathlib import Path

import uvloop

from windlass.cli.commands.start.local_server import (
    announced,
    local_address,
    prepare_data,
    stop_on_signals,
)
from windlass.cli.commands.start.log import use_log
from windlass.cli.options.core_flags import NO_FLAGS, ConfigFile, CoreFlags, settings_of
from windlass.cli.options.flags import Many
from windlass.cli.options.log import DEFAULT_LOG, LogOptions
from windlass.cli.options.worker import Imports
from windlass.cli.output.text import BOLD_GREEN, say
from windlass.client.settings import DEFAULT_PORT, data_directory
from windlass.domain.values.addresses import is_loopback
from windlass.domain.values.errors import InvalidInput
from windlass.server.app import create_app
from windlass.server.serve import Listen, Serving, address_of, bind, parse_listen
from windlass.wiring.backend import ServerOptions
from windlass.wiring.server import ensure_admin_token, running_services
from windlass.worker.keeper.processes import become_private


def server(
    *,
    store: str,
    blobs: str,
    listen: str = f"127.0.0.1:{DEFAULT_PORT}",
    data: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    allowed_host: Many = None,
    modules: Imports = None,
    log: LogOptions = DEFAULT_LOG,
    config: ConfigFile = None,
    core: CoreFlags = NO_FLAGS,
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
        The certificate (PEM, with its chain) for https; needs --tls-key.
    tls_key
        The key (PEM) of --tls-cert.
    allowed_host
        A name under which a proxy reaches a server on loopback. Repeatable.
    modules
        A module with tasks whose arguments the server checks on submission. Repeatable.
    """
    level = use_log(log)
    become_private()
    settings = settings_of(core, config)
    host, port = parse_listen(listen)
    _check_certificate(tls_cert, tls_key)
    where = Listen(host=host, port=port, certificate=tls_cert, key=tls_key)
    directory = data_directory(data)
    imports = tuple(modules or ())
    options = ServerOptions(
        store, blobs, settings.config, imports, data=directory, log_level=level,
        sign_in=settings.sign_in,
    )  # fmt: skip
    uvloop.run(_serve(directory, options, where, tuple(allowed_host or ())))


def _check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Raises `InvalidInput` unless both are given and belong together."""
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        missing = "tls_cert" if certificate is None else "tls_key"
        expected = "given too: --tls-cert and --tls-key need each other"
        raise InvalidInput(missing, expected, "nothing")
    for name, path in (("tls_cert", certificate), ("tls_key", key)):
        if not os.access(path, os.R_OK):
            raise InvalidInput(name, "a readable file", str(path))
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise InvalidInput("tls_key", "the key of --tls-cert", f"another in {key}") from None
        expected = f"a certificate in PEM, with its key in {key}"
        raise InvalidInput("tls_cert", expected, f"something else in {certificate}") from None


async def _serve(
    directory: Path, options: ServerOptions, listen: Listen, names: tuple[str, ...]
) -> None:
    stop = stop_on_signals()
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
                "a loopback address until there is a token (start on 127.0.0.1 once)",
                listen.host,
            )
        hosts = names if is_loopback(listen.host) else None
        serving = Serving(create_app(services, hosts), listen, bound, services.stop_waiting)
        with announced(directory, local_address(address)):
            say(f"windlass server at {address}", BOLD_GREEN)
            sys.stdout.flush()
            await serving.until_stopped(stop)
