"""A JSON API over HTTP: paging, rate limits, moved addresses, and a token that never leaks."""

import os
import re
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import msgspec

from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    Unreachable,
    WindlassError,
)
from windlass.ports.clock import Clock

if TYPE_CHECKING:
    import aiohttp

PATIENCE_MS: Final = 120_000  # for all waits of one run together
RETRIES: Final = 3
REDIRECTS: Final = 5
TIMEOUT_S: Final = 60
MINUTE_MS: Final = 60_000
PER_PAGE: Final = 100
MAX_MESSAGE: Final = 500
UNPROCESSABLE: Final = 422  # also GitHub's answer about an unknown commit
NOT_ACCEPTED: Final = (400, 413, UNPROCESSABLE)
_NEXT: Final = re.compile(r'<([^>]+)>;\s*rel="next"')


class Missing(NotFound):
    """The server says that there is nothing at an address, or that access is denied."""

    def __init__(self, said: str, path: str) -> None:
        super().__init__("path", path)
        self.said = said

    @property
    def message(self) -> str:
        return self.said


class Refused(Conflict):
    """The server does not accept what was sent, but may accept something else."""


class Response(NamedTuple):
    """A response to a request."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    service: str = "the server"

    def json(self) -> Any:
        try:
            return msgspec.json.decode(self.content)
        except msgspec.MsgspecError:
            raise WindlassError(f"{self.service} did not answer with JSON") from None


class Service(NamedTuple):
    """How messages name an API, and how it takes its token.

    `variable` is the environment variable that a person sets, `prefix` what precedes the token in
    the header. Without a `header` the token is not sent, only kept out of messages.
    """

    name: str
    variable: str
    header: str = "Authorization"
    prefix: str = "Bearer "
    accept: str = "application/json"


class HttpApi:
    """One API. The token is sent to its host only, and appears in no message."""

    def __init__(
        self, service: Service, base: str, token: str | None, clock: Clock,
        patience_ms: int = PATIENCE_MS,
    ) -> None:  # fmt: skip
        self._service = service
        self._base = base.rstrip("/")
        self._token = token
        self._clock = clock
        self._patience_ms = patience_ms
        self._session: aiohttp.ClientSession | None = None
        if urlsplit(self._base).scheme not in ("http", "https"):
            raise InvalidInput("api", "a URL such as https://api.github.com", base)

    async def get(self, path: str) -> Any:
        """Sends a GET and returns the decoded answer."""
        return (await self.request("GET", path)).json()

    async def post(self, path: str, body: Any) -> Any:
        """Sends a POST; never retries it once it may have arrived."""
        return (await self.request("POST", path, msgspec.json.encode(body))).json()

    async def patch(self, path: str, body: Any) -> Any:
        """Sends a PATCH."""
        return (await self.request("PATCH", path, msgspec.json.encode(body))).json()

    async def put(self, path: str, body: Any) -> Any:
        """Sends a PUT."""
        return (await self.request("PUT", path, msgspec.json.encode(body))).json()

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

    async def request(
        self, method: str, path: str, body: bytes | None = None,
        headers: Mapping[str, str] | None = None, *, repeatable: bool = False,
    ) -> Response:  # fmt: skip
        """Sends a request; follows redirects, waits for rate limits and retries server errors.

        A request with a body is retried only if it is `repeatable`.
        """
        url = self._check_host(
            urljoin(f"{self._base}/", path) if "://" in path else self._base + path
        )
        once = body is not None and not repeatable
        failures = redirects = 0
        while True:
            last = once or failures >= RETRIES
            response = await self._send(method, url, body, headers or {}, last=last)
            if response is None or response.status >= 500:
                if response is not None and last:
                    raise self._error(response, url, body is not None)
                failures += 1
                await self._wait(1_000 * 2 ** (failures - 1), "the server reports an error")
            elif response.status in (301, 302, 307, 308) and redirects < REDIRECTS:
                redirects += 1
                url = self._check_host(urljoin(url, response.headers.get("location", "")))
            elif (pause := self._pause_ms(response)) is not None:
                await self._wait(pause, self._message(response))
            elif response.status >= 300:
                raise self._error(response, url, body is not None)
            else:
                return response

    def _check_host(self, url: str) -> str:
        """Refuses links to other hosts, so that the token never leaves this server."""
        if urlsplit(url)[:2] != urlsplit(self._base)[:2]:
            message = f"refused to follow a link from {self._base} to {url}"
            raise WindlassError(self._hidden(message))
        return url

    async def _send(
        self, method: str, url: str, body: bytes | None, more: Mapping[str, str], last: bool
    ) -> Response | None:
        import aiohttp  # takes a third of the start of every command, and few need the API

        headers = {"Accept": self._service.accept, "User-Agent": "windlass", **more}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._token and self._service.header:
            headers[self._service.header] = self._service.prefix + self._token
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S), trust_env=True
            )
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False
            ) as response:
                named = {name.lower(): value for name, value in response.headers.items()}
                content = await response.read()
                return Response(response.status, named, content, self._service.name)
        except (aiohttp.ClientError, TimeoutError) as error:
            if last:
                message = f"no answer from {self._base}: {_reason(error)}; try again later"
                raise Unreachable(self._hidden(message)) from error
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
        # GitHub's second limit has no header: "wait for at least one minute before retrying".
        limited = response.status == 429 or "rate limit" in self._message(response).lower()
        return MINUTE_MS if limited else None

    async def _wait(self, pause_ms: int, why: str) -> None:
        if pause_ms > self._patience_ms:
            raise Conflict(
                "rate_limited",
                f"{self._base} asks us to wait {pause_ms // 1000} s ({why}); run this again "
                f"later, or set {self._service.variable}",
                pause_ms,
            )
        self._patience_ms -= pause_ms
        await self._clock.sleep_ms(pause_ms)

    def _message(self, response: Response) -> str:
        try:
            text = _explained(msgspec.json.decode(response.content))
        except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
            text = f"status {response.status}"
        return self._hidden(text[:MAX_MESSAGE])

    def _hidden(self, text: str) -> str:
        """Returns a text without the token, which a server might repeat."""
        return text.replace(self._token, "(token)") if self._token else text

    def _error(self, response: Response, url: str, sent: bool) -> WindlassError:
        name, status = self._service.name, response.status
        path = self._hidden(url.removeprefix(self._base))
        said = f"{name} answered {status} to {path}: {self._message(response)}"
        if status in (404, 410) or (status == UNPROCESSABLE and not sent):
            return Missing(said, path)
        hint = f"; check {self._service.variable}" if status in (401, 403) else ""
        kind = Refused if status in NOT_ACCEPTED else Conflict
        return kind(f"{name.lower()}_refused", said + hint)


def _reason(error: Exception) -> str:
    """Returns why there is no answer, using the operating system's message if it has one."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    cause = getattr(error, "os_error", error)
    number = getattr(cause, "errno", None) or 0
    # Errors of name resolution have numbers of their own, which are negative.
    return os.strerror(number) if number > 0 else getattr(cause, "strerror", None) or str(cause)


def _explained(answer: Any) -> str:
    """Returns what a response says is wrong; GitHub lists fields, GitLab has them in `message`."""
    said = answer.get("message") or answer["error"]
    text = said if isinstance(said, str) else msgspec.json.encode(said).decode()
    listed = answer.get("errors")
    more = [one.get("message") or one.get("field") for one in listed] if listed else []
    return "; ".join(map(str, (text, *filter(None, more))))
