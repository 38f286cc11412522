"""Renders a finding as a Markdown report."""

import base64
import shlex
from collections.abc import Callable
from typing import Literal

from windlass.domain.values.quantities import format_duration, format_moment
from windlass_fuzz.buckets.layout import plain_ending
from windlass_fuzz.findings.markdown import code, code_block, count_of
from windlass_fuzz.findings.record import Finding, OnBranch
from windlass_fuzz.findings.severity import effect_of, severity_of

Where = Literal["bucket", "check", "archive"]
SHORT = 12
ROW = 16  # bytes in a line of a hexdump


def render(finding: Finding, solver: str, location: str, where: Where = "bucket") -> str:
    """Returns the report; `location` is the key of the input in the bucket.

    In the files of a check or in an archive, it is the input's file.
    """
    return "\n".join(
        [
            f"# {code(finding.title)}",
            "",
            f"{solver}, finding `{finding.key}`: {_state(finding)}, {_origin(finding)}",
            "",
            *_facts(finding),
            "",
            *_origins(finding),
            *_branches(finding),
            *_time_line(finding),
            "## Reproduce",
            "",
            *_reproduce(finding, solver, location, where),
            "",
            *code_block("Input", finding.excerpt),
            *_binary(finding),
            *code_block(_output_title(finding), finding.output.strip() or "(nothing)"),
        ]
    )


def _output_title(finding: Finding) -> str:
    """Names the run that the output is from."""
    if not finding.output_in:
        return "Output"
    return f"Output of {finding.output_of} with the build of {finding.output_in[:SHORT]}"


def _reproduce(finding: Finding, solver: str, location: str, where: Where) -> list[str]:
    """Returns where the input is and how to run it."""
    which = f"`{finding.shown_in[:SHORT]}`{_combination(finding)}"
    size = count_of(finding.size, "byte")
    by_hand = shlex.join(finding.command)
    if where == "archive":
        both = f"The input ({size}) is `{location}`, the build of {which} is `build/`."
        return [
            both,
            "",
            "```sh",
            "./run.sh        # or, in the debugger:",
            "./run.sh --gdb",
            "```",
        ]
    if where == "check":
        there = f"The input ({size}) is `{location}` among the files of the check. Build {which},"
        how = "copy the input to the folder of the build, and run there:"
        return [there, how, "", "```sh", by_hand, "```"]
    command = f"windlass fuzz reproduce {solver} {finding.key}"
    return [
        f"The input ({size}) is stored as `{location}`. With the", f"build of {which}:", "",
        "```sh", command, f"# or by hand, in the folder of the build: {by_hand}", "```",
    ]  # fmt: skip


def _combination(finding: Finding) -> str:
    return f" for `{finding.combination}`" if finding.combination else ""


def _binary(finding: Finding) -> list[str]:
    """Returns a binary input as hexdump and base64, if it is short."""
    if not finding.binary or finding.excerpt:
        return []
    data = base64.b64decode(finding.binary)
    rows = [data[start : start + ROW] for start in range(0, len(data), ROW)]
    dump = "\n".join(
        f"{number * ROW:08x}  {row.hex(' '):<{ROW * 3}} |{_printable(row)}|"
        for number, row in enumerate(rows)
    )
    restore = f"base64 -d <<< {finding.binary} > {input_name(finding)}"
    return [*code_block("Input (hexdump)", dump), *code_block("Input (base64)", restore)]


def _printable(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)


def summary(finding: Finding) -> str:
    """Returns a finding in one line."""
    branches = branches_in_short(finding, code)
    more = f"; {branches}" if branches else ""
    return f"{finding.key} {finding.state}: {code(finding.title)} ({_origin(finding)}{more})"


