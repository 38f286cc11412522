"""Builds the services behind a server's routes, and creates its first token."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from windlass.assembly.backend import ServerOptions, make_services, running_backend
from windlass.assembly.stores import open_store
from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.domain.access.rights import Role
from windlass.domain.config import Config
from windlass.domain.rows.events import Level
from windlass.domain.values.errors import Conflict, WindlassError
from windlass.engine.access import Access, TokenUses
from windlass.engine.engine import Engine
from windlass.engine.history.events import EventLines, WorkerNames
from windlass.engine.loops.pools import PoolsLoop
from windlass.engine.loops.ticker import Loop, ServerHeartbeat, Ticker
from windlass.ports.clock import Clock
from windlass.server.audit_log import AuditLog
from windlass.server.feed import CountedEvents, Feed, write_line
from windlass.server.live_pages import LiveHub
from windlass.server.marks import make_marks
from windlass.server.metrics import Meters
from windlass.server.plugins import start_parts
from windlass.server.readiness import Readiness
from windlass.server.services import ServerServices
from windlass.server.sign_in.callers import SignedCallers
from windlass.server.sign_in.code_flow import CodeFlow, SignInRate
from windlass.server.sign_in.states import States, shared_key
from windlass.server.tracing import JobSpans, RootSpans, submit_traced
from windlass.tracing.exporting import Tracing, end_tracing, start_tracing

LAST_MS: Final = 5_000  # how long a stopping server goes on reading the event log


@asynccontextmanager
async def running_services(options: ServerOptions) -> AsyncIterator[ServerServices]:
    """Runs an engine with the services that a server's routes call."""
    clock = RealClock()
    meters = Meters(options.store.partition(":")[0])
    meters.holds.watch(asyncio.get_running_loop())
    async with running_backend(options) as backend:
        engine = backend.engine
        backend.loops.start()
        callers = SignedCallers(options.sign_in, clock)
        signed = callers if options.sign_in.is_on else None
        base = make_services(backend, options.data, options.address, signed)
        counters, access, pools = engine.counters, base.access, base.pools
        tracing = _start_tracing(engine, clock)
        feed = _make_feed(engine, base.names, meters, options.log_level, tracing)
        await feed.begin()
        reading: Ticker[Any] = Ticker(feed, clock, counters)
        tickers: list[Ticker[Any]] = []
        sizing = Ticker(PoolsLoop(pools), clock, counters)
        if options.address:
            tickers.append(sizing)
        if engine.store.shared and not engine.store.inline:
            tickers.append(Ticker(ServerHeartbeat(engine), clock, counters))
        sign_ins = SignInRate(options.config.http.sign_ins_per_minute, meters.refuse, clock)
        audit = AuditLog(engine.store, engine.catalog, clock, RealSecrets().secret())
        live = LiveHub(engine.store, feed.read_after, base.queries.places)
        loops: tuple[Loop[Any], ...] = (audit, TokenUses(access), live)
        tickers += [Ticker(loop, clock, counters) for loop in loops]
        for ticker in (reading, *tickers):
            ticker.start()
        traced = None
        if tracing is not None:
            traced = partial(submit_traced, tracing=tracing, clock=clock)
        try:
            yield ServerServices(
                **{**structs.asdict(base), "feed": feed, "submit_traced": traced},
                live=live,
                meters=meters,
                stop_pools=partial(sizing.stop, options.config.drain_limit_ms),
                readiness=Readiness(engine, backend.blobs, backend.inbox),
                stopping=asyncio.Event(),
                callers=callers,
                audit=audit,
                sign_ins=sign_ins,
                marks=await make_marks(engine, RealSecrets()),
                code_flow=_code_flow(callers, engine, sign_ins, clock),
                plugins=start_parts(options.plugins, options.data, clock),
                tracing=tracing,
            )
        finally:
            limit_ms = options.config.drain_limit_ms
            await reading.stop(min(limit_ms, LAST_MS))
            for ticker in tickers:
                await ticker.stop(limit_ms)
            await callers.fetcher.close()
            await audit.close()
            await _note_the_last(access, feed, clock, min(limit_ms, LAST_MS))
            end_tracing(tracing)


async def _note_the_last(access: Access, feed: Feed, clock: Clock, limit_ms: int) -> None:
    """Logs what happened while the server stopped, if the store answers and there is time."""
    with suppress(WindlassError):
        await access.note_uses()
    with suppress(WindlassError, TimeoutError):
        async with asyncio.timeout(limit_ms / 1000):
            await feed.run_once(clock.now_ms())


def _start_tracing(engine: Engine, clock: Clock) -> Tracing | None:
    """Returns the exporter of spans, if one is configured; then jobs without a trace get one."""
    tracing = start_tracing("windlass-server")
    if tracing is not None:
        engine.begin_trace = RootSpans(tracing, clock).begin
    return tracing


def _make_feed(
    engine: Engine, names: WorkerNames, meters: Meters, level: Level, tracing: Tracing | None
) -> Feed:
    """Returns what reads the event log for the counters, the log and the spans."""
    spans = None if tracing is None else JobSpans(tracing)
    sink = write_line if spans is None else partial(write_line, trace_of=spans.trace_of)
    lines = None if level == Level.OFF else EventLines(names, sink, level)
    return Feed(engine.store, meters, CountedEvents(engine), lines, spans)


def _code_flow(
    callers: SignedCallers, engine: Engine, rate: SignInRate, clock: Clock
) -> CodeFlow | None:
    """Returns the sign-in for browsers, if the server knows its own address."""
    oidc = callers.oidc
    if oidc is None or not oidc.public_url:
        return None
    secrets = RealSecrets()
    states = States(lambda: engine.run(partial(shared_key, secrets=secrets)), secrets, clock)
    return CodeFlow(callers, oidc, states=states, rate=rate, secrets=secrets, clock=clock)


async def ensure_admin_token(services: ServerServices, path: Path) -> str:
    """Returns the admin token of this data directory; creates it, private to its owner, once."""
    return await ensure_token(services.access, path, "admin", Role.ADMIN)


async def create_token_in(
    url: str, config: Config, name: str, role: Role, path: Path | None
) -> str:
    """Creates a token in a store without a server, and returns its secret.

    With a file, the token is written there, and one that is valid there already is kept.
    """
    store = await open_store(url, config)
    engine = Engine(store, config, RealChance())
    try:
        await engine.start()
        access = Access(engine, RealSecrets())
        if path is not None:
            return await ensure_token(access, path, name, role)
        return (await access.create_token(name, role)).secret
    finally:
        await engine.close()
        await store.close()


async def ensure_token(access: Access, path: Path, name: str, role: Role) -> str:
    """Returns the token of a file; creates it, private to its owner, unless it is valid."""
    known = _read_secret(path)
    if known and await access.identify(known) is not None:
        return known
    try:
        created = await access.create_token(name, role)
    except Conflict:  # of another server on this store, or of a file that was lost
        other = f"{name} {RealSecrets().secret()[:8]}"
        created = await access.create_token(other, role)
    _write_secret(path, created.secret)
    return created.secret


def _read_secret(path: Path) -> str | None:
    return path.read_text().strip() if path.exists() else None


def _write_secret(path: Path, secret: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o600)  # also where the file was there before
        file.write(secret + "\n")
