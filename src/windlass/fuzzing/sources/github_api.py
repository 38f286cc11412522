"""The parts of the GitHub API that we use: paging, rate limits, moved repositories.

The address is configurable for GitHub Enterprise.
"""

import re
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    Unreachable,
    WindlassError,
)
from windlass.fuzzing.errors import InvalidSetting
from windlass.ports.clock import Clock

if TYPE_CHECKING:
    import aiohttp

PATIENCE_MS: Final = 120_000  # for all waits of one run together
RETRIES: Final = 3
REDIRECTS: Final = 5
TIMEOUT_S: Final = 60
PER_PAGE: Final = 100
_NEXT: Final = re.compile(r'<([^>]+)>;\s*rel="next"')
_PROJECT: Final = re.compile(r"([\w.-]+)/([\w.-]+?)(?:\.git)?/?\Z")


class Response(NamedTuple):
    """A response to a request."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        try:
            return msgspec.json.decode(self.content)
        except msgspec.MsgspecError:
            raise WindlassError("the GitHub API did not answer with JSON") from None


def project_of(repository: str) -> str:
    """Returns OWNER/NAME from the address of a repository."""
    path = urlsplit(repository).path if "://" in repository else repository.rpartition(":")[2]
    found = _PROJECT.search(path.strip("/"))
    if found is None:
        raise InvalidSetting(
            "repository",
            f"cannot find OWNER/NAME in repository {repository}; set commits.project",
            repository,
        )
    return f"{found[1]}/{found[2]}"


class GitHub:
    """One repository at the API. Private ones and higher rate limits need `token`."""

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
            raise InvalidInput("commits.api", "a URL such as https://api.github.com", base)

    def path(self, *words: str) -> str:
        """Returns a path below the repository."""
        return "/".join([f"/repos/{self.project}", *(quote(word, safe="") for word in words)])

    async def get(self, path: str) -> Any:
        """Sends a GET and returns the decoded answer."""
        return (await self.request("GET", path)).json()

    async def post(self, path: str, body: Any) -> Any:
        """Sends a POST; never retries it once it may have arrived."""
        return (await self.request("POST", path, msgspec.json.encode(body))).json()

    async def patch(self, path: str, body: Any) -> Any:
        """Sends a PATCH."""
        return (await self.request("PATCH", path, msgspec.json.encode(body))).json()

    async def pages(self, path: str) -> AsyncIterator[Any]:
        """Yields one page after another, as long as the server links to more."""
        sign = "&" if "?" in path else "?"
        url: str | None = f"{path}{sign}per_page={PER_PAGE}"
        while url is not None:
            response = await self.request("GET", url)
            yield response.json()
            linked = _NEXT.search(response.headers.get("link", ""))
            url = linked[1] if linked else None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(self, method: str, path: str, body: bytes | None = None) -> Response:
        """Sends a request; follows redirects, waits for rate limits and retries server errors."""
        url = self._check_host(
            urljoin(f"{self._base}/", path) if "://" in path else self._base + path
        )
        failures = redirects = 0
        while True:
            response = await self._send(method, url, body, last=failures >= RETRIES)
            if response is None or response.status >= 500:
                if response is not None and (failures >= RETRIES or body is not None):
                    raise self._error(response, url)
                failures += 1
                await self._wait(1_000 * 2 ** (failures - 1), "the server reports an error")
            elif response.status in (301, 302, 307, 308) and redirects < REDIRECTS:
                redirects += 1
                url = self._check_host(urljoin(url, response.headers.get("location", "")))
            elif (pause := self._pause_ms(response)) is not None:
                await self._wait(pause, self._message(response))
            elif response.status >= 300:
                raise self._error(response, url)
            else:
                return response

    def _check_host(self, url: str) -> str:
        """Refuses links to other hosts, so that the token never leaves this server."""
        if urlsplit(url)[:2] != urlsplit(self._base)[:2]:
            raise WindlassError(f"refused to follow a link from {self._base} to {url}")
        return url

    async def _send(self, method: str, url: str, body: bytes | None, last: bool) -> Response | None:
        import aiohttp  # a third of the start of every command, and few use the API

        headers = {"Accept": "application/vnd.github+json", "User-Agent": "windlass"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S), trust_env=True
            )
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False
            ) as response:
                named = {name.lower(): value for name, value in response.headers.items()}
                return Response(response.status, named, await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            if last or body is not None:
                why = str(error) or type(error).__name__
                raise Unreachable(f"no answer from {self._base}: {why}; try again later") from error
            return None

    def _pause_ms(self, response: Response) -> int | None:
        """Returns how long to wait if the server reports too many requests."""
        if response.status not in (403, 429):
            return None
        after = response.headers.get("retry-after", "")
        if after.isdigit():
            return int(after) * 1000
        if response.headers.get("x-ratelimit-remaining") == "0":
            reset = response.headers.get("x-ratelimit-reset", "0")
            at_ms = int(reset) * 1000 if reset.isdigit() else 0
            return max(at_ms - self._clock.now_ms(), 1_000)
        return 60_000 if response.status == 429 else None

    async def _wait(self, pause_ms: int, why: str) -> None:
        if pause_ms > self._patience_ms:
            raise Conflict(
                "rate_limited",
                f"{self._base} asks us to wait {pause_ms // 1000} s ({why}); run this again "
                "later, or set GITHUB_TOKEN",
                pause_ms,
            )
        self._patience_ms -= pause_ms
        await self._clock.sleep_ms(pause_ms)

    def _message(self, response: Response) -> str:
        try:
            return str(msgspec.json.decode(response.content)["message"])
        except (msgspec.MsgspecError, KeyError, TypeError):
            return f"status {response.status}"

    def _error(self, response: Response, url: str) -> WindlassError:
        path = url.removeprefix(self._base)
        if response.status in (404, 410, 422):
            return NotFound("path at GitHub", path)
        hint = "; check GITHUB_TOKEN" if response.status in (401, 403) else ""
        message = self._message(response)
        return Conflict(
            "github_refused", f"GitHub answered {response.status} to {path}: {message}{hint}"
        )
