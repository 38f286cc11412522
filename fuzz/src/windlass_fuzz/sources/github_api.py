"""The GitHub API. The address is configurable for GitHub Enterprise."""

import re
from typing import Final
from urllib.parse import quote, urlsplit

from windlass.ports.clock import Clock
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.sources.http_api import PATIENCE_MS, HttpApi, Service

GITHUB: Final = Service("GitHub", "GITHUB_TOKEN", accept="application/vnd.github+json")
_PROJECT: Final = re.compile(r"([\w.-]+)/([\w.-]+?)(?:\.git)?/?\Z")


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


class GitHub(HttpApi):
    """One repository at the API. Private ones and higher rate limits need `token`."""

    def __init__(
        self, base: str, project: str, token: str | None, clock: Clock,
        patience_ms: int = PATIENCE_MS,
    ) -> None:  # fmt: skip
        super().__init__(GITHUB, base, token, clock, patience_ms)
        self.project = project

    def path(self, *words: str) -> str:
        """Returns a path below the repository."""
        return "/".join([f"/repos/{self.project}", *(quote(word, safe="") for word in words)])
