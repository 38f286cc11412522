"""`windlass worker`."""

import os
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop
from msgspec.structs import replace

from windlass.cli.commands.start.hidden_from_jobs import (
    CODE,
    KEEPS_NO_TOKEN,
    TOKEN,
    folders_of,
    hidden_folders,
    hide_dsn,
    take_secrets,
)
from windlass.cli.commands.start.reload import (
    end_to_start_again,
    run_watched,
    start_again,
    wait_for_change,
)
from windlass.cli.options.configuration import (
    DEFAULT,
    NONE_SET,
    OPTIONS,
    SET,
    CoreOptions,
    load_settings,
)
from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Flag, Misused
from windlass.cli.options.worker import NO_VARIABLES, NOTHING, Code, JobVariables, Offers
from windlass.cli.output.errors import explain_untrusted
from windlass.cli.output.logging import DEFAULT_LOG, LogOptions, use_log
from windlass.cli.output.text import RED, warn
from windlass.client.settings import OwnCertificate, data_directory, own_certificate
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.domain.values.names import check_name
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.keeper.processes import become_private

if TYPE_CHECKING:
    from windlass.client.transport import Transport

DRAIN_LIMIT: Final = "drain_limit"  # the core option that a worker may have for itself


def worker(
    *,
    at: Connection = HERE,
    store: str | None = None,
    blobs: str | None = None,
    name: str | None = None,
    state: Path | None = None,
    code: Code = None,
    client_cert: Path | None = None,
    client_key: Path | None = None,
    offers: Offers = NOTHING,
    variables: JobVariables = NO_VARIABLES,
    reload: Flag = False,
    log: LogOptions = DEFAULT_LOG,
    core: CoreOptions = NONE_SET,
) -> None:
    """Start a worker that takes jobs from a server, or directly from a store.

    Parameters
    ----------
    store
        Connect to this store instead of a server; needs --blobs and takes core options. Without
        it, drain_limit is the only one.
    blobs
        Where to keep logs and artifacts with --store.
    name
        The worker's name. Default: the host's name.
    state
        A directory for its token and for jobs that outlive it. Default: one per name in the
        data directory.
    code
        A single-use enrolment code from `windlass workers code`. Default: WINDLASS_CODE.
    client_cert
        A certificate (PEM) in the worker's name, for servers with --tls-client-ca. Default:
        WINDLASS_CLIENT_CERT.
    client_key
        The key (PEM) of --client-cert. Default: WINDLASS_CLIENT_KEY.
    reload
        For development: when the code of its functions changes, let running jobs finish and
        start again with the new code.
    """
    use_log(log)
    named = name or os.uname().nodename
    check_name("name", named)
    place = state or data_directory(at.data) / "workers" / named
    if store is None:
        _refuse_core(core)
    elif blobs is None:
        raise Misused("--store needs --blobs: where to keep logs and artifacts")
    held = take_secrets(code)
    address = None if store is None else hide_dsn(store)
    become_private()
    options = offers.options(named, place, held.get(CODE), {**os.environ, **held}, variables)
    options = replace(
        options, keeps_token=KEEPS_NO_TOKEN not in held, drain_limit_ms=_own_drain_limit(core),
        hides=_hidden(data_directory(at.data), options.hides, address, blobs),
    )  # fmt: skip
    if address is None or blobs is None:
        own = own_certificate(client_cert, client_key)
        work = _work(at, options, held.get(TOKEN), own, reload)
    else:
        work = _work_beside(address, blobs, options, core, reload)
    if _run(work, reload):
        if KEEPS_NO_TOKEN in held:
            end_to_start_again()
        start_again(held, address)


def _hidden(
    data: Path, named: tuple[Path, ...], store: str | None, blobs: str | None
) -> tuple[Path, ...]:
    """Returns the folders that jobs must not read."""
    own = folders_of(data, store or "", blobs or "")
    return (*own, *hidden_folders(os.environ), *named)


def _run(work: Coroutine[Any, Any, bool], reload: bool) -> bool:
    """Runs a worker to its end; returns whether it is to start again with other code."""
    try:
        return uvloop.run(work)
    except InvalidInput as error:
        if not reload or error.field != "import":
            raise
        warn(f"windlass: {error}; waiting for a change", RED)
        wait_for_change(Path.cwd())
        return True


def _refuse_core(core: CoreOptions) -> None:
    """Raises `InvalidInput` for core options without --store: the server has them."""
    given = [f"{SET} {name}" for name in core.by_name if name != DRAIN_LIMIT]
    given += ["--config"] if core.config else []
    if given:
        raise Misused(f"{given[0]} is for the server: a worker takes it only with --store")


def _own_drain_limit(core: CoreOptions) -> int | None:
    """Returns the limit that this worker was started with; None: the server's counts."""
    variable = OPTIONS[DRAIN_LIMIT].variable
    chosen = {name: text for name, text in core.by_name.items() if name == DRAIN_LIMIT}
    environ = {name: text for name, text in os.environ.items() if name == variable}
    found = load_settings(chosen, environ)
    is_given = found.by_name[DRAIN_LIMIT].source != DEFAULT
    return found.config.drain_limit_ms if is_given else None


async def _work(
    at: Connection,
    options: WorkerOptions,
    token: str | None,
    own: OwnCertificate | None,
    reload: bool,
) -> bool:
    # Here, since a worker that hides its secrets starts twice.
    from windlass.assembly.http_agent import http_agent

    transport = at.transport(token, own)
    try:
        await _check_trust(transport)
        agent = http_agent(transport, options)
        agent.obey_signals()
        return await run_watched(agent, reload)
    finally:
        await transport.close()


async def _check_trust(transport: "Transport") -> None:
    """Raises if the server's certificate is not trusted; waiting would not help."""
    from windlass.messages.system import Health

    try:
        if transport.server.startswith("https:"):
            await transport.call("GET", "/healthz", Health)
    except WindlassError as error:
        if explain_untrusted(error) is not None:
            raise


async def _work_beside(
    store: str, blobs: str, options: WorkerOptions, core: CoreOptions, reload: bool
) -> bool:
    from windlass.assembly.backend import ServerOptions, running_without_server
    from windlass.assembly.direct_agents import direct_agent

    settings = core.settings()
    place = ServerOptions(store, blobs, settings.config, options.imports)
    patient = replace(options, drain_limit_ms=settings.config.drain_limit_ms)
    async with running_without_server(place) as backend:
        agent = direct_agent(backend.engine, backend.files, patient)
        agent.obey_signals()
        return await run_watched(agent, reload)
