"""Compares what the pipeline says about bugs with what was planted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from tests.fuzzing.trial.history import History
from tests.fuzzing.trial.planted import Bug, Part
from windlass_fuzz.findings.record import Finding, Origin

MINUTE_MS = 60_000
MAX_SUSPECTS = 3
LIVES = "lives"


@dataclass
class Verdict:
    """What the pipeline made of one planted bug; "" where there is nothing to complain about."""

    project: str
    part: Part
    kind: str
    found: bool = False
    issues: int = 0
    minutes: float | None = None
    origin: str = "none"
    fix: str = "none"

    @property
    def filed_once(self) -> bool:
        return self.issues == 1


@dataclass
class Watch:
    """The findings of one project after each push; notes what was closed or reopened wrongly."""

    history: History
    wrongly_closed: list[str] = field(default_factory=list)
    wrongly_reopened: list[str] = field(default_factory=list)
    _closed: set[str] = field(default_factory=set)

    def look(self, findings: Sequence[Finding]) -> None:
        """Notes the findings of a bug that lives which are closed, and the other way round."""
        name = self.history.planted.source.name
        for part, life in self.history.lives.items():
            for one in fitting(self.history.planted.bugs[part], findings):
                said = f"{name} {part}: {one.key} {one.title}"
                closed = one.state == "closed"
                if closed and life.alive and life.pushed_ms:
                    self.wrongly_closed.append(said)
                if not closed and one.key in self._closed and not life.alive:
                    self.wrongly_reopened.append(said)
                (self._closed.add if closed else self._closed.discard)(one.key)

    def verdicts(self, findings: Sequence[Finding]) -> list[Verdict]:
        """Returns what is known of each bug that was pushed."""
        lives = self.history.lives.items()
        return [self._verdict(part, findings) for part, life in lives if life.pushed_ms]

    def strangers(self, findings: Sequence[Finding]) -> list[Finding]:
        """Returns the findings that are none of the planted bugs."""
        bugs = self.history.planted.bugs.values()
        known = {one.key for bug in bugs for one in fitting(bug, findings)}
        return [one for one in findings if one.key not in known]

    def _verdict(self, part: Part, findings: Sequence[Finding]) -> Verdict:
        planted, life = self.history.planted, self.history.lives[part]
        bug = planted.bugs[part]
        mine = fitting(bug, findings)
        found = Verdict(planted.source.name, part, bug.kind, bool(mine))
        issues = {one.issue: one for one in mine if one.issue}
        found.issues = len(issues)
        if issues:
            first = min(issues.values(), key=lambda one: one.issue_at_ms)
            found.minutes = (first.issue_at_ms - life.pushed_ms) / MINUTE_MS
            found.origin = "; ".join(
                filter(None, (_complaint(one, life.began) for one in first.origins))
            )
            ends = [first.ends[one] for one in first.fixes if one in first.ends]
            found.fix = "none" if first.live else "no search"
            if life.alive:
                found.fix = LIVES
            elif ends and not first.live:
                found.fix = _complaint(ends[-1], life.ended, limit=0)
        return found


def fitting(bug: Bug, findings: Sequence[Finding]) -> list[Finding]:
    """Returns the findings with the words of a bug in one of their names."""
    return [
        one
        for one in findings
        if any(all(word in name for word in bug.words) for name in one.names)
    ]


def _complaint(search: Origin, commits: Sequence[str], limit: int = MAX_SUSPECTS) -> str:
    """Returns why a search is wrong, or "" if its result is one of the commits or contains one.

    `limit` is how many commits may be left; 0 allows any number.
    """
    if search.exact:
        return "" if search.culprit in commits else f"wrong: {search.culprit[:12]}"
    if limit and search.suspect_count > limit:
        return f"{search.suspect_count} suspects"
    if search.last_good is None:
        return "no good build"
    return "" if set(search.suspects) & set(commits) else "wrong range"


def report(verdicts: Sequence[Verdict], watches: Sequence[Watch], strangers: int) -> str:
    """Returns the score as text: a line for each bug, then the goals."""
    head = "| project | planted | kind | issues | minutes | origin | fix |"
    lines = [head, "|---|---|---|--:|--:|---|---|"]
    for one in verdicts:
        time = "" if one.minutes is None else f"{one.minutes:.1f}"
        count = str(one.issues) if one.found else "not found"
        lines.append(
            f"| {one.project} | {one.part} | {one.kind} | {count} | {time} "
            f"| {one.origin or 'right'} | {one.fix or 'right'} |"
        )
    found = [one for one in verdicts if one.found]
    filed = [one for one in verdicts if one.issues]
    fixed = [one for one in filed if one.fix != LIVES]
    issues = sum(one.issues for one in filed)
    closed = [said for watch in watches for said in watch.wrongly_closed]
    reopened = [said for watch in watches for said in watch.wrongly_reopened]
    minutes = sorted(one.minutes for one in filed if one.minutes is not None)
    figures = [
        ("found", len(found), len(verdicts), ""),
        ("filed once", sum(one.filed_once for one in found), len(found), "≥ 90 %"),
        ("right origin", sum(not one.origin for one in filed), len(filed), "≥ 90 %"),
        ("right fix", sum(not one.fix for one in fixed), len(fixed), "100 %"),
        ("duplicates", issues - len(filed), issues, "≤ 5 %"),
    ]
    lines += ["", "| figure | of | reached | goal |", "|---|---|--:|---|"]
    for name, reached, among, goal in figures:
        share = 100 * reached / among if among else 0
        lines.append(f"| {name} | {reached} of {among} | {share:.0f} % | {goal} |")
    lines.append(f"| false closings | | {len(closed)} | 0 |")
    lines.append(f"| false reopenings | | {len(reopened)} | 0 |")
    if minutes:
        middle, most = median(minutes), minutes[-1]
        lines.append(
            f"| minutes from push to issue, median and most | | {middle:.1f}, {most:.1f} | |"
        )
    lines.append(f"| findings that nobody planted | | {strangers} | |")
    lines += ["", *(f"closed wrongly: {one}" for one in closed)]
    lines += [f"reopened wrongly: {one}" for one in reopened]
    return "\n".join(lines).rstrip() + "\n"
