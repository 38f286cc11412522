"""What operations may return beside plain values."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
BINARY: Final = "application/octet-stream"
EVENTS: Final = "text/event-stream; charset=utf-8"


class Reply(NamedTuple, Generic[T]):
    """A value with a status other than the route's."""

    value: T
    status: int


class Complete(NamedTuple):
    """A reply whose body is known."""

    status: int
    body: bytes
    media_type: str = JSON
    headers: Mapping[str, str] = {}
    cookies: tuple[str, ...] = ()


class Stream(NamedTuple):
    """Bytes that are sent as they become known."""

    chunks: AsyncIterator[bytes]
    media_type: str
    headers: Mapping[str, str] = {}
    endless: bool = False  # follows what grows; a server that stops cuts it off
    until_refused: Callable[[], Awaitable[None]] | None = None  # returns once the caller may not


class ServerSentEvent(NamedTuple):
    """One event of an event stream, or a comment that keeps the connection alive."""

    id: str = ""
    event: str = ""
    data: bytes = b""
    comment: str = ""

    def encode(self) -> bytes:
        """Returns the event as it goes over the wire."""
        if self.comment:
            return b": %b\r\n\r\n" % self.comment.encode()
        fields = (self.id.encode(), self.event.encode(), self.data)
        return b"id: %b\r\nevent: %b\r\ndata: %b\r\n\r\n" % fields
