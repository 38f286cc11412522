"""Passes calls of the API on to a server, for a page in an application of a user."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar
from yarl import URL

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Field = tuple[bytes, bytes]

# What belongs to one connection, and is not passed on.
OF_CONNECTION: Final = frozenset({
    b"connection", b"expect", b"keep-alive", b"proxy-authenticate", b"proxy-authorization",
    b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade",
})  # fmt: skip
OURS: Final = frozenset({b"host", b"origin"})  # the server has another name than this application
# Answers may take as long as somebody waits for them: streams and long polls.
PATIENCE: Final = ClientTimeout(total=None, sock_connect=10.0)
AWAY: Final = b'{"error":{"code":"unreachable","message":"the server of Windlass does not answer"}}'
ASTRAY: Final = b'{"error":{"code":"not_found","message":"expected a path without . and .. in it"}}'
DOTS: Final = frozenset({".", ".."})


class Proxy:
    """Sends requests to one server, as if the page were there."""

    def __init__(self, server: str) -> None:
        """`server` is its address, as clients use it."""
        found = urlsplit(server)
        if found.scheme not in ("http", "https") or not found.netloc:
            raise ValueError(f"expected server to be an http or https address, got {server!r}")
        self._origin = f"{found.scheme}://{found.netloc}"
        self._prefix = found.path.rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes one request on, and its answer back as it comes; ends with either side."""
        if not DOTS.isdisjoint(unquote(scope["path"]).split("/")):
            # A proxy in front of the server may read such a path as a different one.
            await _send(send, 404, [(b"content-type", b"application/json")], ASTRAY)
            return
        body = _Body(scope, receive)
        asking = asyncio.ensure_future(self._pass_on(scope, body, send))
        leaving = asyncio.ensure_future(body.until_disconnected())
        try:
            await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (asking, leaving):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _pass_on(self, scope: Scope, body: "_Body", send: Send) -> None:
        target = URL(self._origin + self._prefix + path_and_query(scope), encoded=True)
        fields = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in self._asked(scope)]
        begun = False
        # A session for each request: we do not learn when the application ends.
        try:
            async with (
                ClientSession(
                    timeout=PATIENCE, cookie_jar=DummyCookieJar(), auto_decompress=False
                ) as session,
                session.request(
                    scope["method"], target, headers=fields, data=body.chunks(),
                    allow_redirects=False, skip_auto_headers=("Accept", "User-Agent"),
                ) as answer,
            ):  # fmt: skip
                begun = True
                await _send_on(answer, scope, send)
        except (ClientError, OSError):
            if not begun:
                fields_away = [(b"content-type", b"application/json")]
                await _send(send, 502, fields_away, AWAY)
            # Otherwise the answer is cut off, so the client knows that there is more.

    def _asked(self, scope: Scope) -> Iterator[Field]:
        """Returns the headers of a request.

        The server refuses requests of pages of other sites. To it, a page of this application is
        its own, and every other is of another site.
        """
        given = dict(scope["headers"])
        for name, value in scope["headers"]:
            if name not in OF_CONNECTION and name not in OURS:
                yield name, value
        origin = given.get(b"origin")
        if origin is not None:
            own = urlsplit(origin.decode("latin-1").lower()).netloc.encode("latin-1")
            is_own = own != b"" and own == given.get(b"host", b"").lower()
            yield b"origin", self._origin.encode() if is_own else b"null"
        client = scope.get("client")
        if client:
            yield b"x-forwarded-for", str(client[0]).encode()


class _Body:
    """The body of a request, and after it the end of the connection."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        names = {name for name, _ in scope["headers"]}
        self._exists = bool(names & {b"content-length", b"transfer-encoding"})
        self._receive = receive
        self._is_read = asyncio.Event()

    def chunks(self) -> AsyncIterator[bytes] | None:
        """Returns the body, as it comes; None if there is none."""
        if self._exists:
            return self._chunks()
        self._is_read.set()
        return None

    async def until_disconnected(self) -> None:
        """Returns when the client has closed the connection."""
        await self._is_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client has closed the connection")
            yield message.get("body", b"")
            if not message.get("more_body"):
                self._is_read.set()
                return


async def _send_on(answer: ClientResponse, scope: Scope, send: Send) -> None:
    is_secure = scope.get("scheme") == "https"
    fields = [
        (name.lower(), secured(value) if is_secure and name.lower() == b"set-cookie" else value)
        for name, value in answer.raw_headers
        if name.lower() not in OF_CONNECTION
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": fields})
    async for chunk in answer.content.iter_any():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _send(send: Send, status: int, fields: list[Field], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


def secured(cookie: bytes) -> bytes:
    """Returns a cookie that browsers send over TLS only."""
    return cookie if b"; secure" in cookie.lower() else cookie + b"; Secure"


def path_and_query(scope: Scope) -> str:
    """Returns what was asked for, as it was written, without the prefix of this application."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    path = raw.partition(b"?")[0].decode("latin-1")
    root = quote(scope.get("root_path", "").rstrip("/"))
    if root and path.startswith(root):
        path = path[len(root) :]
    path = "/" + path.removeprefix("/")  # else it would be a part of the server's name
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{path}?{query}" if query else path
