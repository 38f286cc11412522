"""What a server accepts of callers over HTTP: sizes, times and how much at once."""

from typing import Annotated, Final

from msgspec import Struct

from windlass.domain.values.addresses import parse_networks
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.options import doc

MIN_HEADERS: Final = 1024  # bytes; a token and the headers of any client need some


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Limits of connections and requests; what exceeds one is refused before it costs much."""

    header_bytes: Annotated[
        int,
        doc("bytes", "The longest line and headers of one request.", least=MIN_HEADERS),
    ] = 32 * 1024
    header_count: Annotated[int, doc("headers", "The most headers of one request.", least=8)] = 100
    header_timeout_ms: Annotated[
        int,
        doc(
            "ms",
            "Headers must be complete this long after the first byte, and the first request or "
            "TLS handshake this long after the connection.",
            least=1,
        ),
    ] = 10_000
    body_timeout_ms: Annotated[
        int, doc("ms", "The time over which the speed of a body is measured.", least=1)
    ] = 20_000
    body_rate: Annotated[
        int, doc("bytes", "A slower body, in bytes per second, is refused. 0: any speed.")
    ] = 500
    send_timeout_ms: Annotated[
        int,
        doc("ms", "A client that reads nothing of an answer for this long is cut off.", least=1),
    ] = 120_000
    idle_timeout_ms: Annotated[
        int, doc("ms", "A connection without a request is closed after this.", least=1_000)
    ] = 75_000
    connections: Annotated[
        int,
        doc(
            "connections",
            "The most connections; the limit of open files may allow fewer.",
            least=1,
        ),
    ] = 20_000
    connections_per_caller: Annotated[
        int,
        doc(
            "connections",
            "The most connections of one token, or of one address without a token; the oldest "
            "without a request makes room.",
            least=1,
        ),
    ] = 2_000
    requests_per_caller: Annotated[
        int,
        doc(
            "requests",
            "The most requests at once of one token, or of one address without a token; those "
            "that wait count.",
            least=1,
        ),
    ] = 1_000
    costly_per_caller: Annotated[
        int,
        doc(
            "requests",
            "The same, for requests that read much: explain, filtered lists, verify.",
            least=1,
        ),
    ] = 8
    sign_ins_per_minute: Annotated[
        int,
        doc(
            "requests",
            "The most requests of one address to begin or finish a browser's sign-in; each takes "
            "two.",
            least=2,
        ),
    ] = 120
    body_memory: Annotated[
        int, doc("bytes", "The most bytes of large bodies in memory at once.", least=2**20)
    ] = 512 * 2**20
    body_memory_per_caller: Annotated[
        int, doc("bytes", "The same, for one caller.", least=2**20)
    ] = 256 * 2**20
    trusted_proxies: Annotated[
        tuple[str, ...],
        doc(
            "networks",
            "Proxies whose X-Forwarded-For names the caller, and whose connections are not "
            "limited by address.",
        ),
    ] = ()
    host_names: Annotated[
        tuple[str, ...],
        doc(
            "names",
            "Names under which clients reach the server. If there are any, requests to other "
            "names are refused.",
        ),
    ] = ()


def check_http(limits: HttpLimits) -> None:
    """Raises `InvalidInput` for limits that contradict each other."""
    parse_networks(limits.trusted_proxies, "http.trusted_proxies")
    if limits.body_memory_per_caller > limits.body_memory:
        expected = f"at most http.body_memory ({limits.body_memory})"
        raise InvalidInput("http.body_memory_per_caller", expected, limits.body_memory_per_caller)
