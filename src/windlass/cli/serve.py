"""Commands that start one process: server and worker."""

import asyncio
import contextlib
import os
import signal
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import uvloop
from msgspec.structs import replace

from windlass.cli.concealed import CODE, KEEPS_NO_TOKEN, TOKEN, conceal, take_secrets
from windlass.cli.configuration import OPTIONS
from windlass.cli.connection import HERE, Connection, explain_distrust
from windlass.cli.core import NO_FLAGS, ConfigFile, CoreFlags, given, settings_of
from windlass.cli.output import console
from windlass.cli.worker_options import NOTHING, Code, Imports, Many, Offers
from windlass.client.settings import (
    DEFAULT_PORT,
    announce,
    data_directory,
    retract,
)
from windlass.client.transport import Transport
from windlass.domain.job.job import check_name
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.server.app import create_app
from windlass.server.serve import Listen, Serving, address_of, bind, is_loopback, parse_listen
from windlass.wire.system import Health
from windlass.wiring.agents import direct_agent, http_agent
from windlass.wiring.server import ensure_admin_token, running_services
from windlass.wiring.stores import make_private
from windlass.wiring.works import ServerOptions, running_beside
from windlass.worker.agent.options import WorkerOptions
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
    config: ConfigFile = None,
    core: CoreFlags = NO_FLAGS,
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
        Where the server leaves its address and, on loopback, its admin token.
    tls_cert
        A certificate (PEM, with its chain) to serve https with; needs --tls-key.
    tls_key
        The key (PEM) of --tls-cert.
    allowed_host
        A name under which a proxy reaches a server on loopback. May be given several times.
    modules
        A module whose tasks it knows, to refuse wrong arguments. May be given several times.
    """
    become_private()
    settings = settings_of(core, config)
    host, port = parse_listen(listen)
    _check_certificate(tls_cert, tls_key)
    where = Listen(host=host, port=port, certificate=tls_cert, key=tls_key)
    directory = data_directory(data)
    imports = tuple(modules or ())
    options = ServerOptions(store, blobs, settings.config, imports, data=directory)
    uvloop.run(_serve(directory, options, where, tuple(allowed_host or ())))


def _check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Refuse one without the other, and what is no certificate with its key."""
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        missing = "tls_cert" if certificate is None else "tls_key"
        expected = "given too: --tls-cert and --tls-key belong together"
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
    options = options._replace(address=local_address(address))
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
        serving = Serving(create_app(services, hosts), listen, bound)
        with announced(directory, local_address(address)):
            console.print(f"windlass server at {address}", style="bold green")
            sys.stdout.flush()
            await serving.until_stopped(stop, services.engine.waiting_syncs.wake_all)


def prepare_data(directory: Path) -> None:
    """Make the data directory; refuse one that cannot be used."""
    try:
        make_private(directory)
    except OSError as error:
        expected = f"a directory this user can write to ({error.strerror})"
        raise InvalidInput("data", expected, str(directory)) from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InvalidInput("data", "a directory this user can write to", str(directory))


def local_address(address: str) -> str:
    """An address for this machine: a server that listens everywhere is also here."""
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


@contextlib.contextmanager
def announced(directory: Path, address: str) -> Iterator[None]:
    """Commands on this machine find the server by its data directory while it runs.

    One that may not write there, as in a container, does without.
    """
    try:
        make_private(directory)
        announce(directory, address)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        retract(directory)


def worker(
    *,
    at: Connection = HERE,
    store: str | None = None,
    blobs: str | None = None,
    name: str | None = None,
    state: Path | None = None,
    code: Code = None,
    offers: Offers = NOTHING,
    config: ConfigFile = None,
    core: CoreFlags = NO_FLAGS,
) -> None:
    """Start a worker: it takes jobs from a server, or straight from a store.

    Parameters
    ----------
    store
        Instead of a server: the store itself, with --blobs and core options.
    blobs
        Where logs and artifacts of --store go.
    name
        What the worker is called. Default: the host's name.
    state
        A directory of its own, for its token and what it left running.
    code
        A single-use enrolment code (`windlass workers code`). Default: WINDLASS_CODE.
    """
    named = name or os.uname().nodename
    check_name("name", named)
    place = state or data_directory(at.data) / "workers" / named
    if store is None:
        _refuse_core(config, core)
    elif blobs is None:
        raise InvalidInput("blobs", "given together with --store", "nothing")
    held = take_secrets()
    address = None if store is None else conceal(store)
    become_private()
    options = offers.options(named, place, code or held.get(CODE), {**os.environ, **held})
    options = replace(options, keeps_token=KEEPS_NO_TOKEN not in held)
    if address is None or blobs is None:
        uvloop.run(_work(at, options, held.get(TOKEN)))
    else:
        uvloop.run(_work_beside(address, blobs, options, config, core))


def _refuse_core(config: Path | None, core: CoreFlags) -> None:
    """With a server between, the core is there, and so are its options."""
    flags = [OPTIONS[name].flag for name in given(core)] or (["--config"] if config else [])
    if flags:
        expected = "given to the server, or here together with --store"
        raise InvalidInput(flags[0], expected, "no --store")


async def _work(at: Connection, options: WorkerOptions, token: str | None) -> None:
    transport = at.transport(token)
    try:
        await _check_trust(transport)
        agent = http_agent(transport, options)
        agent.obey_signals()
        await agent.run()
    finally:
        await transport.close()


async def _check_trust(transport: Transport) -> None:
    """Refuse a certificate that is not trusted: waiting for a server does not change that."""
    try:
        if transport.server.startswith("https:"):
            await transport.call("GET", "/healthz", Health)
    except WindlassError as error:
        if explain_distrust(error) is not None:
            raise


async def _work_beside(
    store: str, blobs: str, options: WorkerOptions, config: Path | None, core: CoreFlags
) -> None:
    settings = settings_of(core, config)
    place = ServerOptions(store, blobs, settings.config, options.imports)
    patient = replace(options, drain_limit_ms=settings.config.drain_limit_ms)
    async with running_beside(place) as works:
        agent = direct_agent(works.engine, works.files, patient)
        agent.obey_signals()
        await agent.run()


def stop_on_signals() -> asyncio.Event:
    """Set by SIGTERM and SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
