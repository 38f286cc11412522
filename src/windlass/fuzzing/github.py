"""The API of GitHub, as far as it is needed: pages, rate limits, moved repositories.

The address is an option, for enterprises have their own.
"""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import aiohttp
import msgspec

from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    Unreachable,
    WindlassError,
)
from windlass.ports.clock import Clock

PATIENCE_MS: Final = 120_000  # what all waits of one run may take together
RETRIES: Final = 3
HOPS: Final = 5
SECONDS: Final = 60
PER_PAGE: Final = 100
_NEXT: Final = re.compile(r'<([^>]+)>;\s*rel="next"')
_PROJECT: Final = re.compile(r"([\w.-]+)/([\w.-]+?)(?:\.git)?/?\Z")


class Answered(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        try:
            return msgspec.json.decode(self.content)
        except msgspec.MsgspecError:
            raise WindlassError(
                "expected JSON from the API of GitHub, got something else"
            ) from None


def project_of(repository: str) -> str:
    """OWNER/NAME in the address of a repository."""
    path = urlsplit(repository).path if "://" in repository else repository.rpartition(":")[2]
    found = _PROJECT.search(path.strip("/"))
    if found is None:
        expected = "OWNER/NAME (or set commits.project)"
        raise InvalidInput("repository", expected, repository)
    return f"{found[1]}/{found[2]}"


class GitHub:
    """One repository at the API. `token` is needed for private ones and for more requests."""

    def __init__(
        self, base: str, project: str, token: str | None, clock: Clock,
        patience_ms: int = PATIENCE_MS,
    ) -> None:  # fmt: skip
        self._base = base.rstrip("/")
        self.project = project
        self._token = token
        self._clock = clock
        self._patience_ms = patience_ms
        self._session: aiohttp.ClientSession | None = None
        if urlsplit(self._base).scheme not in ("http", "https"):
            raise InvalidInput("commits.api", "an address such as https://api.github.com", base)

    def path(self, *words: str) -> str:
        """Below the repository."""
        return "/".join([f"/repos/{self.project}", *(quote(word, safe="") for word in words)])

    async def get(self, path: str) -> Any:
        """One answer, decoded."""
        return (await self.request("GET", path)).json()

    async def post(self, path: str, body: Any) -> Any:
        """Send something; not tried again once it may have arrived."""
        return (await self.request("POST", path, msgspec.json.encode(body))).json()

    async def patch(self, path: str, body: Any) -> Any:
        """Change something."""
        return (await self.request("PATCH", path, msgspec.json.encode(body))).json()

    async def pages(self, path: str) -> AsyncIterator[Any]:
        """One page after another, as far as the server links them."""
        sign = "&" if "?" in path else "?"
        url: str | None = f"{path}{sign}per_page={PER_PAGE}"
        while url is not None:
            answered = await self.request("GET", url)
            yield answered.json()
            linked = _NEXT.search(answered.headers.get("link", ""))
            url = linked[1] if linked else None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(self, method: str, path: str, body: bytes | None = None) -> Answered:
        """Ask until there is an answer that counts."""
        url = self._own(urljoin(f"{self._base}/", path) if "://" in path else self._base + path)
        troubles = hops = 0
        while True:
            answered = await self._try(method, url, body, last=troubles >= RETRIES)
            if answered is None or answered.status >= 500:
                if answered is not None and (troubles >= RETRIES or body is not None):
                    raise self._said(answered, url)
                troubles += 1
                await self._wait(1_000 * 2 ** (troubles - 1), "the server is in trouble")
            elif answered.status in (301, 302, 307, 308) and hops < HOPS:
                hops += 1
                url = self._own(urljoin(url, answered.headers.get("location", "")))
            elif (pause := self._pause_ms(answered)) is not None:
                await self._wait(pause, self._message(answered))
            elif answered.status >= 300:
                raise self._said(answered, url)
            else:
                return answered

    def _own(self, url: str) -> str:
        """The token goes to this server alone, wherever links and redirects point."""
        if urlsplit(url)[:2] != urlsplit(self._base)[:2]:
            raise WindlassError(f"expected links to stay at {self._base}, got one to {url}")
        return url

    async def _try(self, method: str, url: str, body: bytes | None, last: bool) -> Answered | None:
        headers = {"Accept": "application/vnd.github+json", "User-Agent": "windlass"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=SECONDS), trust_env=True
            )
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False
            ) as response:
                named = {name.lower(): value for name, value in response.headers.items()}
                return Answered(response.status, named, await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            if last or body is not None:
                why = str(error) or type(error).__name__
                raise Unreachable(f"no answer from {self._base}: {why}; try again later") from error
            return None

    def _pause_ms(self, answered: Answered) -> int | None:
        """How long to wait where the server says that there were too many requests."""
        if answered.status not in (403, 429):
            return None
        after = answered.headers.get("retry-after", "")
        if after.isdigit():
            return int(after) * 1000
        if answered.headers.get("x-ratelimit-remaining") == "0":
            reset = answered.headers.get("x-ratelimit-reset", "0")
            at_ms = int(reset) * 1000 if reset.isdigit() else 0
            return max(at_ms - self._clock.now_ms(), 1_000)
        return 60_000 if answered.status == 429 else None

    async def _wait(self, pause_ms: int, why: str) -> None:
        if pause_ms > self._patience_ms:
            raise Conflict(
                "rate_limited",
                f"expected an answer from {self._base} soon, but it asks to wait "
                f"{pause_ms // 1000} s ({why}); run this again then, or set GITHUB_TOKEN",
                pause_ms,
            )
        self._patience_ms -= pause_ms
        await self._clock.sleep_ms(pause_ms)

    def _message(self, answered: Answered) -> str:
        try:
            return str(msgspec.json.decode(answered.content)["message"])
        except (msgspec.MsgspecError, KeyError, TypeError):
            return f"status {answered.status}"

    def _said(self, answered: Answered, url: str) -> WindlassError:
        path = url.removeprefix(self._base)
        if answered.status in (404, 410, 422):
            return NotFound("path at GitHub", path)
        hint = "; check GITHUB_TOKEN" if answered.status in (401, 403) else ""
        said = self._message(answered)
        return Conflict(
            "github_refused", f"GitHub answered {answered.status} to {path}: {said}{hint}"
        )
