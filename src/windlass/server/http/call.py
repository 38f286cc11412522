"""One request, as operations and the server's own routes see it, and the caller's token.

The token is looked at again while the request lasts. Nobody keeps reading, writing or waiting with
a token that was revoked, has expired, or belongs to a worker that was shut out.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, Final

import structlog

from windlass.domain.access.rights import Action, Identity, may
from windlass.domain.values.errors import WindlassError
from windlass.engine.fleet.enrolment import worker_token_name
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.errors import Forbidden
from windlass.operations.rights import authorize
from windlass.ports.loop_time import pass_time
from windlass.server.connections.guarded_http import CONNECTION
from windlass.server.http.asgi import Receive, Scope, read_body, stream_body, unless_disconnected
from windlass.server.http.authentication import bearer
from windlass.server.http.callers import Turn, source_of
from windlass.server.services import ServerServices

RECHECK_SECONDS: Final = 2.0  # between two looks at the token

log = structlog.get_logger("windlass.server")


class TokenWatch:
    """Knows whether the token of one request still gives its caller the right to it."""

    __slots__ = ("_action", "_caller", "_path", "_services", "_token")

    def __init__(
        self, services: ServerServices, scope: Scope, caller: Identity, action: Action
    ) -> None:
        self._services = services
        self._caller = caller
        self._action = action
        self._path: str = scope["path"]
        self._token = bearer(scope["headers"]) or ""

    async def until_refused(self) -> None:
        """Returns when the token was revoked or changed, has expired, or was shut out."""
        while may(await self._identify(), self._action):
            await pass_time(RECHECK_SECONDS)
        log.info("cut_off", path=self._path, error="its token is no longer valid")

    async def check(self) -> None:
        """Raises `Unauthorized` or `Forbidden` if the token is no longer good for this."""
        authorize(await self._identify(), self._action)

    async def checked(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yields the chunks of a body, as long as the token is valid."""
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        async for chunk in chunks:
            if loop.time() - looked_at >= RECHECK_SECONDS:
                looked_at = loop.time()
                await self.check()
            yield chunk

    async def _identify(self) -> Identity | None:
        """Returns the caller as it is now; None if the token stands for it no more."""
        before = self._caller
        try:
            most_ms = int(RECHECK_SECONDS * 1000)
            now = await self._services.access.identify(self._token, most_ms)
        except WindlassError:
            return before  # a store that does not answer revokes nothing
        same = now is not None and now._replace(shut_out=before.shut_out) == before
        return now if same else None


class HttpCall(Call):
    """A call over HTTP, with its request and what only a server has."""

    __slots__ = ("_action", "_body_limit", "_receive", "_scope", "_turn")

    services: ServerServices

    def __init__(
        self,
        services: ServerServices,
        caller: Identity | None,
        scope: Scope,
        receive: Receive,
        body_limit: int,
        action: Action,
        turn: Turn,
    ) -> None:
        """`turn` counts the bytes of a body that stays in memory, and what else it costs."""
        super().__init__(services, caller)
        self._action = action
        self._body_limit = body_limit
        self._turn = turn
        self._scope = scope
        self._receive = receive

    @property
    def has_token(self) -> bool:
        """Whether the request presents a token, valid or not."""
        return bearer(self._scope["headers"]) is not None

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]:
        """The headers of the request, with lower-case names."""
        found: Sequence[tuple[bytes, bytes]] = self._scope["headers"]
        return found

    @property
    def source(self) -> str:
        """The address that the request comes from."""
        return source_of(self._scope)

    @property
    def is_secure(self) -> bool:
        """Whether the request came over TLS, to us or to the proxy in front."""
        if self._scope.get("scheme") == "https":
            return True
        return self.header(b"x-forwarded-proto").lower() == "https"

    async def identify(self) -> Identity | None:
        """Returns the caller as the store knows it now, not as it was some seconds ago."""
        token = bearer(self._scope["headers"])
        return None if token is None else await self.services.access.identify(token, 0)

    def header(self, name: bytes) -> str:
        """Returns a header by its lower-case name; empty if there is none."""
        for key, value in self._scope["headers"]:
            if key == name:
                return str(value, "latin-1")
        return ""

    def watch(self, caller: Identity) -> TokenWatch:
        """Returns what looks at the caller's token again."""
        return TokenWatch(self.services, self._scope, caller, self._action)

    def spend(self) -> None:
        """Counts the request as a costly one; raises `TooManyRequests`."""
        self._turn.spend()

    async def body(self) -> bytes:
        """Returns the whole body."""
        return await read_body(self._scope, self._receive, self._body_limit, self._turn.hold)

    def stream(self) -> AsyncIterator[bytes]:
        """Yields the body as it arrives, while the caller's token is valid."""
        chunks = stream_body(self._scope, self._receive, self._body_limit)
        return chunks if self.caller is None else self.watch(self.caller).checked(chunks)

    async def unless_gone(self, work: Awaitable[Any]) -> Any:
        """Returns the result of `work`; cancels it and returns None if the client leaves."""
        return await unless_disconnected(work, self._receive)

    def check_certificate(self, worker: str) -> None:
        """Raises `Forbidden` if the connection must prove this worker's name and does not."""
        check_certificate(self._scope, worker_token_name(worker))


def check_certificate(scope: Scope, token_name: str) -> None:
    """Raises `Forbidden` unless the client's certificate has the name of a worker's token.

    Only a server with an authority for clients asks for certificates.
    """
    connection = scope.get(CONNECTION)
    if connection is None or not connection.needs_certificate:
        return
    if token_name not in map(worker_token_name, connection.certificate_names):
        raise Forbidden(
            "this server wants a certificate in the worker's name: start the worker with "
            "--client-cert and --client-key"
        )
