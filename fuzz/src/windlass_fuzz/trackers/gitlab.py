"""Issues at GitLab (REST API v4). Private findings are confidential issues."""

import os
from typing import Final, Literal
from urllib.parse import quote, urlsplit

from windlass.domain.values.errors import Conflict, NotFound
from windlass.ports.clock import Clock
from windlass_fuzz.sources.http_api import HttpApi, Service
from windlass_fuzz.trackers.options import IssueOptions
from windlass_fuzz.trackers.tracker import IssueText, Note

GITLAB: Final = Service("GitLab", "GITLAB_TOKEN", header="PRIVATE-TOKEN", prefix="")


class GitLabTracker:
    """The issues of one project, and of the private one if there is one."""

    def __init__(self, options: IssueOptions, clock: Clock) -> None:
        self._options = options
        token = os.environ.get(options.variable)
        service = GITLAB._replace(variable=options.variable)
        self._api = HttpApi(service, options.address, token, clock)

    async def find(self, mark: str, private: bool) -> str | None:
        label = quote(self._options.label, safe="")
        path = f"{self._path(self._options.project_for(private))}?scope=all&labels={label}"
        async for page in self._api.pages(path):
            for issue in page:
                if mark in str(issue.get("description") or ""):
                    return str(issue["web_url"])
        return None

    async def open(self, issue: IssueText) -> str:
        content = {
            "title": issue.title, "description": issue.body, "labels": ",".join(issue.labels),
            "confidential": issue.private,
        }  # fmt: skip
        path = self._path(self._options.project_for(issue.private))
        made = await self._api.post(path, content)
        if issue.private and made.get("confidential") is not True:
            raise Conflict(
                "not_confidential",
                f"GitLab did not make {made.get('web_url')} confidential; look at it now",
            )
        return str(made["web_url"])

    async def rewrite(self, address: str, issue: IssueText) -> None:
        content = {"title": issue.title, "description": issue.body}
        await self._api.put(self._issue(address), content)

    async def comment(self, address: str, note: Note) -> None:
        notes = f"{self._issue(address)}/notes"
        async for page in self._api.pages(notes):
            if any(note.mark in str(one.get("body") or "") for one in page):
                return
        await self._api.post(notes, {"body": f"{note.text}\n{note.mark}\n"})

    async def close(self, address: str, note: Note) -> None:
        await self._set_state(address, "close", note)

    async def reopen(self, address: str, note: Note) -> None:
        await self._set_state(address, "reopen", note)

    async def disconnect(self) -> None:
        await self._api.close()

    async def _set_state(self, address: str, event: Literal["close", "reopen"], note: Note) -> None:
        """Comments before it changes the state: a run that fails in between repeats both."""
        await self.comment(address, note)
        await self._api.put(self._issue(address), {"state_event": event})

    def _path(self, project: str) -> str:
        return f"/projects/{quote(project, safe='')}/issues"

    def _issue(self, address: str) -> str:
        """Returns the path of an issue; a record may not lead to other projects.

        GitLab may be installed below a path of its host.
        """
        path, _, number = urlsplit(address).path.rpartition("/")
        for project in (self._options.project, self._options.private_project):
            ends = (f"/{project}/-/issues".lower(), f"/{project}/-/work_items".lower())
            if project and path.lower().endswith(ends):
                return f"{self._path(project)}/{quote(number, safe='')}"
        raise NotFound(f"issue of {self._options.project}", address)