def branches_in_short(finding: Finding, shown: Callable[[str], str] = str) -> str:
    """Returns on which of several branches a bug is alive, and on which it is fixed.

    `shown` escapes a name: anybody who may push chooses names.
    """
    parts = []
    for state in ("alive", "unsure", "fixed"):
        fitting = [one for one in finding.branches if one.watched and one.state == state]
        names = [shown(one.name) for one in fitting]
        if names:
            parts.append(f"{state} on {', '.join(names)}")
    return "; ".join(parts)


def branch_text(one: OnBranch) -> str:
    """Returns what is known about a bug on one branch."""
    since = ""
    if one.since is not None:
        certain = "" if one.exact else " or an earlier commit"
        since = f" since {one.since[:SHORT]}{certain}"
        since += f", through the merge {one.merge[:SHORT]}" if one.merge else ""
    if one.state == "fixed" and one.fixed_in is not None:
        text = (
            f"fixed in {one.fixed_in[:SHORT]}, was there{since}"
            if since
            else (f"fixed in {one.fixed_in[:SHORT]}")
        )
    elif one.state == "unsure":
        text = f"unsure: {one.why}"
    else:
        text = f"alive{since}"
    return text if one.watched else f"no longer watched; when last seen: {text}"


def blamed(finding: Finding) -> str:
    """Returns the commit that introduced a bug, in short, or why it is not known."""
    if finding.last_good is None and finding.origins and finding.origins[-1].cut_short:
        return "not known yet"
    if finding.introduced_by is None or finding.last_good is None:
        return "older"
    others = len(finding.suspects) - 1
    more = f" or {count_of(others, 'other')}" if others > 0 else ""
    return f"{finding.introduced_by[:SHORT]}{more}"


def _origin(finding: Finding) -> str:
    if finding.introduced_by is None:
        return "origin unknown: no build is left to test"
    name = finding.introduced_by[:SHORT]
    if finding.last_good is None and finding.origins and finding.origins[-1].cut_short:
        return f"no newer than {name}, the search is not finished"
    if finding.last_good is None:
        return f"as old as the oldest build ({name})"
    if len(finding.suspects) > 1:
        good = finding.last_good[:SHORT]
        return f"introduced after {good} by {name} or one of the commits between"
    return f"introduced by {name}"


def _state(finding: Finding) -> str:
    return f"**{finding.state}** {finding.kind.replace('_', ' ')}"


def _origins(finding: Finding) -> list[str]:
    """Returns a table of the bug's origins, unless a single commit says it all."""
    assumed = any(one.assumed for one in finding.origins)
    if len(finding.origins) < 2 and not assumed and len(finding.suspects) < 2:
        return []
    lines = ["## When it appeared", ""]
    for one in finding.origins:
        good = "an unknown commit" if one.last_good is None else f"`{one.last_good[:SHORT]}`"
        end = f", gone in `{one.gone_in[:SHORT]}`" if one.gone_in else ""
        lines.append(f"- after {good}, in `{one.culprit[:SHORT]}` {code(one.subject)}{end}")
        if one.suspect_count > 1:
            names = ", ".join(f"`{commit[:SHORT]}`" for commit in one.suspects)
            lines.append(f"  - {one.suspect_count} commits may be to blame: {names}")
        lines += [f"  - assumed: {text}" for text in one.assumed]
    return [*lines, ""]


def _branches(finding: Finding) -> list[str]:
    """Returns what is known on each branch, if the solver has several."""
    if not finding.branches:
        return []
    rows = [f"- {code(one.name)}: {branch_text(one)}" for one in finding.branches]
    return ["## Branches", "", *rows, ""]


def time_line(finding: Finding) -> list[str]:
    """Returns when each step from the commit to the issue was made, and how long after the first.

    A record that was made before time lines has none.
    """
    if not finding.moments:
        return []
    filed = {"filed": finding.issue_at_ms} if finding.issue_at_ms else {}
    moments = sorted({**finding.moments, **filed}.items(), key=lambda one: one[1])
    start = moments[0][1]
    return [
        f"{format_moment(at)} {name}"
        + (f" (+{format_duration((at - start) // 1_000 * 1_000)})" if number else "")
        for number, (name, at) in enumerate(moments)
    ]


