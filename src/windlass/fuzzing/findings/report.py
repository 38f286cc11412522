"""Renders a finding as a Markdown report."""

import re
import shlex
from pathlib import PurePosixPath

from windlass.domain.values.times import format_moment
from windlass.fuzzing.findings.record import Finding

SHORT = 12


def render(finding: Finding, solver: str, location: str) -> str:
    """Returns the report; `location` is the key of the input in the bucket."""
    return "\n".join(
        [
            f"# {finding.title}",
            "",
            f"{solver}, finding `{finding.key}`: **{finding.state}**, {_origin(finding)}",
            "",
            *_facts(finding),
            "",
            "## Reproduce",
            "",
            f"The input ({finding.size} bytes) is stored as `{location}`. With the build of",
            f"`{finding.found_in[:SHORT]}`:",
            "",
            "```sh",
            f"windlass fuzz findings reproduce {solver} {finding.key}",
            f"# or by hand, in the folder of the build: {shlex.join(finding.command)}",
            "```",
            "",
            *_block("Input", finding.excerpt),
            *_block("Output", finding.output.strip() or "(nothing)"),
        ]
    )


def _block(title: str, text: str) -> list[str]:
    """Returns text in a code block whose fence is longer than any in the text."""
    if not text:
        return []
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
    return [f"## {title}", "", fence, text.rstrip("\n"), fence, ""]


def summary(finding: Finding) -> str:
    """Returns a finding in one line."""
    return f"{finding.key} {finding.state}: {finding.title} ({_origin(finding)})"


def _origin(finding: Finding) -> str:
    if finding.introduced_by is None:
        return "origin unknown: no build is left to test"
    name = finding.introduced_by[:SHORT]
    if finding.last_good is None:
        return f"as old as the oldest build ({name})"
    return f"introduced by {name}"


def _facts(finding: Finding) -> list[str]:
    rows = [
        ("found in", f"`{finding.found_in}`, {format_moment(finding.found_at_ms)}"),
        ("reproduced", f"{finding.shown} of {finding.tried} runs, seen {_times_of(finding.times)}"),
        ("engine", finding.engine),
    ]
    if finding.introduced_by is not None:
        rows.append(("first bad build", f"`{finding.introduced_by}` {finding.introduced_subject}"))
    if finding.last_good is not None:
        rows.append(("last good build", f"`{finding.last_good}`"))
    if finding.old:
        rows.append(("not introduced by", f"`{finding.found_in}`: earlier builds fail too"))
    if finding.closed_in is not None:
        rows.append(("fixed in", f"`{finding.closed_in}`"))
    if finding.reopened:
        rows.append(("reopened", _times_of(finding.reopened)))
    return ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows)]


def _times_of(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def input_name(finding: Finding) -> str:
    """Returns a file name for the input of a finding."""
    return f"{finding.key}{PurePosixPath(finding.input).suffix}"
