"""Finds new commits through the GitHub API, without a clone."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from windlass.domain.values.errors import NotFound, WindlassError
from windlass_fuzz.sources.branches import MAX_BRANCHES, choose, fitting
from windlass_fuzz.sources.commits import (
    LEFT_LAST,
    NO_LAST,
    UNKNOWN_LAST,
    Commit,
    Head,
    History,
    Watched,
)
from windlass_fuzz.sources.github_api import GitHub


class GitHubCommitSource:
    """A `CommitSource` that uses the GitHub API; `head` is the branch's, if known."""

    def __init__(self, api: GitHub, branch: str, head: str = "") -> None:
        self._api = api
        self._branch = branch
        self._known_head = head

    async def watched(self, wanted: Sequence[str]) -> Watched:
        """Lists branches with one request per page; fetches commit times only if there are too
        many.
        """
        heads: list[Head] = []
        try:
            async for page in self._api.pages(self._api.path("branches")):
                heads += [Head(str(item["name"]), str(item["commit"]["sha"])) for item in page]
        except NotFound:
            raise self._no_branch(wanted[0]) from None
        found = fitting(wanted, heads)
        if len(found) > MAX_BRANCHES:
            found = [head._replace(at_ms=await self.time_of(head.commit)) for head in found]
        chosen = choose(wanted, found)
        if wanted[0] in chosen.missing:
            raise self._no_branch(wanted[0])
        return chosen

    def on(self, head: Head) -> "GitHubCommitSource":
        return GitHubCommitSource(self._api, head.name, head.commit)

    async def since(self, last: str | None, newest: int) -> History:
        head = self._known_head or await self._head()
        if last == self._known_head != "":
            return History(head, ())
        if last is None:
            return await self._newest(head, newest, NO_LAST)
        found: dict[str, Any] = {}
        start: int | None = None
        try:
            async for page in self._api.pages(self._api.path("compare", f"{last}...{head}")):
                if page["status"] not in ("ahead", "identical"):
                    return await self._newest(head, newest, LEFT_LAST)
                found.update((item["sha"], item) for item in page["commits"])
                start = _at_ms(page["base_commit"])
        except NotFound:
            return await self._newest(head, newest, UNKNOWN_LAST)
        return History(head, _first_parents(found, head), last_ms=start)

    async def files(self, commit: str) -> Sequence[str]:
        names: list[str] = []
        async for page in self._api.pages(self._api.path("commits", commit)):
            for file in page.get("files") or ():
                names.append(file["filename"])
                if file.get("previous_filename"):
                    names.append(file["previous_filename"])
        return names

    async def time_of(self, commit: str) -> int:
        try:
            return _at_ms(await self._api.get(self._api.path("commits", commit)))
        except NotFound:
            return 0

    async def resolve(self, commit: str) -> str:
        try:
            return str((await self._api.get(self._api.path("commits", commit)))["sha"])
        except NotFound:
            raise NotFound("commit", commit) from None

    async def close(self) -> None:
        await self._api.close()

    async def _head(self) -> str:
        try:
            return str(
                (await self._api.get(self._api.path("branches", self._branch)))["commit"]["sha"]
            )
        except NotFound:
            raise self._no_branch(self._branch) from None

    def _no_branch(self, name: str) -> WindlassError:
        return WindlassError(
            f"branch {name} does not exist in {self._api.project} at GitHub; if it was renamed or "
            "deleted, change `branch` in the solver file; for a private repository, set "
            "GITHUB_TOKEN"
        )

    async def _newest(self, head: str, newest: int, why: str) -> History:
        found: dict[str, Any] = {}
        async for page in self._api.pages(f"{self._api.path('commits')}?sha={head}"):
            found.update((item["sha"], item) for item in page)
            if len(line := _first_parents(found, head)) >= newest or not page:
                return History(head, line[-newest:], why)
        return History(head, _first_parents(found, head)[-newest:], why)


def _first_parents(found: dict[str, Any], head: str) -> tuple[Commit, ...]:
    """Returns the first-parent line among these commits, oldest first."""
    line: list[Commit] = []
    name: str | None = head
    while name in found:
        item = found[name]
        line.append(Commit(str(item["sha"]), _at_ms(item)))
        name = item["parents"][0]["sha"] if item["parents"] else None
    return tuple(reversed(line))


def _at_ms(item: Any) -> int:
    return int(datetime.fromisoformat(item["commit"]["committer"]["date"]).timestamp() * 1000)
