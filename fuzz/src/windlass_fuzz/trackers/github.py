"""Issues at GitHub. Private findings go to a repository of their own."""

import os
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from windlass.domain.values.errors import NotFound
from windlass.ports.clock import Clock
from windlass_fuzz.sources.github_api import GITHUB
from windlass_fuzz.sources.http_api import HttpApi
from windlass_fuzz.trackers.options import IssueOptions
from windlass_fuzz.trackers.tracker import IssueText, Note


class GitHubTracker:
    """The issues of one repository, and of the private one if there is one."""

    def __init__(self, options: IssueOptions, clock: Clock) -> None:
        self._options = options
        token = os.environ.get(options.variable)
        service = GITHUB._replace(variable=options.variable)
        self._api = HttpApi(service, options.address, token, clock)

    async def find(self, mark: str, private: bool) -> str | None:
        label = quote(self._options.label, safe="")
        project = self._options.project_for(private)
        async for page in self._api.pages(f"{self._path(project)}?state=all&labels={label}"):
            for issue in page:
                if mark in str(issue.get("body") or ""):
                    return _address(issue, project)
        return None

    async def open(self, issue: IssueText) -> str:
        content = {"title": issue.title, "body": issue.body, "labels": issue.labels}
        project = self._options.project_for(issue.private)
        return _address(await self._api.post(self._path(project), content), project)

    async def rewrite(self, address: str, issue: IssueText) -> None:
        await self._api.patch(self._issue(address), {"title": issue.title, "body": issue.body})

    async def comment(self, address: str, note: Note) -> None:
        comments = f"{self._issue(address)}/comments"
        async for page in self._api.pages(comments):
            if any(note.mark in str(one.get("body") or "") for one in page):
                return
        await self._api.post(comments, {"body": f"{note.text}\n{note.mark}\n"})

    async def close(self, address: str, note: Note) -> None:
        await self._set_state(address, "closed", note)

    async def reopen(self, address: str, note: Note) -> None:
        await self._set_state(address, "open", note)

    async def disconnect(self) -> None:
        await self._api.close()

    async def _set_state(self, address: str, state: Literal["open", "closed"], note: Note) -> None:
        """Comments before it changes the state: a run that fails in between repeats both."""
        await self.comment(address, note)
        await self._api.patch(self._issue(address), {"state": state})

    def _path(self, project: str) -> str:
        return f"/repos/{project}/issues"

    def _issue(self, address: str) -> str:
        """Returns the path of an issue; a record may not lead to other projects."""
        path, _, number = urlsplit(address).path.strip("/").rpartition("/")
        for project in (self._options.project, self._options.private_project):
            if project and path.lower() == f"{project}/issues".lower():
                return f"{self._path(project)}/{quote(number, safe='')}"
        raise NotFound(f"issue of {self._options.project}", address)


def _address(issue: dict[str, Any], project: str) -> str:
    """Returns the address of an issue under the project name in the solver file.

    If a repository was renamed, GitHub redirects from the old name to the new one, which `_issue`
    does not know.
    """
    parts = urlsplit(str(issue["html_url"]))
    return parts._replace(path=f"/{project}/issues/{parts.path.rpartition('/')[2]}").geturl()