def _time_line(finding: Finding) -> list[str]:
    rows = [f"- {row}" for row in time_line(finding)]
    return ["## Time line", "", *rows, ""] if rows else []


def _facts(finding: Finding) -> list[str]:
    rows = [
        ("found in", f"`{finding.found_in}`, {format_moment(finding.found_at_ms)}"),
        ("reproduced", f"{finding.shown} of {finding.tried} runs, seen {_times_of(finding.times)}"),
        ("severity", f"{severity_of(finding)} ({effect_of(finding)})"),
        ("engine", finding.engine),
    ]
    origin = finding.current_origin
    if finding.introduced_by is not None:
        rows.append(
            (
                "introduced by" if origin and origin.exact else "first bad build",
                f"`{finding.introduced_by}` {code(finding.introduced_subject)}",
            )
        )
    if finding.last_good is not None:
        rows.append(("last good build", f"`{finding.last_good}`"))
    if origin is not None and origin.input not in ("", finding.input):
        rows.append(("origin found with", f"`{origin.input}`, another input"))
    if finding.old:
        rows.append(("not introduced by", f"`{finding.found_in}`: earlier builds fail too"))
    if finding.closed_in is not None:
        rows += [("end", end_text(finding, finding.closed_in)), *_assumed_about_end(finding)]
    if finding.closed_by:
        rows.append(("closed by hand", code(finding.closed_by)))
    if finding.closed_why:
        rows.append(("closed", code(finding.closed_why)))
    if finding.unsure:
        rows.append(("not closed", code(finding.unsure)))
    if finding.note:
        rows.append(("set aside", code(finding.note)))
    others = [title for title in finding.signatures if title != finding.title]
    if others:
        rows.append(("also seen as", "; ".join(map(code, others[:5]))))
    if finding.group:
        shared = "operators" if finding.kind == "wrong_answer" else "frames"
        rows.append((f"shares {shared} with", f"`{finding.group}`"))
    if len(finding.inputs) > 1:
        failing = sum(one.checked == "fails" for one in finding.inputs)
        rows.append(("inputs", f"{len(finding.inputs)} kept, {failing} failed when last run"))
    rows += [("combinations", _combinations(finding))] if finding.combinations else []
    if finding.reopened:
        rows.append(("reopened", _times_of(finding.reopened)))
    return ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows)]


def _combinations(finding: Finding) -> str:
    """Returns the combinations that inputs broke, and how many still fail with them."""
    counts: dict[str, list[bool]] = {}
    for one in finding.inputs:
        for name, ran in one.combinations.items():
            counts.setdefault(name, []).append(ran.checked == "fails")
    return ", ".join(
        f"{name or 'without a matrix'} ({sum(fails)} of {len(fails)} inputs failed when last run)"
        for name, fails in sorted(counts.items())
    )


def end_text(finding: Finding, commit: str) -> str:
    """Returns which commit fixed a bug, or since when no build shows it.

    `commit` is the one with which all inputs were seen to run fine.
    """
    end = finding.ends.get(commit)
    if end is None:
        return f"no longer seen since {commit}"
    if end.exact:
        return f"fixed in {end.culprit}"
    if end.last_bad is None:
        return f"no longer seen since {end.first_good}"
    return (
        f"no longer seen since {end.first_good} (first good build after bad build {end.last_bad}, "
        f"{end.suspect_count} commits between them may be the fix)"
    )


def _assumed_about_end(finding: Finding) -> list[tuple[str, str]]:
    end = finding.ends.get(finding.closed_in or "")
    return [] if end is None else [("assumed about the end", text) for text in end.assumed]


def _times_of(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def input_name(finding: Finding) -> str:
    """Returns a file name for the input of a finding."""
    return f"{finding.key}{plain_ending(finding.input)}"
