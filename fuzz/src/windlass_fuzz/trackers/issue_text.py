"""Writes the text of issues: the contents of a finding, with or without its input."""

import base64
from typing import Any, Final

import msgspec

from windlass_fuzz.findings.markdown import code, one_line
from windlass_fuzz.findings.record import Finding, shorten
from windlass_fuzz.findings.report import end_text, input_name, render, summary
from windlass_fuzz.trackers.branch_notes import branch_lines, news_mark, news_text
from windlass_fuzz.trackers.options import IssueOptions
from windlass_fuzz.trackers.tracker import IssueText, Note

LISTED: Final = 100  # findings in a summary
ATTACHED: Final = 24 * 1024  # bytes
MAX_TITLE: Final = 250  # characters; GitHub takes 256, GitLab 255
MAX_BODY: Final = 65_000  # characters; GitHub takes 65,536
SHORT_OUTPUT: Final = 1_000  # characters of an output that is too long once it is escaped
LINE: Final = 120
MIN_QUOTE: Final = 4  # a shorter input occurs in any output by chance
WITHHELD: Final = "(input withheld)"


def text_of(
    finding: Finding, solver: str, location: str, options: IssueOptions, data: bytes | None
) -> IssueText:
    """Returns the issue of a finding; `data` is its input, if available."""
    mark = mark_of(finding, solver)
    shown = finding if options.attach_input else without_input(finding)
    attached = data if options.attach_input else None
    page = render(shown, solver, location)
    room = MAX_BODY - len(mark) - 2
    if len(page) > room:
        short = msgspec.structs.replace(shown, output=shorten(shown.output, SHORT_OUTPUT))
        page = render(short, solver, location)[:room]
    more = "".join(f"\n{line}" for line in _attachment(shown, attached))
    return IssueText(
        mark=mark, title=f"{solver}: {one_line(finding.title)}"[:MAX_TITLE],
        body=f"{page}{more if len(page) + len(more) <= room else ''}\n{mark}\n",
        labels=options.labels_for(finding), private=options.is_private(finding),
        document=_document(finding, solver, attached),
    )  # fmt: skip


def mark_of(finding: Finding, solver: str) -> str:
    """Returns the line by which the issue of a finding is found again."""
    return f"<!-- windlass finding {solver}/{finding.key} -->"


def without_input(finding: Finding) -> Finding:
    """Returns a record that does not show the input, nor quotes it from the output."""
    output = finding.output
    if len(text := finding.excerpt.strip()) >= MIN_QUOTE:
        output = output.replace(text, WITHHELD)
    return msgspec.structs.replace(finding, excerpt="", binary="", output=output)


def note_of(finding: Finding, solver: str) -> Note:
    """Returns the note about a changed state of a finding."""
    if finding.state != "closed":
        text = f"The bug is back, last seen in {(finding.seen_in or [finding.found_in])[-1]}."
        text += f"\n\n{branch_lines(finding)}\n" if finding.branches else ""
        event = f"reopened {finding.reopened}"
    elif finding.closed_in is not None:
        text = f"{_ends(finding)}. All kept inputs run fine there."
        event = f"closed {finding.reopened} {finding.closed_in}"
    elif finding.closed_why:
        text = f"Closed: {code(finding.closed_why)}. Nobody has seen a fix."
        event = f"closed {finding.reopened}"
    else:
        text = f"Closed by hand: {code(finding.closed_by)}"
        event = f"closed {finding.reopened}"
    mark = f"<!-- windlass {event} {solver}/{finding.key} -->"
    return Note(mark, text, _document(finding, solver, None))


def branch_note(finding: Finding, solver: str) -> Note:
    """Returns the note about changed states of branches of an open finding."""
    mark = f"<!-- windlass branches {news_mark(finding)} {solver}/{finding.key} -->"
    return Note(mark, news_text(finding), _document(finding, solver, None))


def _ends(finding: Finding) -> str:
    """Says where a bug ended, on each branch if there are several."""
    ends = [
        f"{end_text(finding, one.fixed_in)} ({code(one.name)})"
        for one in finding.branches
        if one.watched and one.fixed_in is not None
    ] or [end_text(finding, str(finding.closed_in))]
    text = ", ".join(ends)
    return text[0].upper() + text[1:]


def summary_of(unfiled: list[Finding], solver: str, day: str, options: IssueOptions) -> IssueText:
    """Returns the issue of the day that lists findings without an issue of their own.

    Everyone can read it, so private findings are only counted.
    """
    mark = f"<!-- windlass summary {solver} {day} -->"
    public = [finding for finding in unfiled if not options.is_private(finding)]
    rows = _rows(public)
    if len(public) > len(rows):
        rows.append(f"- and {len(public) - len(rows)} more")
    if len(unfiled) > len(public):
        rows.append(f"- and {len(unfiled) - len(public)} private ones")
    text = (
        f"The fuzzer found more bugs of {solver} than it may file as issues "
        f"({options.per_run} per run, {options.per_day} per day). "
        f"`windlass fuzz findings {solver}` lists all of them.\n\n"
    )
    return IssueText(
        mark=mark, title=f"{solver}: {len(unfiled)} more findings on {day}",
        body=text + "\n".join(rows) + f"\n{mark}\n", labels=[options.label],
        document={"solver": solver, "findings": [finding.key for finding in public[:LISTED]]},
    )  # fmt: skip


def _rows(findings: list[Finding]) -> list[str]:
    """Returns a line for each finding, as many as an issue has room for."""
    rows: list[str] = []
    room = MAX_BODY - SHORT_OUTPUT
    for finding in findings[:LISTED]:
        row = f"- {summary(finding)}"
        room -= len(row) + 1
        if room < 0:
            break
        rows.append(row)
    return rows


def _attachment(finding: Finding, data: bytes | None) -> list[str]:
    """Returns an input that the report does not show, folded, if it is short enough."""
    if data is None or finding.excerpt or finding.binary or len(data) > ATTACHED:
        return []
    code = base64.b64encode(data).decode()
    lines = [code[start : start + LINE] for start in range(0, len(code), LINE)]
    title = f"Input, base64 of {input_name(finding)}"
    return [f"<details><summary>{title}</summary>", "", "```", *lines, "```", "", "</details>", ""]


def _document(finding: Finding, solver: str, data: bytes | None) -> dict[str, Any]:
    about: dict[str, Any] = {
        "solver": solver, "key": finding.key, "kind": finding.kind, "state": finding.state,
        "signature": finding.title, "engine": finding.engine, "found_in": finding.found_in,
        "introduced_by": finding.introduced_by, "last_good": finding.last_good,
        "suspects": finding.suspects, "fixed_in": finding.closed_in,
        "input_bytes": finding.size,
    }  # fmt: skip
    if finding.branches:
        about["branches"] = [
            {
                "name": one.name, "state": one.state, "since": one.since, "merge": one.merge,
                "fixed_in": one.fixed_in, "watched": one.watched,
            }
            for one in finding.branches
        ]  # fmt: skip
    if data is not None and len(data) <= ATTACHED:
        about["input"] = base64.b64encode(data).decode()
    return about
