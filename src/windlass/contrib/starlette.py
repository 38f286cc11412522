"""Windlass in a Starlette or FastAPI application: a client, and the API below a path.

```python
from windlass.contrib.starlette import WindlassLifespan, client_of

app = Starlette(lifespan=WindlassLifespan(), routes=[...])
```
"""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from windlass.assembly.backend import ServerOptions
from windlass.assembly.server import ensure_admin_token, running_services
from windlass.dashboard.page import Page
from windlass.domain.config import Config
from windlass.domain.values.errors import Conflict, needs
from windlass.domain.values.quantities import DurationLike
from windlass.front import AsyncClient, get_test_client
from windlass.server.app import create_app

with needs("fastapi"):
    from starlette.requests import HTTPConnection
    from starlette.types import ASGIApp, Receive, Scope, Send

STATE: Final = "windlass"  # the attribute of the application's state

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


class WindlassApi:
    """The server of Windlass as an ASGI application, to be mounted below a path.

    It has all of a server: engine, loops and API, with the same tokens and rights. Workers and
    clients use the address of the path: `https://shop.example/windlass`. It answers while its
    lifespan runs: give it to `WindlassLifespan(api=...)`. The first admin token is written to
    `admin-token` in the folder `data`. Browsers get the dashboard there, unless `dashboard` is
    False. Limits of connections are those of the server around it. It logs warnings to standard
    error, unless the application has configured structlog.
    """

    def __init__(
        self,
        store: str,
        blobs: str,
        data: Path | str,
        *,
        config: Config | None = None,
        imports: Collection[str] = (),
        names: Collection[str] = (),
        dashboard: bool = True,
    ) -> None:
        self._page = Page() if dashboard else None
        self.token: str | None = None  # of the admin, while it runs
        self._data = Path(data)
        self._names = names
        self._options = ServerOptions(
            store=store, blobs=blobs, config=config or Config(), imports=tuple(imports),
            data=self._data,
        )  # fmt: skip
        self._app: Any = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the server; it answers within this block."""
        from windlass.embedded.opening import log_warnings_only  # only needed by servers

        log_warnings_only()
        self._data.mkdir(parents=True, exist_ok=True)
        async with running_services(self._options) as services:
            self.token = await ensure_admin_token(services, self._token_file())
            self._app = create_app(services, self._names)
            try:
                yield
            finally:
                self._app = self.token = None
                services.stop_waiting()

    def _token_file(self) -> Path:
        """Returns the token file that servers and commands share; renames an old `admin.token`."""
        file, old = self._data / "admin-token", self._data / "admin.token"
        if old.exists() and not file.exists():
            old.rename(file)
        return file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            raise Conflict("not_running", "the API answers while its lifespan runs")
        if self._page is not None and self._page.answers(scope):
            await self._page(scope, receive, send)
        else:
            await self._app(_below(scope), receive, send)


def _below(scope: Scope) -> Scope:
    """Returns the request as the API expects it: with a path that begins at its own root."""
    root = str(scope.get("root_path", ""))
    path = str(scope["path"])
    if not root or not path.startswith(root):
        return scope
    own = path[len(root) :] or "/"
    return {**scope, "path": own, "raw_path": own.encode(), "root_path": ""}


class WindlassLifespan:
    """The lifespan of an application that uses Windlass: `FastAPI(lifespan=WindlassLifespan())`.

    It opens an `AsyncClient` at the start and closes it at the end. The client finds its server
    as `windlass.AsyncClient()` does, or by `server` and `token`; a submission may take `timeout` in
    all, and waits in the folder `spool`, if one is given, when no server takes it in that time. A
    given `client` is used as it is. `api` is a mounted `WindlassApi` to run. `then` is a lifespan
    of your own, which runs inside.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        *,
        timeout: DurationLike | None = None,
        spool: str | Path | None = None,
        client: AsyncClient | None = None,
        api: WindlassApi | None = None,
        then: Lifespan | None = None,
    ) -> None:
        self._client = client
        self._make: Callable[[], AsyncClient] = partial(
            AsyncClient, server, token, timeout=timeout, spool=spool,
            on_unavailable="spool" if spool else "raise",
        )  # fmt: skip
        self._needs_client = api is None or server is not None
        self._api = api
        self._then = then

    @asynccontextmanager
    async def __call__(self, app: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            if self._api is not None:
                await stack.enter_async_context(self._api.running())
            if self._client is not None:
                app.state.windlass = self._client
            elif self._needs_client:
                app.state.windlass = await stack.enter_async_context(self._make())
            kept = None
            if self._then is not None:
                kept = await stack.enter_async_context(self._then(app))
            yield kept


def client_of(connection: HTTPConnection) -> AsyncClient:
    """Returns the client of the application that a request belongs to.

    In a test with the fixture `windlass` it is that of the test.
    """
    test = get_test_client()
    if test is not None:
        return AsyncClient(service=test.as_async().service)
    found = getattr(connection.app.state, STATE, None)
    if not isinstance(found, AsyncClient):
        raise Conflict("no_client", "give the application lifespan=WindlassLifespan()")
    return found


__all__ = ["ASGIApp", "WindlassApi", "WindlassLifespan", "client_of"]
