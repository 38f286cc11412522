"""Calls a server over HTTP: sends and returns typed messages, raises Windlass errors.

It uses aiohttp, which costs a quarter of the CPU of httpx (decisions/005).
"""

import asyncio
import io
import os
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Mapping
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from windlass.client.calls import Answer, Content, query_pairs
from windlass.client.plain_sockets import NoAnswer, PlainSockets
from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    Lost,
    NotFound,
    Overloaded,
    StoreUnavailable,
    TooManyRequests,
    Unreachable,
    WindlassError,
    WrongServer,
    read_invalid_input,
)

T = TypeVar("T")

CONNECT_SECONDS = 5.0
CALL_SECONDS = 60.0
CONNECTIONS = 100
MAX_RETRY_SECONDS = 60  # of what servers and proxies ask for
# Shorter than a server's patience with an idle connection, so that it is never closed
# under a request that has just been sent.
IDLE_SECONDS = 30.0
SAFE = "/%!$&'()*+,;=:@~"  # characters that a path keeps unquoted
UNAUTHORIZED = 401
HTTP_PORT = 80
CHECK = "check the address and the port, which `windlass up` and `windlass server` print"
TLS_ONLY = "this port speaks https, so use"
# Answers of proxies; other answers without our type come from other web servers.
OF_PROXIES = frozenset({UNAUTHORIZED, 403, 407, 408, 413, 414, 431})
MARK = "Windlass-Mark"  # a header of answers; sent back, it shows whether commits were lost
REFUSAL = "this needs a valid token"  # how the answer without one begins
WARNED_OF = 2**20  # bytes; aiohttp warns about larger bodies that are not files

# What TLS libraries say about an answer that is not TLS.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNEXPECTED_MESSAGE")

_encode = msgspec.json.Encoder().encode


