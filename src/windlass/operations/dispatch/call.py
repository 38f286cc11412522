"""One call of an operation, as the operation sees it."""

from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any

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
