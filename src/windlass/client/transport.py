"""HTTP as the client and the agents use it: typed messages in and out, errors as our own."""

import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

import httpx
import msgspec

from windlass.domain.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    Overloaded,
    StoreUnavailable,
    Unreachable,
    WindlassError,
)

T = TypeVar("T")

CONNECT_SECONDS = 5.0

_encode = msgspec.json.Encoder().encode


class ServerError(WindlassError):
    """The server answered with an error that has no type of its own here."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status = status
        self.code = code

    @property
    def message(self) -> str:
        return str(self.args[2])


class Transport:
    """One server behind one address, with one token."""

    def __init__(
        self, server: str, token: str | None = None, *, trust: ssl.SSLContext | None = None
    ) -> None:
        self.server = server.rstrip("/")
        self.token = token
        try:
            self._http = httpx.AsyncClient(
                base_url=self.server,
                timeout=httpx.Timeout(60.0, connect=CONNECT_SECONDS),
                limits=httpx.Limits(max_connections=100, max_keepalive_connections=20),
                verify=trust if trust is not None else True,
            )
        except httpx.InvalidURL:
            raise InvalidInput("server", "an address such as http://host:7420", server) from None

    async def call(
        self,
        method: str,
        path: str,
        answer: type[T],
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> T:
        """Send a message and decode the answer; errors of the server are raised."""
        content = None if body is None else _encode(body)
        response = await self._send(method, path, content, query, timeout)
        return msgspec.json.decode(response.content, type=answer)

    async def send_bytes(
        self, method: str, path: str, data: Any, *, query: Mapping[str, Any] | None = None
    ) -> bytes:
        """Send raw bytes, or a stream of them."""
        kind = {"Content-Type": "application/octet-stream"}
        response = await self._send(method, path, data, query, None, kind)
        return response.content

    async def call_bytes(
        self,
        method: str,
        path: str,
        answer: type[T],
        data: Any,
        *,
        query: Mapping[str, Any] | None = None,
    ) -> T:
        """Send raw bytes and decode the answer."""
        return msgspec.json.decode(
            await self.send_bytes(method, path, data, query=query), type=answer
        )

    async def stream(
        self, path: str, query: Mapping[str, Any] | None = None
    ) -> AsyncIterator[bytes]:
        """The bytes of an answer, as they come."""
        try:
            async with self._http.stream(
                "GET", path, params=_clean(query), headers=self._headers(), timeout=None
            ) as response:
                if response.status_code >= 400:
                    await response.aread()
                    raise error_of(response)
                async for chunk in response.aiter_bytes():
                    yield chunk
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(
        self,
        method: str,
        path: str,
        content: Any,
        query: Mapping[str, Any] | None,
        timeout: float | None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        sent = {**self._headers(), **(headers or {"Content-Type": "application/json"})}
        limit = httpx.USE_CLIENT_DEFAULT if timeout is None else timeout
        try:
            response = await self._http.request(
                method, path, content=content, params=_clean(query), headers=sent, timeout=limit
            )
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        if response.status_code >= 400:
            raise error_of(response)
        return response

    def _headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    def _unreachable(self, error: httpx.TransportError) -> Unreachable:
        why = str(error) or type(error).__name__
        return Unreachable(f"no server at {self.server}: {why}; start one with `windlass up`")


def _clean(query: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (query or {}).items() if value is not None}


def error_of(response: httpx.Response) -> WindlassError:
    """Our own error from the body of an answer."""
    try:
        body = msgspec.json.decode(response.content)["error"]
        code, message = str(body["code"]), str(body["message"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return ServerError(response.status_code, "http", response.text[:200])
    after = body.get("retry_after_ms")
    if code == "invalid_input":
        field, expected = body.get("field", "request"), body.get("expected", message)
        return InvalidInput(str(field), str(expected), body.get("got"))
    if response.status_code == 404 and "got" in body:
        return NotFound(str(body.get("field", "object")), body["got"])
    if response.status_code == 409:
        return Conflict(code, message, after)
    if code == "overloaded":
        return Overloaded(int(after or 1_000))
    if response.status_code == 503:
        return StoreUnavailable(message, bool(body.get("outcome_unknown", False)))
    return ServerError(response.status_code, code, message)
