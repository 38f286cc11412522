"""Downloads archives and dictionaries over https, within limits.

The host named by the solver file may be anywhere. A redirect may lead to the same host or to a
public address, so that nobody else chooses what this machine requests from its own network.
"""

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from windlass.domain.values.errors import WindlassError
from windlass.domain.webhooks import check_url, is_numeric, may_reach
from windlass_fuzz.seeds.limits import SeedsRefused

if TYPE_CHECKING:
    import aiohttp

HTTPS: Final = "https://"
REDIRECTS: Final = 5
TIMEOUT_S: Final = 600.0
CHUNK: Final = 256 * 1024
UNCHANGED: Final = 304
NOT_PUBLIC: Final = "a redirect leads to an address that is not public"


class Downloaded(NamedTuple):
    """Whether the content is new, and the server's name for this version of it, if any."""

    fresh: bool
    version: str


async def download(address: str, into: Path, most: int, known: str = "") -> Downloaded:
    """Writes the content of an address to a file of at most `most` bytes.

    With a `known` version that is still current, nothing is written.
    """
    import aiohttp  # takes a third of the start of every command, and few need it

    headers = {"User-Agent": "windlass", "Accept-Encoding": "identity"}
    if known:
        headers["If-None-Match"] = known
    first, url = urlsplit(address).hostname, address
    for _ in range(REDIRECTS + 1):
        given = urlsplit(url).hostname == first
        _check(url, given)
        try:
            async with (
                _session(given) as session,
                session.get(url, headers=headers, allow_redirects=False) as response,
            ):
                if response.status == UNCHANGED and known:
                    return Downloaded(False, known)
                if response.status not in (301, 302, 303, 307, 308):
                    return await _save(response, into, most)
                url = urljoin(url, response.headers.get("Location", ""))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise _explained(error) from None
    raise SeedsRefused(f"more than {REDIRECTS} redirects")


def _check(url: str, given: bool) -> None:
    """Refuses anything but https, and numeric addresses that are not configured."""
    try:
        check_url(url, "seeds")
    except WindlassError:
        raise SeedsRefused("the redirect target is not a valid URL") from None
    parts = urlsplit(url)
    if parts.scheme != "https":
        raise SeedsRefused("a redirect leads away from https")
    host = parts.hostname or ""
    if not given and is_numeric(host) and not may_reach(host, ()):
        raise SeedsRefused(NOT_PUBLIC)


def _session(given: bool) -> "aiohttp.ClientSession":
    """Returns a session; for a host that is not configured, it resolves only to public
    addresses.
    """
    import aiohttp

    from windlass.client.webhooks import CheckingResolver

    context = ssl.create_default_context()
    resolver = None if given else CheckingResolver(())
    connector = aiohttp.TCPConnector(resolver=resolver, force_close=True, ssl=context)
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=given,
        auto_decompress=False, timeout=aiohttp.ClientTimeout(total=TIMEOUT_S, sock_read=60),
    )  # fmt: skip


def _explained(error: Exception) -> SeedsRefused:
    from windlass.client.webhooks import is_refusal

    if is_refusal(error):
        return SeedsRefused(NOT_PUBLIC)
    return SeedsRefused(f"no answer: {str(error) or type(error).__name__}")


async def _save(response: "aiohttp.ClientResponse", into: Path, most: int) -> Downloaded:
    if response.status != 200:
        raise SeedsRefused(f"the server answered {response.status}")
    too_large = SeedsRefused(f"larger than {most} bytes (seeds.size)")
    if (response.content_length or 0) > most:
        raise too_large
    left = most
    into.parent.mkdir(parents=True, exist_ok=True)
    with into.open("wb") as file:
        async for chunk in response.content.iter_chunked(CHUNK):
            left -= len(chunk)
            if left < 0:
                raise too_large
            file.write(chunk)
    return Downloaded(True, response.headers.get("ETag", "")[:200])
