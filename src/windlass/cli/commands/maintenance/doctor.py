"""`windlass doctor`: checks this installation, and when its certificates expire."""

import asyncio
import os
import shutil
import socket
import ssl
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from windlass.cli.commands.maintenance.plugins import problems_of
from windlass.cli.options.configuration import ConfigFile, load_settings
from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Json
from windlass.cli.output.errors import explain_unauthorized, explain_untrusted
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_json
from windlass.client.settings import data_directory, trust_for
from windlass.clock import RealClock
from windlass.domain.access.secrets import EVERYONE
from windlass.domain.explain.reasons import list_names
from windlass.domain.matching.isolation import DEFAULT, MODES, WEAKEST
from windlass.domain.matching.shapes import NAMESPACES
from windlass.domain.values.errors import InvalidInput, StoreUnavailable, WindlassError, needs
from windlass.domain.values.quantities import counted, format_moment, readable_size
from windlass.messages.overview import LOST_COMMITS, AttentionList
from windlass.messages.workers import WorkerInfo, WorkerList
from windlass.plugins import installed_plugins, load_part
from windlass.ports.loop_time import pass_time

OLDEST_PYTHON: Final = (3, 11)
# Older versions can lose committed data when the WAL is reset.
OLDEST_SQLITE: Final = (3, 51, 3)
MIN_SPACE: Final = 1024**3

STORE_TRIES: Final = 15  # before a store that does not answer is a problem
STORE_PAUSE_S: Final = 1.0

State = Literal["ok", "note", "problem"]
T = TypeVar("T")
PATIENCE_SECONDS: Final = 5.0
DAY_MS: Final = 86_400_000
SOON_DAYS: Final = 30  # to be renewed
URGENT_DAYS: Final = 7
HTTPS_PORT: Final = 443
CERTIFICATE: Final = "certificate"


class Finding(NamedTuple):
    """The result of one check: `note` is good to know, `problem` needs fixing."""

    check: str
    state: State
    detail: str


