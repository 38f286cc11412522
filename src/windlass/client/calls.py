"""How a client's calls reach the operations of a scheduler: over HTTP, or in its own process."""

from collections.abc import AsyncIterator, Collection, Hashable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Answer(NamedTuple):
    """A status, a body and the headers."""

    status: int
    content: bytes
    headers: Mapping[str, str] = {}


Content = bytes | AsyncIterator[bytes]


class Calls(Protocol):
    """Calls operations by method and path; raises the errors of `windlass.domain.values.errors`.

    `windlass.client.transport` calls a server, `windlass.embedded.in_process` the engine in this
    process.
    """

    @property
    def installation(self) -> Hashable:
        """Identifies the store: where it is equal, job ids mean the same jobs."""

    @property
    def addresses(self) -> Collection[str]:
        """Where its jobs are, for people."""

    @property
    def server(self) -> str:
        """The address that the next call uses."""

    @property
    def may_lose_answers(self) -> bool:
        """Whether a call may have been carried out although it failed."""

    async def open(self) -> None:
        """Gets ready; the first call does so too."""

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
        """Sends a message, or raw `content` instead, and returns the answer."""

    async def get(self, path: str, query: Mapping[str, Any]) -> Answer:
        """Returns a whole answer of any type, with its headers."""

    def stream(
        self, path: str, query: Mapping[str, Any] | None = None, kind: str | None = None
    ) -> AsyncIterator[bytes]:
        """Yields the bytes of an answer, of this type of content, as they arrive."""

    async def close(self) -> None: ...


def query_pairs(query: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yields the parameters of a query as text, a list item by item; None is left out."""
    for name, value in (query or {}).items():
        for one in value if isinstance(value, list | tuple) else (value,):
            if one is not None:
                yield name, _text(one)


def _text(value: Any) -> str:
    """Writes a value for a query, with booleans as `true` and `false`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
