"""`windlass fuzz status`: shows the state of a solver's pipeline.

First a diagram of the stages with the number of commits in each, then the commits themselves.
"""

from collections.abc import Iterator, Sequence

from rich.text import Text

from windlass.cli.options.flags import Json
from windlass.cli.output.consoles import console
from windlass.cli.output.text import escape_line, print_json
from windlass.domain.values.quantities import format_duration, format_size, parse_moment
from windlass_fuzz.cli.app import (
    DEFAULT_LOCATION,
    FuzzContext,
    Location,
    SolverName,
    fuzz,
    run_step,
    warn,
)
from windlass_fuzz.cli.report_output import about_report
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.roles.status import (
    ActiveLease,
    LostAlarm,
    PipelineStatus,
    UnhealthyCommit,
    read_status,
)

SHORT = 12
SHOWN = 10  # commits or findings per list
PER_LINE = 5  # commits that fit into 80 columns
BAR = "█"
WIDEST = 24
MARGIN = 10


@fuzz.command
def status(
    solver: SolverName, /, *, location: Location = DEFAULT_LOCATION, json: Json = False
) -> None:
    """Show queued, built, failed and scheduled commits, findings and coverage."""

    async def step(context: FuzzContext) -> tuple[PipelineStatus, int]:
        found = await read_status(context.pipeline, context.solver)
        return found, context.pipeline.now_ms()

    found, now_ms = run_step(solver, location, step, reading=True)
    if json:
        print_json(found)
        return
    for trouble in found.unreadable:
        warn(trouble)
    for line in _lines(found, now_ms):
        if console.is_terminal:
            console.print(line, no_wrap=True, overflow="ellipsis")
        else:
            console.print(line, soft_wrap=True)  # programs that read a pipe cope with long lines


def _lines(found: PipelineStatus, now_ms: int) -> Iterator[Text]:
    yield Text.assemble((found.solver, "bold"), f"  {found.bucket}")
    yield Text("")
    yield from _flow_diagram(found)
    yield Text("")
    last = found.last_checked_commit
    checked = f"{last[:SHORT]}, {_ago(found.checked_at, now_ms)}" if last else "never"
    yield _row("checked", checked)
    yield from _branches(found, now_ms)
    yield _row("coverage", _coverage(found, now_ms))
    yield from _coverage_report(found)
    yield from _waiting(found, now_ms)
    yield from _scheduled(found, now_ms)
    yield from _next_run(found)
    yield from _findings(found)
    yield from _alarms(found, now_ms)


def _branches(found: PipelineStatus, now_ms: int) -> Iterator[Text]:
    """Lists the branches of a solver with several; unwatched ones come last."""
    left_out = [one.name for one in found.branches if one.state == "left out"]
    lines = []
    for one in found.branches:
        if one.state == "watched":
            last = (one.last_checked_commit or "never")[:SHORT]
            when = f"{last}, {_ago(one.checked_at, now_ms)}, {one.scheduled} scheduled"
            lines.append(Text(escape_line(f"{one.name}  {when}")))
        elif one.state == "gone":
            when = f"not in the repository, noticed {_ago(one.gone_since, now_ms)}"
            lines.append(Text(escape_line(f"{one.name}  {when}"), style="yellow"))
    if left_out:
        names = f"left out, as newer ones are watched: {' '.join(left_out)}"
        lines.append(Text(escape_line(names), style="yellow"))
    yield from _block("branches", lines)


def _flow_diagram(found: PipelineStatus) -> Iterator[Text]:
    """Draws the stages and how many commits are in each."""
    bugs = sum(finding.state == "open" for finding in found.findings)
    closed = sum(finding.state == "closed" for finding in found.findings)
    others = len(found.findings) - bugs - closed
    aside = f", {others} flaky or quarantined" if others else ""
    queue = _stage("queue", len(found.queue), "yellow")
    first = Text.assemble(
        "  ", queue, " ─┬─► ", _stage("built", len(found.built), "green"), " ──► ",
        _stage("schedule", len(found.schedule), "cyan"), " ──► ",
        _stage("findings", bugs, "red"), f" open, {closed} closed{aside}",
    )  # fmt: skip
    yield first
    failed = _stage("failed", len(found.failed), "red")
    yield Text.assemble(" " * (len(queue) + 3), " └─► ", failed)


def _stage(name: str, count: int, style: str) -> Text:
    return Text.assemble(f"{name} ", (str(count), style if count else "dim"))


def _waiting(found: PipelineStatus, now_ms: int) -> Iterator[Text]:
    """Lists queued, built and failed commits; those being built get their own lines."""
    builders = {one.commit: one for one in found.at_work if one.work == "build"}
    for name, commits, style in (
        ("queue", found.queue, "yellow"),
        ("built", found.built, "green"),
        ("failed", found.failed, "red"),
    ):
        lines = [
            Text.assemble((c[:SHORT], style), "  ", _working(builders[c], "built", now_ms))
            for c in commits
            if c in builders
        ]
        yield from _block(name, [*lines, *_grid([c for c in commits if c not in builders], style)])
    if found.failed:
        log = f"windlass fuzz builder log {found.solver} COMMIT shows why"
        retry = f"windlass fuzz queue retry {found.solver} COMMIT builds it again"
        yield _row("", Text(log, style="dim"))
        yield _row("", Text(retry, style="dim"))


