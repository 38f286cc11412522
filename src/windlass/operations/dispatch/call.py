"""One call of an operation, as the operation sees it, and what it may answer beside values."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from windlass.domain.access.rights import NO_TOKEN, Identity
from windlass.domain.values.errors import InvalidInput
from windlass.operations.dispatch.errors import Unauthorized

if TYPE_CHECKING:
    from windlass.operations.services import Services


class Call:
    """The caller, what operations work with, and what comes beside their arguments.

    This one comes from the program itself; the server's `HttpCall` knows its request as well.
    Operations set `about` to what the audit log calls the object, in words and without secrets.
    """

    __slots__ = ("_content", "about", "caller", "services")

    services: "Services"

    def __init__(
        self,
        services: "Services",
        caller: Identity | None,
        content: AsyncIterator[bytes] | None = None,
    ) -> None:
        """`content` is a body of bytes, such as that of a file."""
        self.about = ""
        self.services = services
        self.caller = caller
        self._content = content

    @property
    def who(self) -> Identity:
        """The caller; raises `Unauthorized` if the call has no valid token."""
        if self.caller is None:
            raise Unauthorized(NO_TOKEN)
        return self.caller

    @property
    def has_token(self) -> bool:
        """Whether the call presents a token, valid or not."""
        return False

    @property
    def source(self) -> str:
        """The address that the call comes from."""
        return ""

    async def identify(self) -> Identity | None:
        """Returns the caller as the store knows it now, not as it was some seconds ago."""
        return self.caller

    def header(self, name: bytes) -> str:
        """Returns a header by its lower-case name; empty if there is none."""
        del name
        return ""

    def spend(self) -> None:
        """Counts the call as a costly one; raises `TooManyRequests`."""

    async def body(self) -> bytes:
        """Returns the whole body."""
        return b"".join([chunk async for chunk in self.stream()])

    def stream(self) -> AsyncIterator[bytes]:
        """Yields the body as it arrives."""
        if self._content is None:
            raise InvalidInput("body", "bytes", None)
        return self._content

    async def unless_gone(self, work: Awaitable[Any]) -> Any:
        """Returns the result of `work`; cancels it and returns None if the caller leaves."""
        return await work

    def check_certificate(self, worker: str) -> None:
        """Raises `Forbidden` if the caller must prove this worker's name and does not."""


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
