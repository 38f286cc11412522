"""An engine in the program's own process, with a worker beside it.

One process at a time holds a database file: it runs the loops and the jobs. The others are
guests, which submit and read. When the holder exits or dies, a guest that has workers takes
over. On PostgreSQL every process runs its own worker, and the loops while no server is alive.
"""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import structlog

from windlass.assembly.backend import Backend, make_backend, standing_by
from windlass.assembly.direct_agents import own_agent
from windlass.assembly.stores import Opening, make_private, open_store
from windlass.clock import RealClock
from windlass.domain.config import Config
from windlass.domain.values.errors import Conflict, InvalidInput, WindlassError
from windlass.executors.temporary import TemporaryFolder
from windlass.ports.executor import Executor
from windlass.store.sqlite.file_lock import EMBEDDED, SERVER, STAND_IN
from windlass.store.sqlite.store import SqliteStore
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.environment import without_own
from windlass.worker.agent.options import WorkerOptions

# A server that exits may be restarting: wait this long before taking over.
SERVER_RETURNS_S: Final = 10.0
VACANT_AGAIN_S: Final = 5.0  # a file held for longer than this counts as newly vacant
AGENT_PAUSE_MS: Final = 1_000

log = structlog.get_logger()


class NodeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`store` is a file, or an address such as postgresql://…; `blobs` an address.

    `workers` is how many jobs run at once (0: none run here), `drain_ms` how long running jobs get
    when the node is closed. `offers` is metadata about shared resources.
    """

    store: str
    blobs: str | None = None
    workers: int
    drain_ms: int = 10_000
    config: Config = Config()
    offers: dict[str, Any] = {}


class Node:
    """Holds the engine and its worker from `open` to `close`."""

    def __init__(self, options: NodeOptions, python: Executor | None = None) -> None:
        """`python` runs functions, instead of separate processes."""
        self._python = python
        if options.workers < 0:
            raise InvalidInput("workers", "a number from 0", options.workers)
        self.backend: Backend | None = None  # set while it is open
        self._options = options
        self._opening = asyncio.Lock()
        self._closed = False
        self._stack = AsyncExitStack()
        self._agent: Agent | None = None
        self._running: asyncio.Task[None] | None = None
        self._taking_over: asyncio.Task[None] | None = None
        self._stepping_down: asyncio.Task[None] | None = None
        self._works_here = False  # keep the agent running
        self._vacant_since = self._vacant_seen = -VACANT_AGAIN_S

    async def open(self) -> Backend:
        """Starts the engine, and the loops and worker if this process holds the file."""
        async with self._opening:
            if self._closed:
                raise Conflict("client_closed", "this embedded client was closed")
            if self.backend is None:
                parts = urlsplit(self._options.store)
                if "://" in self._options.store or parts.scheme == "memory":
                    self.backend = await self._open_shared()
                else:
                    self.backend = await self._open_file(Path(self._options.store).absolute())  # noqa: ASYNC240
            return self.backend

    async def close(self) -> None:
        """Lets running jobs finish, hands back the rest, and stops."""
        async with self._opening:
            self._closed = True
            backend, self.backend = self.backend, None
            if backend is None:
                return
            for changing in (self._taking_over, self._stepping_down):
                if changing is not None:
                    await asyncio.wait((changing,))
            await self._stop_agent()
            await self._stack.aclose()
            await backend.close()

    # A file

    async def _open_file(self, path: Path) -> Backend:
        make_private(files_of(path))
        store = SqliteStore.open(path, RealClock(), exclusive=False)
        try:
            own = f"file://{files_of(path) / 'blobs'}"
            leads = bool(self._options.workers) and await store.lead(
                EMBEDDED, self._options.blobs or own
            )
            blobs = self._options.blobs or (own if leads else store.holding.blobs or own)
            backend = make_backend(store, blobs, self._options.config)
            await store.join(self._note_vacancy)
            await backend.engine.start()
            backend.inbox.listen()
        except BaseException:
            await store.close()
            raise
        if leads:
            self._begin(backend, files_of(path))
        return backend

    def _note_vacancy(self) -> None:
        """Notes that no process seems to hold the file."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now - self._vacant_seen >= VACANT_AGAIN_S:
            self._vacant_since = now
        self._vacant_seen = now
        if self.backend is None or not self._options.workers or self._taking_over is not None:
            return
        self._taking_over = loop.create_task(self._take_over(self.backend, loop.time()))

    async def _take_over(self, backend: Backend, now: float) -> None:
        store = backend.engine.store
        assert isinstance(store, SqliteStore)
        held = store.holding
        kind = STAND_IN if held.kind in (SERVER, STAND_IN) else EMBEDDED
        try:
            if held.kind == SERVER and now - self._vacant_since < SERVER_RETURNS_S:
                return
            blobs = held.blobs or f"file://{files_of(store.path) / 'blobs'}"
            chosen = self._options.blobs or blobs
            if not self._closed and await store.lead(kind, chosen, self._note_wish):
                log.info("took_over", file=str(store.path), after=held.process)
                await backend.engine.refresh()
                self._begin(backend, files_of(store.path))
        finally:
            self._taking_over = None

    def _note_wish(self) -> None:
        """Steps down for a server that wants its file back."""
        if self.backend is not None and self._stepping_down is None:
            stepping = self._step_down(self.backend)
            self._stepping_down = asyncio.get_running_loop().create_task(stepping)

    async def _step_down(self, backend: Backend) -> None:
        store = backend.engine.store
        assert isinstance(store, SqliteStore)
        try:
            if store.holding.kind == STAND_IN:
                await self._stop_agent()
                await backend.loops.stop()
                self._vacant_since = self._vacant_seen = asyncio.get_running_loop().time()
                await store.step_down(self._note_vacancy)
                await backend.engine.refresh()
                log.info("gave_back", file=str(store.path))
        finally:
            self._stepping_down = None

    # A shared store

    async def _open_shared(self) -> Backend:
        if self._options.blobs is None:
            raise InvalidInput("blobs", "given together with the address of a store", None)
        opening = Opening(self._options.blobs)
        store = await open_store(self._options.store, self._options.config, opening)
        try:
            backend = make_backend(store, self._options.blobs, self._options.config)
            await backend.engine.start()
            backend.inbox.listen()
        except BaseException:
            await store.close()
            raise
        if self._options.workers:
            await self._stack.enter_async_context(standing_by(backend))
            state = self._stack.enter_context(TemporaryFolder("windlass-worker-"))
            self._running = self._run_agent(
                backend, state.path, f"{os.uname().nodename}-{os.getpid()}"
            )
        return backend

    # Jobs

    def _begin(self, backend: Backend, folder: Path) -> None:
        backend.loops.start()
        self._running = self._run_agent(backend, folder / "worker", "embedded")

    async def _stop_agent(self) -> None:
        """Lets running jobs finish and hands back the rest."""
        self._works_here = False
        if self._agent is not None:
            self._agent.drain()
        if self._running is not None:
            await asyncio.wait((self._running,))

    def _run_agent(self, backend: Backend, state: Path, name: str) -> asyncio.Task[None]:
        self._works_here = True
        options = WorkerOptions(
            name=name,
            state=state,
            slots=self._options.workers,
            drain_limit_ms=self._options.drain_ms,
            metadata=self._options.offers,
            trusts_jobs=True,  # They are the program's own.
            variables=without_own(os.environ),
        )
        return asyncio.get_running_loop().create_task(self._keep_agent(backend, options))

    async def _keep_agent(self, backend: Backend, options: WorkerOptions) -> None:
        """Runs the worker until the end; restarts one that fails."""
        while self._works_here and not self._closed:
            try:
                self._agent = own_agent(backend.engine, backend.files, options, self._python)
                await self._agent.run()
            except WindlassError as error:
                log.warning("worker_failed", error=error.message)
                await RealClock().sleep_ms(AGENT_PAUSE_MS)


def files_of(database: Path) -> Path:
    """Returns the folder for logs, artifacts and the worker's state."""
    return database.with_name(database.name + ".files")