def doctor(
    *,
    config: ConfigFile = None,
    store: str | None = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Check this installation; exits with 1 if there is a problem.

    Parameters
    ----------
    store
        Also check this PostgreSQL database: postgresql://… Run it where servers run.
    """
    findings = list(_examine(config, at))
    if store is not None:
        findings += _store(store, config)
    if json:
        print_json([finding._asdict() for finding in findings])
    else:
        print_table(("check", "state", "detail"), findings, "")
    if any(finding.state == "problem" for finding in findings):
        raise SystemExit(FAILED)


def _examine(config: Path | None, at: Connection) -> Iterator[Finding]:
    import apsw

    from windlass.executors.media import find_ffmpeg

    yield _version("python", sys.version_info[:3], OLDEST_PYTHON)
    sqlite = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    yield _version("sqlite", sqlite, OLDEST_SQLITE)
    yield _configuration(config)
    yield from _data(data_directory(at.data))
    yield _tool("ffmpeg", find_ffmpeg)
    yield _tool("gstreamer", lambda: shutil.which("gst-launch-1.0"))
    yield from examine_isolation(data_directory(at.data))
    yield _containers()
    yield from _plugins()
    yield from _server(at)


def _store(url: str, config: Path | None) -> Iterator[Finding]:
    """Checks the database of servers."""
    from windlass.assembly.stores import is_postgres

    if not is_postgres(url):
        raise InvalidInput("--store", "postgresql://…; other stores need no check", url)
    with needs("postgres"):
        from windlass.store.postgres.condition import examine
    try:
        pool_open = load_settings({}, os.environ, config).config.pool_open
        yield from (Finding(*found) for found in asyncio.run(examine(url, pool_open)))
    except WindlassError as error:
        yield Finding("postgresql", "problem", str(error))


def _plugins() -> Iterator[Finding]:
    """Reports which plug-ins work, and the findings of their own checks."""
    for found in installed_plugins():
        problem = "; ".join(problems_of(found))
        detail = problem or f"{found.package} {found.version}"
        yield Finding(f"plug-in {found.name}", "problem" if problem else "ok", detail)
        if problem or found.plugin is None or not found.plugin.checks:
            continue
        try:
            findings = load_part(found.name, "the checks", found.plugin.checks)()
            yield from (Finding(*one) for one in findings)
        except Exception as error:
            why = f"its checks failed: {type(error).__name__}: {error}"
            yield Finding(f"plug-in {found.name}", "problem", why)


def _containers() -> Finding:
    """Asks the engine that workers of this user would use."""
    from windlass.worker.isolation.container_engine import AUTO, ENGINE, Engine, find_engine

    try:
        found = asyncio.run(find_engine(os.environ.get(ENGINE, AUTO), os.environ))
    except WindlassError as error:
        return Finding("isolation container", "problem", str(error))
    if isinstance(found, Engine):
        return Finding("isolation container", "ok", str(found))
    return Finding("isolation container", "note", f"not here: {found}")


def _version(name: str, found: tuple[int, ...], oldest: tuple[int, ...]) -> Finding:
    shown, wanted = (".".join(map(str, version)) for version in (found, oldest))
    if found >= oldest:
        return Finding(name, "ok", shown)
    return Finding(name, "problem", f"expected {wanted} or newer, got {shown}")


def _configuration(config: Path | None) -> Finding:
    try:
        settings = load_settings({}, os.environ, config)
    except WindlassError as error:
        return Finding("configuration", "problem", str(error))
    changed = sum(setting.source != "default" for setting in settings.by_name.values())
    return Finding("configuration", "ok", f"{counted(changed, 'option')} set, else defaults")


def _data(directory: Path) -> Iterator[Finding]:
    """Checks that the data directory is private, writable and has free space."""
    if not directory.exists():
        yield Finding("data directory", "note", f"{directory} does not exist yet")
        return
    mode = stat.S_IMODE(directory.stat().st_mode)
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("data directory", "problem", f"this user cannot write to {directory}")
    elif mode & 0o077:
        remedy = f"other users can read it ({mode:o}); run chmod 700 {directory}"
        yield Finding("data directory", "problem", remedy)
    else:
        yield Finding("data directory", "ok", str(directory))
    free = shutil.disk_usage(directory).free
    room = f"{readable_size(free)} free"
    if free < MIN_SPACE:
        yield Finding("disk", "problem", f"expected {readable_size(MIN_SPACE)} free, got {room}")
    else:
        yield Finding("disk", "ok", room)


def _tool(name: str, find: Callable[[], str | None]) -> Finding:
    path = find()
    if path is None:
        return Finding(name, "note", f"not found: workers on this machine cannot run {name} jobs")
    return Finding(name, "ok", path)


def _certificate(address: str, at: Connection) -> Iterator[Finding]:
    """Says when the certificates of https servers expire."""
    for one in address.split(","):
        expiry = server_expiry(one.strip(), trust_for(one.strip(), at.tls_ca))
        if expiry is not None:
            yield expiry


def examine_isolation(data: Path) -> Iterator[Finding]:
    """Tries the modes in which workers of this machine can isolate jobs."""
    from windlass.worker.isolation.modes import find_modes
    from windlass.worker.isolation.process import OPEN, choose_hiding, signals_kept_by
    from windlass.worker.keeper.cgroups import AUTO, find_cgroup

    modes = asyncio.run(find_modes())
    for mode in MODES:
        why = modes.lacking.get(mode)
        if mode in modes.offered:
            yield Finding(f"isolation {mode}", "ok", "workers of this user can do it")
        elif why is not None:
            yield Finding(f"isolation {mode}", "note", f"not here: {why}")
    hiding = choose_hiding([data])
    if hiding.way == OPEN:
        yield Finding("files of Windlass", "note", f"open to jobs in process: {hiding.reason}")
    else:
        yield Finding("files of Windlass", "ok", f"closed to jobs in process ({hiding.way})")
    if signals_kept_by() == OPEN:
        yield Finding("signals of jobs", "note", "reach workers: needs Landlock of Linux 6.12")
    else:
        yield Finding("signals of jobs", "ok", "do not reach workers and other jobs (Landlock)")
    cgroup = find_cgroup(AUTO)
    how = "rlimits and watching" if cgroup is None else f"cgroup {cgroup}"
    yield Finding("limits of jobs", "ok" if cgroup else "note", f"kept by {how}")


def namespaces_of(workers: Sequence[WorkerInfo]) -> Iterator[Finding]:
    """Reports which namespaces share workers where jobs can read each other's files."""
    serving: dict[tuple[str, ...], list[str]] = {}
    for worker in workers:
        if worker.metadata.get(DEFAULT) == WEAKEST:
            served = worker.metadata.get(NAMESPACES, EVERYONE)
            names = served if isinstance(served, list) else [served]
            serving.setdefault(tuple(map(str, names)), []).append(worker.name)
    for namespaces, workers_there in serving.items():
        whose = f"jobs in process on {list_names(workers_there)}"
        if EVERYONE in namespaces:
            shared = "all namespaces can get at each other's files"
        elif len(namespaces) > 1:
            shared = f"namespaces {', '.join(namespaces)} can get at each other's files"
        else:
            only = f"of namespace {', '.join(namespaces)} only"
            how = "`windlass workers set NAME namespaces=a,b` lets in others"
            yield Finding("namespaces", "ok", f"{whose} are {only}; {how}")
            continue
        yield Finding("namespaces", "note", f"{whose}: {shared}")


def _server(at: Connection) -> Iterator[Finding]:
    try:
        address = at.found().server
        yield Finding("server known", "ok", address)
        yield from _certificate(address, at)
        passed, workers = _patiently(lambda: at.call("GET", "/api/v1/workers", WorkerList).workers)
        noticed = at.call("GET", "/api/v1/attention", AttentionList).items
    except WindlassError as error:
        why = explain_untrusted(error) or explain_unauthorized(error) or error
        yield Finding("server", "problem", str(why))
        return
    if passed is None:
        yield Finding("server answers", "ok", "accepts this token")
    else:
        yield Finding("server answers", "note", f"now, but before: {passed}")
    yield from (Finding("store", "note", it.reason) for it in noticed if it.kind == LOST_COMMITS)
    yield from namespaces_of(workers)
    able = sum(worker.status in ("idle", "busy") for worker in workers)
    state: State = "ok" if able else "note"
    yield Finding("workers", state, f"{able} of {len(workers)} can take jobs")


def _patiently(ask: Callable[[], T]) -> tuple[WindlassError | None, T]:
    """Returns the answer, and the error of the first tries if there was one.

    During a failover a server has no database for a while, which is no problem.
    """
    error: WindlassError | None = None
    for _ in range(STORE_TRIES):
        try:
            return error, ask()
        except StoreUnavailable as unavailable:
            error = unavailable
        asyncio.run(pass_time(STORE_PAUSE_S))
    return error, ask()


def server_expiry(server: str, trust: ssl.SSLContext) -> Finding | None:
    """Returns when the certificate of an https address expires; None if that is unknown."""
    parts = urlsplit(server)
    if parts.scheme != "https" or parts.hostname is None:
        return None
    where = (parts.hostname, parts.port or HTTPS_PORT)
    try:
        with (
            socket.create_connection(where, timeout=PATIENCE_SECONDS) as plain,
            trust.wrap_socket(plain, server_hostname=parts.hostname) as secured,
        ):
            found = secured.getpeercert() or {}
    except OSError:
        return None  # asking for something else says why
    until = found.get("notAfter")
    return judge_expiry(until, RealClock().now_ms()) if isinstance(until, str) else None


def judge_expiry(not_after: str, now_ms: int) -> Finding:
    """Returns how urgent it is to renew a certificate that is valid until `not_after`."""
    until_ms = int(ssl.cert_time_to_seconds(not_after)) * 1000
    days = (until_ms - now_ms) // DAY_MS
    detail = f"expires in {counted(days, 'day')}, {format_moment(until_ms)}"
    if days < 0:
        return Finding(CERTIFICATE, "problem", f"expired on {format_moment(until_ms)}: renew it")
    if days < URGENT_DAYS:
        return Finding(CERTIFICATE, "problem", f"{detail}: renew it")
    return Finding(CERTIFICATE, "note" if days < SOON_DAYS else "ok", detail)
