"""What an issue says about branches, and when it needs an update. Pure functions.

A record keeps what its issue was told about each branch. A branch with an uncertain state, or with
more exact dates, is not news.
"""

import hashlib
from typing import Final

from windlass_fuzz.findings.markdown import code
from windlass_fuzz.findings.record import Finding, OnBranch
from windlass_fuzz.findings.report import branch_text

DIGEST: Final = 16


def told_now(finding: Finding) -> dict[str, str]:
    """Returns what is told about each branch; one that is unsure stays as it was told."""
    sure = {one.name: _told(one) for one in finding.branches if one.state != "unsure"}
    known = {one.name for one in finding.branches}
    before = {name: said for name, said in finding.issue_branches.items() if name in known}
    return {**before, **sure}


def has_branch_news(finding: Finding) -> bool:
    """Returns whether a branch is in another state than its issue says."""
    told = finding.issue_branches
    return any(told.get(name) != said for name, said in told_now(finding).items())


def branch_lines(finding: Finding) -> str:
    """Returns a line for each branch."""
    return "\n".join(f"- {code(one.name)}: {branch_text(one)}" for one in finding.branches)


def news_text(finding: Finding) -> str:
    """Names the branches with news, and lists the state on all of them."""
    now = told_now(finding)
    changed = [name for name, said in now.items() if finding.issue_branches.get(name) != said]
    names = ", ".join(code(name) for name in changed)
    return f"The state on {names} has changed.\n\n{branch_lines(finding)}\n"


def news_mark(finding: Finding) -> str:
    """Returns the id of this news; if a state comes again later, that is different news."""
    said = f"{finding.issue_updates} {sorted(told_now(finding).items())}"
    return hashlib.sha256(said.encode()).hexdigest()[:DIGEST]


def _told(one: OnBranch) -> str:
    if not one.watched:
        return "not watched"
    return f"fixed in {one.fixed_in}" if one.state == "fixed" else one.state
