"""How a command reaches its server: the options for it, and the client they lead to."""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from cyclopts import Group, Parameter

from windlass.client.client import AsyncClient, Client
from windlass.client.service import HttpService
from windlass.client.settings import KnownServer, find_server, trust_for
from windlass.client.transport import ServerError, Transport
from windlass.domain.values.errors import Unreachable, WindlassError

T = TypeVar("T")

UNAUTHORIZED: Final = 401
CONNECTION: Final = Group("Connection", sort_key=5)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the server is; what is not given comes from the environment or the data directory."""

    server: Annotated[
        str | None,
        Parameter(
            group=CONNECTION,
            metavar="URL",
            help="The server's address, or several parted by commas. Default: WINDLASS_SERVER, "
            "else the one started here.",
        ),
    ] = None
    data: Annotated[
        Path | None,
        Parameter(
            group=CONNECTION,
            metavar="DIR",
            help="The data directory of a server started here. Default: WINDLASS_DATA.",
        ),
    ] = None
    tls_ca: Annotated[
        Path | None,
        Parameter(
            group=CONNECTION,
            metavar="FILE",
            help="Certificates (PEM) that may vouch for the server. Default: WINDLASS_TLS_CA, "
            "else those of the system.",
        ),
    ] = None

    def found(self, token: str | None = None) -> KnownServer:
        """The server's address and the token for it, unless it is given."""
        return find_server(self.server, token, self.data)

    def transport(self, token: str | None = None) -> Transport:
        """A connection that trusts whom it should."""
        found = self.found(token)
        return Transport(found.server, found.token, trust=trust_for(found.server, self.tls_ca))

    def client(self) -> Client:
        """A client of the server."""
        return Client(client=AsyncClient(service=HttpService(self.transport())))

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
        """One call that the client has no method for."""
        with self.client() as client:
            transport = client.asynchronous.transport
            return client.run(
                transport.call(method, path, answer, body, query=query, timeout=timeout)
            )


HERE: Final = Connection()


def explain_refusal(error: WindlassError) -> WindlassError | None:
    """The error to show instead when the server does not know the token of this command."""
    if not isinstance(error, ServerError) or error.status != UNAUTHORIZED:
        return None
    origin = "WINDLASS_TOKEN" if os.environ.get("WINDLASS_TOKEN") else "the data directory"
    return ServerError(
        error.status,
        error.code,
        f"the server does not accept the token of {origin}: set WINDLASS_TOKEN to a valid one "
        "(`windlass tokens create` makes them), or name its data directory with --data",
    )


def explain_distrust(error: BaseException) -> Unreachable | None:
    """The error to show instead when a certificate is what kept a server from being reached."""
    cause: BaseException | None = error
    while cause is not None:
        # HTTP libraries raise errors of this type around the one that knows the reason.
        why = getattr(cause, "verify_message", None)
        if isinstance(cause, ssl.SSLCertVerificationError) and why:
            return Unreachable(
                f"the server's certificate is not trusted: {why}; name the file of the authority "
                "that signed it with --tls-ca FILE or WINDLASS_TLS_CA"
            )
        cause = cause.__cause__ or cause.__context__
    return None