class ServerError(WindlassError):
    """An error answer of no known type."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status = status
        self.code = code

    @property
    def message(self) -> str:
        return str(self.args[2])


class _OpenSession(NamedTuple):
    """The connections of one event loop."""

    session: aiohttp.ClientSession
    life: AsyncGenerator[None, None]
    process: int  # which opened it


_INHERITED: Final[list[_OpenSession]] = []


async def _until_closed(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    """Closes a session when it is closed itself: `asyncio.run` does so when its loop ends."""
    try:
        yield
    finally:
        await session.close()


class Transport:
    """One server, or several over one store, with one token.

    `server` is one address or several, comma-separated; if one does not answer, the next is tried.
    With `socket`, all calls go through that Unix socket. Each event loop has its own connections.
    """

    def __init__(
        self,
        server: str,
        token: str | None = None,
        *,
        trust: ssl.SSLContext | None = None,
        socket: str | None = None,
        renew: Callable[[str], Awaitable[str | None]] | None = None,
    ) -> None:
        """`renew` gets a token that was refused, and returns one to use instead, if any."""
        self._servers = [one.strip().rstrip("/") for one in server.split(",")]
        self.addresses = frozenset(self._servers)
        self.token = token
        self._trust = trust
        self._socket = socket
        self._renew = renew
        self._heard = False  # whether any address has spoken HTTP
        self._mark: str | None = None  # what a server said that it has committed, see `MARK`
        self._sessions: dict[asyncio.AbstractEventLoop, _OpenSession] = {}
        for one in self._servers:
            if not _is_address(one):
                raise InvalidInput("server", "an address such as http://host:7420", one)
        self._plain: dict[str, PlainSockets] = {}  # by address
        # Looked up once: aiohttp would use two threads for every call.
        self._proxies = {one: None if socket else _proxy_for(one) for one in self._servers}

    @property
    def server(self) -> str:
        """Returns the address that the next call uses."""
        return self._servers[0]

    @property
    def installation(self) -> Hashable:
        """The addresses of its servers."""
        return self.addresses

    @property
    def may_lose_answers(self) -> bool:
        """True: a connection may break after the call."""
        return True

    async def open(self) -> None:
        """Does nothing: connections are made as they are needed."""

    async def call(
        self,
        method: str,
        path: str,
        answer: type[T],
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        content: Content | None = None,
    ) -> T:
        """Sends a message, or raw `content` instead, and returns the decoded answer.

        Raises errors that the server reports.
        """
        kind = "application/json" if content is None else "application/octet-stream"
        sent = _encode(body) if content is None and body is not None else content
        reply = await self._send(method, path, sent, query, kind, timeout)
        return self._decoded(reply.content, answer)

    def post_from_here(self, path: str, answer: type[T], body: Any, seconds: float | None) -> T:
        """Sends a message without an event loop, returns the decoded answer; raises `NoAnswer`.

        The first call goes another way, which explains what is wrong with an address.
        """
        server = self.server
        if not self._heard or self._socket is not None or self._proxies[server] or "@" in server:
            raise NoAnswer
        sockets = self._plain.get(server)
        if sockets is None:
            sockets = self._plain.setdefault(server, self._plain_sockets(server))
        headers = self._headers() | {"Content-Type": "application/json"}
        limit = CALL_SECONDS if seconds is None else seconds
        reply = sockets.post(path, _encode(body), headers, limit)
        if reply.status >= 300:
            raise NoAnswer
        self._mark = reply.headers.get(MARK.lower(), self._mark)
        try:
            return msgspec.json.decode(reply.content, type=answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise NoAnswer from error

    def _plain_sockets(self, server: str) -> PlainSockets:
        if server.lower().startswith("http:"):
            return PlainSockets(server, None)
        return PlainSockets(server, self._trust or ssl.create_default_context())

    async def get(self, path: str, query: Mapping[str, Any]) -> Answer:
        """Returns a whole answer of any type, with its headers."""
        return await self._send("GET", path, None, query, "application/json")

    def _decoded(self, content: bytes, answer: type[T]) -> T:
        try:
            return msgspec.json.decode(content, type=answer)
        except msgspec.ValidationError as error:
            why = f"it sent another answer than this version expects ({error}); {CHECK}"
            raise WrongServer(self.server, why) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WrongServer(self.server, f"its answer is no JSON; {CHECK}") from error

    async def stream(
        self, path: str, query: Mapping[str, Any] | None = None, kind: str | None = None
    ) -> AsyncIterator[bytes]:
        """Yields the bytes of an answer, of this type of content, as they arrive."""
        try:
            async for chunk in self._stream(path, query, kind):
                yield chunk
        except ServerError as error:
            if error.status != UNAUTHORIZED or not await self._renewed():
                raise
            async for chunk in self._stream(path, query, kind):
                yield chunk

    async def _stream(
        self, path: str, query: Mapping[str, Any] | None, kind: str | None
    ) -> AsyncIterator[bytes]:
        limit = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS)
        session = await self._session()
        try:
            async with session.get(
                self._url(path, query), headers=self._headers(), timeout=limit,
                allow_redirects=False, proxy=self._proxies[self.server],
            ) as response:  # fmt: skip
                if response.status >= 300:
                    answer = Answer(response.status, await response.read(), response.headers)
                    raise error_of(answer, self.server)
                if kind not in (None, response.content_type):
                    what = f"it answers with {response.content_type}; {CHECK}"
                    raise WrongServer(self.server, what)
                async for chunk in response.content.iter_any():
                    yield chunk
        except (aiohttp.ClientError, TimeoutError) as error:
            unreachable = await self._explained(error, session)
            self._turn_to_next()
            raise unreachable from error

    async def close(self) -> None:
        """Closes the connections, also those of other loops."""
        while self._plain:
            self._plain.popitem()[1].close()
        own = asyncio.get_running_loop()
        while self._sessions:
            loop, opened = self._sessions.popitem()
            if opened.process != os.getpid():
                # It shares its sockets with the parent of a fork, where its loop goes on, so
                # nothing may close it here, not even the garbage collector.
                _INHERITED.append(opened)
            elif loop is own:
                await opened.life.aclose()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(opened.session.close(), loop)
                await asyncio.wrap_future(closing)

    async def _session(self) -> aiohttp.ClientSession:
        """Returns the session of the running loop, which its first call opens."""
        loop = asyncio.get_running_loop()
        opened = self._sessions.get(loop)
        if opened is None:
            session = aiohttp.ClientSession(
                connector=self._connector(), cookie_jar=aiohttp.DummyCookieJar()
            )
            life = _until_closed(session)
            opened = self._sessions[loop] = _OpenSession(session, life, os.getpid())
            await anext(opened.life)
            for other in [one for one in self._sessions if one.is_closed()]:
                del self._sessions[other]
        return opened.session

    def _connector(self) -> aiohttp.BaseConnector:
        if self._socket is not None:
            return aiohttp.UnixConnector(self._socket)
        return aiohttp.TCPConnector(
            limit=CONNECTIONS, keepalive_timeout=IDLE_SECONDS, ssl=self._trust or True
        )

    async def _send(
        self,
        method: str,
        path: str,
        content: Any,
        query: Mapping[str, Any] | None,
        kind: str,
        timeout: float | None = None,
    ) -> Answer:
        limit = CALL_SECONDS if timeout is None else timeout
        answer = await self._ask(method, path, content, query, kind, limit)
        # A refused request was not carried out, so it may be repeated with another token.
        if answer.status == UNAUTHORIZED and _is_whole(content) and await self._renewed():
            answer = await self._ask(method, path, content, query, kind, limit)
        if answer.status >= 300:
            raise error_of(answer, self.server)
        return answer

    async def _ask(
        self,
        method: str,
        path: str,
        content: Any,
        query: Mapping[str, Any] | None,
        kind: str,
        seconds: float,
    ) -> Answer:
        """Returns the answer of the first server that can be reached."""
        tries_left = len(self._servers)
        # An address that does not react leaves time for the others.
        connect = min(CONNECT_SECONDS, seconds / tries_left)
        clock = asyncio.get_running_loop()
        end = clock.time() + seconds
        while True:
            tries_left -= 1
            data = _as_file(content) if isinstance(content, bytes) else content
            session = await self._session()
            left = max(end - clock.time(), connect)  # aiohttp takes 0 for no limit
            limit = aiohttp.ClientTimeout(total=left, sock_connect=connect)
            try:
                async with session.request(
                    method, self._url(path, query), data=data, timeout=limit,
                    headers=self._headers() | {"Content-Type": kind}, allow_redirects=False,
                    proxy=self._proxies[self.server],
                ) as response:  # fmt: skip
                    self._heard = True
                    self._mark = response.headers.get(MARK, self._mark)
                    return Answer(response.status, await response.read(), response.headers)
            except (aiohttp.ClientError, TimeoutError) as error:
                unreachable = await self._explained(error, session)
                self._turn_to_next()
                # Only a request that no server received may go to another one.
                if unreachable.sent or not tries_left:
                    raise unreachable from error

    async def _renewed(self) -> bool:
        """Returns whether there is another token to try."""
        if self._renew is None or self.token is None:
            return False
        fresh = await self._renew(self.token)
        if fresh is None or fresh == self.token:
            return False
        self.token = fresh
        return True

    def _url(self, path: str, query: Mapping[str, Any] | None) -> URL:
        pairs = list(query_pairs(query))
        asked = f"?{urlencode(pairs)}" if pairs else ""
        return URL(f"{self.server}{quote(path, safe=SAFE)}{asked}", encoded=True)

    def _headers(self) -> dict[str, str]:
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return headers if self._mark is None else headers | {MARK: self._mark}

    async def _explained(self, error: Exception, session: aiohttp.ClientSession) -> Unreachable:
        """Returns the error for a failed call; checks an address that has never answered."""
        unreachable = self._unreachable(error, session)
        if self._heard or not unreachable.sent or isinstance(error, TimeoutError):
            return unreachable
        if self.server.startswith("http:") and self._socket is None and await self._has_tls():
            return WrongServer(self.server, f"{TLS_ONLY} {self.server.replace('http', 'https', 1)}")
        if isinstance(error, aiohttp.ClientResponseError):
            return WrongServer(self.server, f"it does not speak HTTP; {CHECK}")
        return unreachable

    async def _has_tls(self) -> bool:
        """Returns whether the address speaks TLS; its certificate does not matter."""
        parts = urlsplit(self.server)
        anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
        try:
            async with asyncio.timeout(CONNECT_SECONDS / 2):
                _, writer = await asyncio.open_connection(
                    parts.hostname, parts.port or HTTP_PORT, ssl=anyone
                )
        except (OSError, TimeoutError):
            return False
        writer.transport.abort()
        return True

    def _unreachable(self, error: Exception, session: aiohttp.ClientSession) -> Unreachable:
        """Returns the error for a failed call; raises `Conflict` if this client was closed."""
        if session.closed:
            raise Conflict("client_closed", "this client was closed during the call") from error
        if not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return Unreachable(f"lost the server at {self.server}: {_why(error)}", sent=True)
        if isinstance(error, aiohttp.ClientSSLError):
            return Unreachable(f"cannot use the server at {self.server}: {_why(error)}", sent=False)
        message = f"no server at {self.server}: {_why(error)}; start one with `windlass up`"
        return Unreachable(message, sent=False)

    def _turn_to_next(self) -> None:
        """Uses the next address from now on."""
        self._servers.append(self._servers.pop(0))


def _why(error: Exception) -> str:
    """Says briefly why a server could not be reached."""
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection broke in the middle of an answer"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        met = error.os_error
        if isinstance(met, ssl.SSLError):
            return _why_no_tls(met)
        if met.errno is not None and not isinstance(met, socket.gaierror):
            return os.strerror(met.errno)
        return str(met.strerror or met)
    why = error.strerror if isinstance(error, OSError) else None
    return why or str(error) or type(error).__name__


def _why_no_tls(error: ssl.SSLError) -> str:
    if error.reason in _NOT_TLS:
        return "it does not speak https there; try http://"
    return f"no secure connection ({(error.reason or str(error)).replace('_', ' ').lower()})"


def _proxy_for(server: str) -> str | None:
    """Returns the proxy that the environment sets for this address (HTTP_PROXY, NO_PROXY…)."""
    parts = urlsplit(server)
    if parts.hostname is None or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def error_of(response: Answer, server: str = "the address") -> WindlassError:
    """Returns the error that an answer reports."""
    try:
        body = msgspec.json.decode(response.content)["error"]
        code, message = str(body["code"]), str(body["message"])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return _foreign(response, server)
    after = body.get("retry_after_ms")
    after = after if isinstance(after, int) else None
    if code == "invalid_input":
        return read_invalid_input(body)
    if response.status == 410 and "got" in body:
        return Lost(str(body.get("field", "object")), body["got"], message)
    if response.status == 404 and "got" in body:
        return NotFound(str(body.get("field", "object")), body["got"], str(body.get("hint", "")))
    if response.status == 429:
        return TooManyRequests(int(after or _retry_after_ms(response)), message)
    if response.status == 409:
        return Conflict(code, message, after)
    if code == "overloaded":
        return Overloaded(int(after or _retry_after_ms(response)))
    if response.status in (503, 507):
        unavailable = StoreUnavailable(message, bool(body.get("outcome_unknown", False)))
        unavailable.code = code  # such as `disk_full`
        return unavailable
    if response.status == UNAUTHORIZED and message.startswith(REFUSAL):
        message = f"{message}; pass one as `token`, or set WINDLASS_TOKEN"
    return ServerError(response.status, code, message)


def _foreign(response: Answer, server: str) -> WindlassError:
    """Returns the error for an answer that no server of Windlass gives."""
    status = response.status
    if status == 429:  # from a proxy
        return TooManyRequests(_retry_after_ms(response))
    if status in OF_PROXIES:
        text = " ".join(response.content[:200].decode("utf-8", "replace").split())
        why = f"{server} answered {status}, as no Windlass does: a proxy before it, or {CHECK}"
        return ServerError(status, "http", f"{why}: {text}" if text else why)
    if 300 <= status < 400 and "Location" in response.headers:
        return WrongServer(server, f"it leads to {response.headers['Location'][:200]}; {CHECK}")
    if status < 500 or status in (501, 505):
        if status == 400 and b"https" in response.content.lower():
            return WrongServer(server, f"{TLS_ONLY} {server.replace('http:', 'https:', 1)}")
        return WrongServer(server, f"it answers {status}; {CHECK}")
    # From a proxy, or from a server that is being stopped.
    return StoreUnavailable(f"no server behind {server} answers ({status})", True)


def _retry_after_ms(response: Answer) -> int:
    """Returns how long to wait before the next try, if the answer says so."""
    text = response.headers.get("Retry-After", "")
    seconds = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
    return min(seconds, MAX_RETRY_SECONDS) * 1_000


def _is_whole(content: Any) -> bool:
    """Returns whether a body can be sent again."""
    return content is None or isinstance(content, bytes)


def _as_file(content: bytes) -> bytes | io.BytesIO:
    """Wraps large bodies in a file, since aiohttp warns about large bytes."""
    return io.BytesIO(content) if len(content) > WARNED_OF else content
