"""The few things plain ASGI routes share."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from windlass.domain.values.errors import InvalidInput

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

_encode = msgspec.json.Encoder().encode


async def read_body(receive: Receive, limit: int) -> bytes:
    """The whole body; one over the limit is refused before it is read to its end."""
    first = await receive()
    body: bytes = first.get("body", b"")
    while first.get("more_body"):
        first = await receive()
        body += first.get("body", b"")
        if len(body) > limit:
            break
    if len(body) > limit:
        raise InvalidInput("body", f"at most {limit} bytes", f"more than {limit} bytes")
    return body


async def send_json(
    send: Send, status: int, value: Any, headers: Mapping[str, str] | None = None
) -> None:
    """Answer with JSON."""
    body = _encode(value)
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    fields += [(name.lower().encode(), text.encode()) for name, text in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})
