"""Calls operations in this process: no HTTP, no JSON, no server.

It does what a server does for a request: it finds the operation by method and path, makes its
arguments, checks the right and calls it. The caller is the program itself, as an admin: there is
no token, and whoever can open the store sees every namespace.
"""

from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import aclosing
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import msgspec

from windlass.assembly.backend import make_services
from windlass.client.calls import Answer, Content, query_pairs
from windlass.domain.access.rights import Identity, Role
from windlass.domain.values.errors import Conflict, read_invalid_input
from windlass.embedded.node import Node
from windlass.operations.all_routes import ALL
from windlass.operations.dispatch.call import Call, Complete, Reply, Stream
from windlass.operations.dispatch.errors import Malformed, NoRoute
from windlass.operations.dispatch.table import Table, carry_out
from windlass.operations.rights import authorize
from windlass.operations.services import Services

T = TypeVar("T")

OWN: Final = Identity(0, "embedded", Role.ADMIN)

_encode = msgspec.json.Encoder().encode


class InProcess:
    """Implements `Calls`; the first call starts the engine."""

    may_lose_answers = False
    server = "embedded"
    addresses = (server,)

    def __init__(self, node: Node) -> None:
        self._node = node
        self._services: Services | None = None

    @property
    def installation(self) -> Hashable:
        """This object: every embedded client has its own engine."""
        return self

    async def open(self) -> None:
        """Starts the engine."""
        await self.services()

    async def services(self) -> Services:
        """Returns what operations work with; starts the engine if that is needed."""
        backend = self._node.backend
        if backend is None:
            backend = await self._node.open()
        known = self._services
        if known is None or known.engine is not backend.engine:
            known = self._services = make_services(backend, Path())
        return known

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
        """Returns what the operation answers, as it is."""
        del answer, timeout
        value: T = await self._answer(method, path, query, body, content)
        return value

    async def get(self, path: str, query: Mapping[str, Any]) -> Answer:
        """Returns a whole answer of any type, with its headers."""
        value = await self._answer("GET", path, query)
        if isinstance(value, Stream):
            content = b"".join([chunk async for chunk in value.chunks])
            return Answer(200, content, value.headers)
        if isinstance(value, Complete):
            return Answer(value.status, value.body, value.headers)
        return Answer(200, value if isinstance(value, bytes) else _encode(value))

    async def stream(
        self, path: str, query: Mapping[str, Any] | None = None, kind: str | None = None
    ) -> AsyncIterator[bytes]:
        """Yields the bytes of an answer as they become known."""
        del kind
        value = await self._answer("GET", path, query)
        assert isinstance(value, Stream), path
        async with aclosing(value.chunks) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                yield chunk

    async def close(self) -> None:
        """Stops the engine."""
        await self._node.close()

    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Any = None,
        content: Content | None = None,
    ) -> Any:
        services = await self.services()
        try:
            target = _table().find(method, unquote(path) if "%" in path else path)
        except NoRoute:
            why = f"only a server answers {method} {path}: start one with `windlass up`"
            raise Conflict("no_server", why) from None
        authorize(OWN, target.route.needs)
        try:
            in_path = target.in_path()
            arguments = target.binder.bind_given(query_pairs(query), body)
        except Malformed as error:
            told: Any = error.describe()["error"]
            raise read_invalid_input(told) from None
        given = _in_one_piece(content) if isinstance(content, bytes) else content
        value = await carry_out(Call(services, OWN, given), target.route, in_path, arguments)
        return value.value if isinstance(value, Reply) else value


@cache
def _table() -> Table[None]:
    return Table(ALL, lambda _: None)


async def _in_one_piece(data: bytes) -> AsyncIterator[bytes]:
    yield data