def _scheduled(found: PipelineStatus, now_ms: int) -> Iterator[Text]:
    """Lists the schedule, oldest first: how often each commit was fuzzed, and by whom now."""
    fuzzers = {one.commit: one for one in found.at_work if one.work == "fuzz"}
    lines = []
    for entry in found.schedule:
        line = Text.assemble((entry.hash[:SHORT], "cyan"), "  ")
        line.append(BAR * min(entry.fuzz_count, WIDEST), style="green")
        line.append(f" {entry.fuzz_count}" if entry.fuzz_count else "never fuzzed", style="dim")
        if entry.branches:
            line.append(escape_line(f"  on {', '.join(entry.branches)}"), style="dim")
        if entry.hash in fuzzers:
            line.append_text(Text("  "))
            line.append_text(_working(fuzzers[entry.hash], "fuzzed", now_ms))
        lines.append(line)
    yield from _block("schedule", lines)


def _next_run(found: PipelineStatus) -> Iterator[Text]:
    """Lists what the next run gives to each combination of the matrix, and why."""
    if found.next_run is None:
        return
    widest = max(len(one.combination) for one in found.next_run.shares)
    lines = []
    for one in found.next_run.shares:
        given = f"{one.percent:>3} %  {format_duration(one.ms // 1000 * 1000):<9}  "
        line = Text(f"{one.combination:<{widest}}  {given if one.ms else 'does not run    '}")
        line.append(escape_line(one.why), style="dim" if one.ms else "bold red")
        lines.append(line)
    yield from _block("next run", lines)


def _findings(found: PipelineStatus) -> Iterator[Text]:
    open_context = [finding for finding in found.findings if finding.state == "open"]
    lines = []
    for finding in open_context[:SHOWN]:
        since = f"  {'since ' if finding.introduced_by else ''}{finding.since}"
        there = [name for name, state in finding.branches.items() if state != "fixed"]
        since += f"  on {', '.join(there)}" if there else ""
        lines.append(
            Text(escape_line(f"{finding.key[:SHORT]}  {finding.title}{since}"), style="red")
        )
    yield from _block("findings", [*lines, *_more(len(open_context))])


def _alarms(found: PipelineStatus, now_ms: int) -> Iterator[Text]:
    """Lists what somebody should check: commits whose runs did nothing, inputs that wait."""
    lines = [
        Text(
            escape_line(
                f"{_unhealthy(bad)}  {bad.why} ({_in_a_row(bad.runs)}{_ago(bad.at, now_ms)})"
            ),
            style="bold red",
        )
        for bad in found.unhealthy[:SHOWN]
    ]
    yield from _block("unhealthy", [*lines, *_more(len(found.unhealthy))])
    if any(bad.combination and not bad.runs for bad in found.unhealthy) and not found.failed:
        log = f"windlass fuzz builder log {found.solver} COMMIT shows the output of its builds"
        yield _row("", Text(log, style="dim"))
    lost = [Text(escape_line(_lost(one)), style="bold red") for one in found.lost_alarms[:SHOWN]]
    yield from _block("alarms", [*lost, *_more(len(found.lost_alarms))])
    if found.untriaged:
        number = count_of(found.untriaged, "input")
        waiting = f"the next run triages {number} that broke a build"
        yield _row("untriaged", Text(waiting, style="yellow"))


def _unhealthy(bad: UnhealthyCommit) -> str:
    return f"{bad.commit[:SHORT]} {bad.combination}".strip()


def _lost(one: LostAlarm) -> str:
    """Returns that a commit's alarm reached nobody, and whether that is tried again."""
    tried = f"{one.tries} tries" if one.tries > 1 else "1 try"
    until = "given up" if one.next_at is None else f"a run after {one.next_at} tries again"
    return f"{one.commit[:SHORT]}  {one.why} ({tried}; {until})"


def _in_a_row(runs: int) -> str:
    return f"{runs} in a row, " if runs else ""


def _block(name: str, lines: Sequence[Text]) -> Iterator[Text]:
    """Prints lines under one heading; nothing if there are none."""
    for number, line in enumerate(lines):
        yield _row("" if number else name, line)


def _row(name: str, content: str | Text) -> Text:
    return Text.assemble((f"{name:<{MARGIN}}", "bold"), content)


def _grid(commits: Sequence[str], style: str) -> list[Text]:
    shown = [commit[:SHORT] for commit in commits[:SHOWN]]
    rows = [shown[start : start + PER_LINE] for start in range(0, len(shown), PER_LINE)]
    return [*(Text(escape_line(" ".join(row)), style=style) for row in rows), *_more(len(commits))]


def _more(count: int) -> list[Text]:
    return [Text(f"and {count - SHOWN} more", style="dim")] if count > SHOWN else []


def _working(one: ActiveLease, doing: str, now_ms: int) -> Text:
    left = format_duration((parse_moment(one.until, "until") - now_ms) // 1000 * 1000)
    again = f", try {one.tries}" if one.tries > 1 else ""
    return Text(
        escape_line(f"being {doing} by {one.holder}, at most {left} left{again}"), style="cyan"
    )


def _coverage(found: PipelineStatus, now_ms: int) -> str:
    if found.coverage_mapped_at is None:
        return "no map yet"
    when = _ago(found.coverage_mapped_at, now_ms)
    return f"mapped {when}, {format_size(found.coverage_bytes)}"


def _coverage_report(found: PipelineStatus) -> Iterator[Text]:
    """Lists the figures of the HTML report for each target, and how to open it."""
    if found.coverage_report is None:
        return
    see = f"windlass fuzz coverage {found.solver} --html DIR makes it again in a folder"
    for line in about_report(found.coverage_report):
        yield _row("", escape_line(line))
    yield _row("", Text(f"{see}; a server with --fuzz shows it", style="dim"))


def _ago(then: str | None, now_ms: int) -> str:
    if then is None:
        return "at an unknown time"
    passed = max(now_ms - parse_moment(then, "time"), 0)
    return f"{format_duration(passed // 1000 * 1000)} ago"
