"""What a server accepts over HTTP: sizes, times and concurrency."""

from typing import Annotated, Final

from msgspec import Struct

from windlass.domain.values.addresses import parse_networks
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.options import doc

MIN_HEADERS: Final = 1024  # bytes; a token and the usual headers need about this much


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Limits of connections and requests; whatever exceeds one is refused early and cheaply."""

    header_bytes: Annotated[
        int, doc("Maximum size of one request's line and headers.", "bytes", least=MIN_HEADERS)
    ] = 32 * 1024
    header_count: Annotated[
        int, doc("Maximum number of headers in one request.", "headers", least=8)
    ] = 100
    header_timeout_ms: Annotated[
        int,
        doc(
            "Headers must be complete this long after the first byte, and the first request or "
            "TLS handshake this long after the connection.",
            least=1,
        ),
    ] = 10_000
    body_timeout_ms: Annotated[
        int, doc("The time over which the speed of a request body is measured.", least=1)
    ] = 20_000
    body_rate: Annotated[
        int,
        doc(
            "Minimum speed of a request body in bytes per second; a slower one is refused. 0: "
            "any speed.",
            "bytes",
        ),
    ] = 500
    send_timeout_ms: Annotated[
        int,
        doc("A client that reads nothing of a response for this long is disconnected.", least=1),
    ] = 120_000
    idle_timeout_ms: Annotated[
        int, doc("An idle connection is closed after this.", least=1_000)
    ] = 75_000
    connections: Annotated[
        int,
        doc(
            "Maximum number of connections; the limit of open files may lower it.",
            "connections",
            least=1,
        ),
    ] = 20_000
    connections_per_caller: Annotated[
        int,
        doc(
            "Maximum connections per token, or per address without a token; a new one replaces "
            "the oldest idle one.",
            "connections",
            least=1,
        ),
    ] = 2_000
    requests_per_caller: Annotated[
        int,
        doc(
            "Maximum concurrent requests per token, or per address without a token; waiting ones "
            "count.",
            "requests",
            least=1,
        ),
    ] = 1_000
    costly_per_caller: Annotated[
        int,
        doc(
            "The same, for requests that read a lot: explain, filtered lists, verify.",
            "requests",
            least=1,
        ),
    ] = 8
    sign_ins_per_minute: Annotated[
        int,
        doc(
            "Maximum requests per address to begin or finish a browser's sign-in; each sign-in "
            "takes two.",
            "requests",
            least=2,
        ),
    ] = 120
    body_memory: Annotated[
        int, doc("Maximum bytes of large request bodies in memory at once.", "bytes", least=2**20)
    ] = 512 * 2**20
    body_memory_per_caller: Annotated[
        int, doc("The same, for one caller.", "bytes", least=2**20)
    ] = 256 * 2**20
    trusted_proxies: Annotated[
        tuple[str, ...],
        doc(
            "Proxies whose X-Forwarded-For names the caller, and whose connections are not "
            "limited by address.",
            "networks",
        ),
    ] = ()
    host_names: Annotated[
        tuple[str, ...],
        doc(
            "Names under which clients reach the server. If there are any, requests to other "
            "names are refused.",
            "names",
        ),
    ] = ()


def check_http(limits: HttpLimits) -> None:
    """Raises `InvalidInput` for limits that contradict each other."""
    parse_networks(limits.trusted_proxies, "http.trusted_proxies")
    if limits.body_memory_per_caller > limits.body_memory:
        expected = f"at most http.body_memory ({limits.body_memory})"
        raise InvalidInput("http.body_memory_per_caller", expected, limits.body_memory_per_caller)
