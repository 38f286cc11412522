"""The part of the GitHub API that the manager uses, on loopback, over a real git repository."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from tests.fuzzing.support.http_server import serving
from tests.fuzzing.support.repository import Repository

PROJECT = "owner/solver"


class GitHubServer:
    """Answers from a repository; `script` lists answers to give first, each (status, headers)."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.page_size = 2
        self.project = PROJECT
        self.script: list[tuple[int, dict[str, str]]] = []
        self.requests: list[str] = []
        self.tokens: list[str | None] = []
        self.address = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(request.path_qs)
        self.tokens.append(request.headers.get("Authorization"))
        if self.script:
            status, headers = self.script.pop(0)
            return web.json_response(
                {"message": "as the test says"}, status=status, headers=headers
            )
        words = request.path.strip("/").split("/")
        if words[1:3] == ["old", "name"]:
            moved = request.path_qs.replace("/old/name", f"/{self.project}")
            return web.Response(status=301, headers={"Location": moved})
        if words[1:3] != self.project.split("/"):
            return _missing()
        try:
            return await self._answer(request, words[3], "/".join(words[4:]))
        except Exception:  # git does not know it
            return _missing()

    async def _answer(self, request: web.Request, kind: str, rest: str) -> web.Response:
        git = self._repository.git
        if kind == "branches" and not rest:
            said = git("for-each-ref", "--format=%(refname:strip=2) %(objectname)", "refs/heads")
            pairs = [line.split(" ") for line in said.splitlines()]
            found = [{"name": name, "commit": {"sha": commit}} for name, commit in pairs]
            return self._paged(request, found, lambda part: part)
        if kind == "branches":
            name = git("rev-parse", "--verify", f"refs/heads/{rest}")
            return web.json_response({"name": rest, "commit": {"sha": name}})
        if kind == "compare":
            base, head = rest.split("...")
            return self._compare(request, git("rev-parse", f"{base}^{{commit}}"), head)
        if rest:
            return self._commit(request, git("rev-parse", "--verify", f"{rest}^{{commit}}"))
        listed = git("rev-list", request.query["sha"]).split()
        return self._paged(request, [self._item(name) for name in listed], lambda part: part)

    def _compare(self, request: web.Request, base: str, head: str) -> web.Response:
        git = self._repository.git
        ahead = git("rev-list", "--reverse", f"{base}..{head}").split()
        behind = git("rev-list", f"{head}..{base}").split()
        status = (
            ("diverged" if ahead else "behind") if behind else "ahead" if ahead else "identical"
        )
        whole = [self._item(name) for name in ahead]
        about = {"status": status, "base_commit": self._item(base)}
        return self._paged(request, whole, lambda part: about | {"commits": part})

    def _commit(self, request: web.Request, name: str) -> web.Response:
        git = self._repository.git
        parents = git("rev-list", "--parents", "-1", name).split()[1:]
        if parents:
            said = git("diff", "-M", "--name-status", parents[0], name)
        else:
            said = git("show", "--format=", "--name-status", name)
        files: list[dict[str, str]] = []
        for line in said.splitlines():
            _, first, *renamed = line.split("\t")
            now = {"filename": renamed[0], "previous_filename": first} if renamed else {}
            files.append(now or {"filename": first})
        return self._paged(request, files, lambda part: self._item(name) | {"files": part})

    def _item(self, name: str) -> dict[str, Any]:
        git = self._repository.git
        at, *parents = git("log", "-1", "--format=%ct %P", name).split()
        date = datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z")
        return {
            "sha": name,
            "commit": {"committer": {"date": date}},
            "parents": [{"sha": parent} for parent in parents],
        }

    def _paged(self, request: web.Request, whole: list[Any], shape: Any) -> web.Response:
        page = int(request.query.get("page", "1"))
        last = page * self.page_size
        headers = {}
        if last < len(whole):
            following = request.url.update_query(page=page + 1)
            headers["Link"] = f'<{following}>; rel="next", <{following}>; rel="last"'
        body = json.dumps(shape(whole[last - self.page_size : last]))
        return web.Response(text=body, content_type="application/json", headers=headers)


def _missing() -> web.Response:
    return web.json_response({"message": "Not Found"}, status=404)


@asynccontextmanager
async def github_server(repository: Repository) -> AsyncIterator[GitHubServer]:
    server = GitHubServer(repository)
    async with serving(server.handle) as server.address:
        yield server
