"""The options under `issues` in the solver file."""

import os
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.domain.webhooks import check_url
from windlass_fuzz.config.finding_settings import FailureKind
from windlass_fuzz.config.settings import convert_settings
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.severity import severity_of

TrackerName = Literal["github", "gitlab", "webhook"]
LabelRule = FailureKind | Literal["private"]
FROM_ENVIRONMENT: Final = "env:"
_GITHUB: Final = re.compile(r"[\w-][\w.-]*/[\w.-]*[\w-]")
_GITLAB: Final = re.compile(r"[\w-][\w.-]*(/[\w.-]*[\w-])+")
ADDRESSES: Final[Mapping[TrackerName, str]] = {
    "github": "https://api.github.com",
    "gitlab": "https://gitlab.com/api/v4",
}
VARIABLES: Final[Mapping[TrackerName, str]] = {
    "github": "GITHUB_TOKEN",
    "gitlab": "GITLAB_TOKEN",
    "webhook": "WINDLASS_ISSUES_SECRET",
}


class IssueOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Where and how findings are filed.

    `project` is OWNER/NAME; for a webhook, `url` is its address, or `env:NAME` to take it from an
    environment variable. `token` names the variable with the token or the webhook's secret.
    Findings of the kinds in `private` become confidential issues, in `private_project` if that is
    given. Each issue gets its severity as a label; `labels` adds labels by kind, and for `private`.
    `attach_input: false` keeps inputs out of issues. Only bugs with a known origin are filed,
    unless `old` is true. At most `per_run` issues are filed in a run and `per_day` in 24 hours; one
    summary lists the other findings.
    """

    tracker: TrackerName = "github"
    project: str = ""
    api: str = ""
    url: str = ""
    token: str = ""
    label: str = "fuzzing"
    labels: Mapping[LabelRule, str | list[str]] = {}
    private: tuple[FailureKind, ...] = ()
    private_project: str = ""
    attach_input: bool = True
    old: bool = False
    per_run: int = 5
    per_day: int = 20

    @property
    def address(self) -> str:
        """Returns the address of the API, or of the webhook."""
        if self.tracker != "webhook":
            return self.api or ADDRESSES[self.tracker]
        if not self.url.startswith(FROM_ENVIRONMENT):
            return self.url
        return os.environ.get(self.url.removeprefix(FROM_ENVIRONMENT), "")

    @property
    def variable(self) -> str:
        """Returns the name of the environment variable with the token."""
        return self.token or VARIABLES[self.tracker]

    def is_private(self, finding: Finding) -> bool:
        """Returns whether only members of the project may see the issue of a finding."""
        return finding.kind in self.private

    def project_for(self, private: bool) -> str:
        """Returns where an issue is filed."""
        return self.private_project if private and self.private_project else self.project

    def labels_for(self, finding: Finding) -> list[str]:
        """Returns the labels of a finding's issue."""
        rules = [finding.kind, *(["private"] if self.is_private(finding) else [])]
        given = [self.labels.get(rule, []) for rule in rules]  # type: ignore[call-overload]
        more = [label for one in given for label in ([one] if isinstance(one, str) else one)]
        return list(dict.fromkeys([self.label, f"severity-{severity_of(finding)}", *more]))


def issue_options(given: Mapping[str, Any]) -> IssueOptions | None:
    """Returns the options, or None if no issues are to be filed."""
    if not given:
        return None
    options = convert_settings(dict(given), IssueOptions, "issues")
    _check(options)
    return options


def _check(options: IssueOptions) -> None:
    if options.tracker == "webhook":
        _check_webhook(options)
    elif not options.project:
        raise InvalidSetting("issues", "issues: key project is missing")
    else:
        _check_projects(options)
    if options.private and options.tracker == "github" and not options.private_project:
        message = (
            "issues.private: GitHub has no confidential issues; set issues.private_project to a "
            "private repository"
        )
        raise InvalidSetting("issues.private", message)
    for name, number in (("per_run", options.per_run), ("per_day", options.per_day)):
        if number < 0:
            raise InvalidInput(f"issues.{name}", "0 or more", number)


def _check_projects(options: IssueOptions) -> None:
    """Checks names; GitLab's groups may be nested."""
    nested = options.tracker == "gitlab"
    form, shown = (_GITLAB, "GROUP/NAME") if nested else (_GITHUB, "OWNER/NAME")
    for field in ("project", "private_project"):
        name = getattr(options, field)
        if name and not form.fullmatch(name):
            raise InvalidInput(f"issues.{field}", shown, name)


def _check_webhook(options: IssueOptions) -> None:
    if not options.url:
        raise InvalidSetting("issues", "issues: key url is missing")
    if not options.url.startswith(FROM_ENVIRONMENT):
        check_url(options.url, "issues.url")
