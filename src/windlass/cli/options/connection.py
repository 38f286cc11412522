"""The options that say where the server is, the ways to call it, and names in a namespace.

A command that makes one request uses `call`: the whole client takes much longer to load.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from cyclopts import Group, Parameter

from windlass.client.settings import KnownServer, OwnCertificate, find_server, trust_for
from windlass.client.transport import Transport
from windlass.domain.values.quantities import parse_duration_ms

if TYPE_CHECKING:
    from windlass.client.blocking.client import Client
    from windlass.client.reconnect import Reconnect


T = TypeVar("T")
R = TypeVar("R")

PAGE: Final = 1_000  # rows of a list in one call
CONNECTION: Final = Group("Connection", sort_key=5)

WaitForServer = Annotated[
    str,
    Parameter(
        name="--reconnect",
        metavar="DURATION",
        help="How long to wait for a server that is away, such as 5m; 0: not at all.",
    ),
]
RECONNECT: Final = "60s"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the server is. Defaults come from the environment, then from the data directory."""

    server: Annotated[
        str | None,
        Parameter(
            group=CONNECTION,
            metavar="URL",
            help="The server's address; several are comma-separated. Default: WINDLASS_SERVER, "
            "else the server started on this machine.",
        ),
    ] = None
    data: Annotated[
        Path | None,
        Parameter(
            group=CONNECTION,
            metavar="DIR",
            help="The data directory of the server on this machine. Default: WINDLASS_DATA, "
            "else ~/.local/share/windlass.",
        ),
    ] = None
    tls_ca: Annotated[
        Path | None,
        Parameter(
            group=CONNECTION,
            metavar="FILE",
            help="The certificate authorities (PEM) to trust. Default: WINDLASS_TLS_CA, "
            "else the system's.",
        ),
    ] = None

    def found(self, token: str | None = None) -> KnownServer:
        """Returns the server's address and its token, unless one is given."""
        return find_server(self.server, token, self.data)

    def transport(self, token: str | None = None, own: OwnCertificate | None = None) -> Transport:
        """Returns a connection that trusts the given authorities, and presents `own`."""
        found = self.found(token)
        trust = trust_for(found.server, self.tls_ca, own)
        return Transport(found.server, found.token, trust=trust, renew=found.renew)

    def client(self, reconnect: str | None = None) -> "Client":
        """Returns a client of the server, which tries again for as long as `reconnect` says."""
        from windlass.client.blocking.client import Client
        from windlass.client.client import AsyncClient
        from windlass.client.service import Service

        again = None if reconnect is None else reconnect_for(reconnect)
        return Client(client=AsyncClient(service=Service(self.transport(), again)))

    @property
    def scope(self) -> dict[str, Any]:
        """Returns what the query of every call has."""
        return {}

    def call(
        self,
        method: str,
        path: str,
        answer: type[T],
        body: Any = None,
        *,
        timeout: float | None = None,
        **query: Any,
    ) -> T:
        """Makes one request and returns the decoded answer."""
        transport = self.transport()
        query = {**self.scope, **query}

        async def send() -> T:
            try:
                return await transport.call(
                    method, path, answer, body, query=query, timeout=timeout
                )
            finally:
                await transport.close()

        return asyncio.run(send())

    def listed(
        self, path: str, answer: type[T], rows: Callable[[T], list[R]], limit: int, **query: Any
    ) -> list[R]:
        """Returns up to `limit` rows of a list, which comes in pages."""
        found: list[R] = []
        after: str | None = None
        while len(found) < limit:
            size = min(limit - len(found), PAGE)
            page: Any = self.call("GET", path, answer, **query, limit=size, after=after)
            found += rows(page)
            after = page.next
            if after is None:
                break
        return found


HERE: Final = Connection()


def reconnect_for(duration: str) -> "Reconnect":
    """Returns what `--reconnect` asks for."""
    from windlass.client.reconnect import Reconnect

    return Reconnect(parse_duration_ms(duration, "--reconnect") / 1000)


TemplateName = Annotated[str, Parameter(help="The template's name.")]
ScheduleName = Annotated[str, Parameter(help="The schedule's name.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Place(Connection):
    """A server, and a namespace there."""

    namespace: Annotated[str | None, Parameter(help="The namespace. Default: the token's own.")] = (
        None
    )

    @property
    def scope(self) -> dict[str, Any]:
        """Returns the query of every call: the namespace."""
        return {"namespace": self.namespace}


DEFAULT_PLACE: Final = Place()
