"""A finding as a page that a person reads, and can act on."""

import re
import shlex
from pathlib import PurePosixPath

from windlass.domain.values.times import format_moment
from windlass.fuzzing.findings.record import Finding

SHORT = 12


def render(finding: Finding, solver: str, location: str) -> str:
    """The report in Markdown; `location` is where the input is kept."""
    return "\n".join(
        [
            f"# {finding.title}",
            "",
            f"{solver}, finding `{finding.key}`: **{finding.state}**, {_origin(finding)}",
            "",
            *_facts(finding),
            "",
            "## See it",
            "",
            f"The input ({finding.size} bytes) is kept as `{location}`. With a build of",
            f"`{finding.found_in[:SHORT]}`:",
            "",
            "```sh",
            f"windlass fuzz findings reproduce {solver} {finding.key}",
            f"# or by hand, in the folder of the build: {shlex.join(finding.command)}",
            "```",
            "",
            *_block("The input", finding.excerpt),
            *_block("What it says", finding.output.strip() or "(nothing)"),
        ]
    )


def _block(title: str, text: str) -> list[str]:
    """Text as it is, between fences that are longer than any in it."""
    if not text:
        return []
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
    return [f"## {title}", "", fence, text.rstrip("\n"), fence, ""]


def summary(finding: Finding) -> str:
    """One line."""
    return f"{finding.key} {finding.state}: {finding.title} ({_origin(finding)})"


def _origin(finding: Finding) -> str:
    if finding.introduced_by is None:
        return "no build is left that tells where it came from"
    name = finding.introduced_by[:SHORT]
    if finding.last_good is None:
        return f"as old as the oldest build ({name})"
    return f"introduced by {name}"


def _facts(finding: Finding) -> list[str]:
    rows = [
        ("found in", f"`{finding.found_in}`, {format_moment(finding.found_at_ms)}"),
        ("reproduced", f"{finding.shown} of {finding.tried} runs, met {_times_of(finding.times)}"),
        ("engine", finding.engine),
    ]
    if finding.introduced_by is not None:
        rows.append(("first bad build", f"`{finding.introduced_by}` {finding.introduced_subject}"))
    if finding.last_good is not None:
        rows.append(("last good build", f"`{finding.last_good}`"))
    if finding.old:
        rows.append(("not to blame", f"`{finding.found_in}`: builds before it fail too"))
    if finding.closed_in is not None:
        rows.append(("gone in", f"`{finding.closed_in}`"))
    if finding.reopened:
        rows.append(("came back", _times_of(finding.reopened)))
    return ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows)]


def _times_of(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def input_name(finding: Finding) -> str:
    """The name of the input's file for a person."""
    return f"{finding.key}{PurePosixPath(finding.input).suffix}"
