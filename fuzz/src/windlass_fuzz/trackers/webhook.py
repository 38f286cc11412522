"""Issues as signed messages to a webhook of yours, which may do with them what it likes.

Each message has an identifier that depends only on its contents, so that a message whose answer got
lost is sent again under the same identifier.
"""

import hashlib
import os
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass.domain.webhooks import check_url, sign
from windlass.ports.clock import Clock
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.sources.http_api import HttpApi, Service
from windlass_fuzz.trackers.options import FROM_ENVIRONMENT, IssueOptions
from windlass_fuzz.trackers.tracker import IssueText, Note

ADDRESS_LIMIT: Final = 2_000
ID_LENGTH: Final = 32


class WebhookTracker:
    """Sends events about findings to one address."""

    def __init__(self, options: IssueOptions, clock: Clock) -> None:
        secret = os.environ.get(options.variable, "")
        if not secret:
            message = f"set {options.variable}: webhooks are signed with it"
            raise InvalidSetting("issues.token", message)
        check_address(options)
        parts = urlsplit(options.address)
        self._path = parts.path + (f"?{parts.query}" if parts.query else "")
        hidden = self._path if options.url.startswith(FROM_ENVIRONMENT) else None
        service = Service("the webhook", options.variable, header="")
        self._api = HttpApi(service, f"{parts.scheme}://{parts.netloc}", hidden or None, clock)
        self._secret = secret
        self._clock = clock

    async def find(self, mark: str, private: bool) -> str | None:  # noqa: ARG002
        """Returns None: sent messages cannot be looked up, but the identifier is the same."""
        return None

    async def open(self, issue: IssueText) -> str:
        name = _name(issue)
        answer = await self._send("opened", name, _content(issue))
        given = answer.get("url") if isinstance(answer, dict) else None
        plain = isinstance(given, str) and given.startswith(("http://", "https://"))
        return str(given)[:ADDRESS_LIMIT] if plain else f"webhook:{_id('opened', name)}"

    async def rewrite(self, address: str, issue: IssueText) -> None:
        await self._send("rewritten", _name(issue), {"issue": address, **_content(issue)})

    async def comment(self, address: str, note: Note) -> None:
        await self._send("updated", note.mark, _note_document(address, note))

    async def close(self, address: str, note: Note) -> None:
        await self._send("closed", note.mark, _note_document(address, note))

    async def reopen(self, address: str, note: Note) -> None:
        await self._send("reopened", note.mark, _note_document(address, note))

    async def disconnect(self) -> None:
        await self._api.close()

    async def _send(self, event: str, mark: str, content: dict[str, Any]) -> Any:
        body = msgspec.json.encode({"event": event, **content})
        now = self._clock.now_ms() // 1000
        headers = {
            "Windlass-Delivery": _id(event, mark),
            "Windlass-Timestamp": str(now),
            "Windlass-Signature": f"sha256={sign(self._secret, now, body)}",
        }
        response = await self._api.request("POST", self._path, body, headers, repeatable=True)
        try:
            return response.json()
        except WindlassError:
            return None  # a receiver need not answer anything


def check_address(options: IssueOptions) -> None:
    """Raises if the address is missing in the environment or not valid, without repeating it."""
    try:
        check_url(options.address, "issues.url")
    except WindlassError:
        message = f"{options.url} is not an address such as https://example.com/hook"
        raise InvalidSetting("issues.url", message, options.url) from None


def _content(issue: IssueText) -> dict[str, Any]:
    return {
        "title": issue.title, "body": issue.body, "labels": issue.labels,
        "private": issue.private, **issue.document,
    }  # fmt: skip


def _name(issue: IssueText) -> str:
    """Returns what identifies an issue: its mark, and for a summary also its text."""
    return issue.mark if "key" in issue.document else issue.body


def _note_document(address: str, note: Note) -> dict[str, Any]:
    return {"issue": address, "text": note.text, **note.document}


def _id(event: str, mark: str) -> str:
    return hashlib.sha256(f"{event} {mark}".encode()).hexdigest()[:ID_LENGTH]
