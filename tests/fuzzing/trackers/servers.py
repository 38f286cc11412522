"""Issue trackers on loopback that answer as GitHub, GitLab and a webhook's receiver do."""

import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from tests.fuzzing.support.http_server import serving
from tests.fuzzing.support.scripted_solver import ShiftedClock
from windlass.domain.webhooks import sign
from windlass_fuzz.findings.record import Finding

PAGE = 2
SECRET = "made-up-secret"


class TrackerServer:
    """The issues of all projects. `script` lists statuses to answer with first.

    `lose_answer` creates what it is asked to, and then closes the connection.
    """

    def __init__(self) -> None:
        self.issues: list[dict[str, Any]] = []
        self.script: list[tuple[int, dict[str, str]]] = []
        self.refuse = 0
        self.lose_answer = False
        self.tokens: set[str | None] = set()
        self.requests: list[str] = []
        self.address = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        if self.refuse:
            return web.json_response({"message": "no"}, status=self.refuse)
        if self.script:
            status, headers = self.script.pop(0)
            return web.json_response({"message": "wait"}, status=status, headers=headers)
        answer = await self.answer(request)
        if self.lose_answer and request.method == "POST":
            assert request.transport is not None
            request.transport.close()
        return answer

    async def answer(self, request: web.Request) -> web.Response:
        raise NotImplementedError

    def comments(self, number: int) -> list[str]:
        return [one["body"] for one in self.issues[number - 1]["comments"]]

    def _there(self, number: str) -> dict[str, Any]:
        found = [one for one in self.issues if str(one["number"]) == number]
        return found[0] if found else {}

    def _paged(self, request: web.Request, whole: list[Any]) -> web.Response:
        page = int(request.query.get("page", "1"))
        headers = {}
        if page * PAGE < len(whole):
            headers["Link"] = f'<{request.url.update_query(page=page + 1)}>; rel="next"'
        return web.json_response(whole[(page - 1) * PAGE : page * PAGE], headers=headers)


class GitHubIssues(TrackerServer):
    async def answer(self, request: web.Request) -> web.Response:
        self.tokens.add(request.headers.get("Authorization"))
        project, _, rest = request.path.removeprefix("/repos/").partition("/issues")
        number, _, part = rest.strip("/").partition("/")
        issue = self._there(number)
        if number and not issue:
            return web.json_response({"message": "This issue was deleted"}, status=410)
        body = await request.json() if request.method != "GET" else {}
        if part == "comments":
            if request.method == "GET":
                return self._paged(request, issue["comments"])
            issue["comments"].append(body)
            return web.json_response(body, status=201)
        if request.method == "PATCH":
            issue.update(body)
            return web.json_response(issue)
        if request.method == "GET":
            label = request.query["labels"]
            mine = [one for one in self.issues if one["project"] == project]
            return self._paged(request, [one for one in mine if label in one["labels"]])
        at = len(self.issues) + 1
        address = f"{self.address}/{project}/issues/{at}"
        made = {"number": at, "html_url": address, "state": "open", "project": project}
        self.issues.append({**body, **made, "comments": []})
        return web.json_response(self.issues[-1], status=201)


class GitLabIssues(TrackerServer):
    """`confidential` can be switched off, as for a server that ignores it."""

    confidential = True

    async def answer(self, request: web.Request) -> web.Response:
        self.tokens.add(request.headers.get("PRIVATE-TOKEN"))
        if not request.headers.get("PRIVATE-TOKEN"):
            return web.json_response({"message": "401 Unauthorized"}, status=401)
        words = request.rel_url.raw_path.removeprefix("/api/v4/projects/").split("/")
        project = unquote(words[0])
        issue = self._there(words[2]) if len(words) > 2 else {}
        if len(words) > 2 and not issue:
            return web.json_response({"message": "404 Not found"}, status=404)
        body = await request.json() if request.method != "GET" else {}
        if words[3:] == ["notes"]:
            if request.method == "GET":
                return self._paged(request, issue["comments"])
            issue["comments"].append(body)
            return web.json_response(body, status=201)
        if request.method == "PUT":
            if event := body.pop("state_event", None):
                issue["state"] = {"close": "closed", "reopen": "opened"}[event]
            issue.update(body)
            return web.json_response(issue)
        if request.method == "GET":
            label = request.query["labels"]
            mine = [one for one in self.issues if one["project"] == project]
            return self._paged(request, [one for one in mine if label in one["labels"]])
        return self._create(project, body)

    def _create(self, project: str, body: dict[str, Any]) -> web.Response:
        at = len(self.issues) + 1
        self.issues.append(
            {
                "title": body["title"], "description": body["description"], "number": at,
                "labels": body["labels"].split(","), "project": project, "state": "opened",
                "confidential": self.confidential and body.get("confidential", False),
                "web_url": f"{self.address}/{project}/-/issues/{at}", "comments": [],
            }
        )  # fmt: skip
        return web.json_response(self.issues[-1], status=201)


class Receiver(TrackerServer):
    """Keeps each delivery once, by its identifier, if its signature is right."""

    def __init__(self) -> None:
        super().__init__()
        self.deliveries: dict[str, dict[str, Any]] = {}
        self.said: dict[str, Any] | None = None

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        stamp = int(request.headers["Windlass-Timestamp"])
        given = request.headers["Windlass-Signature"]
        if not hmac.compare_digest(given, f"sha256={sign(SECRET, stamp, body)}"):
            return web.json_response({"message": "wrong signature"}, status=401)
        self.deliveries.setdefault(request.headers["Windlass-Delivery"], json.loads(body))
        return web.json_response(self.said) if self.said is not None else web.Response(text="ok")


class QuickClock(ShiftedClock):
    """A clock whose pauses take no time."""

    async def sleep_ms(self, duration_ms: int) -> None:
        self.ahead_ms += duration_ms


@asynccontextmanager
async def running(server: TrackerServer) -> AsyncIterator[None]:
    async with serving(server.handle) as server.address:
        yield


def a_finding(key: str = "k" * 16, **fields: Any) -> Finding:
    known = {
        "key": key, "title": f"assertion {key}", "engine": "command", "command": ["./solver"],
        "input": "input-1", "size": 3, "shown": 5, "tried": 5, "found_in": "c" * 40,
        "found_at_ms": 0, "introduced_by": "c" * 40, "last_good": "b" * 40,
    }  # fmt: skip
    return Finding(**{**known, **fields})
