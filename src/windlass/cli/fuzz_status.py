"""`windlass fuzz status`: the pipeline of a solver as a picture."""

from rich.table import Table
from rich.text import Text

from windlass.cli.fuzz_app import HERE, Opened, Place, SolverName, fuzz, run_step
from windlass.cli.output import Json, console, print_json
from windlass.domain.moments import parse_moment
from windlass.domain.quantities import format_duration, format_size
from windlass.fuzzing.overview import AtWork, Overview, look_at

SHORT = 12
SHOWN = 8  # commits of a list
BAR = "█"
WIDEST = 24


@fuzz.command
def status(solver: SolverName, /, *, at: Place = HERE, json: Json = False) -> None:
    """Show queue, built and failed commits, the schedule with its counts, findings, coverage."""

    async def step(there: Opened) -> tuple[Overview, int]:
        return await look_at(there.board), there.board.now_ms()

    found, now_ms = run_step(solver, at, step, reading=True)
    if json:
        print_json(found)
        return
    console.print(Text.assemble((found.solver, "bold"), f"  {found.bucket}"))
    console.print(_picture(found, now_ms))


def _picture(found: Overview, now_ms: int) -> Table:
    picture = Table(box=None, pad_edge=False, show_header=False)
    picture.add_column(style="bold")
    picture.add_column(justify="right")
    picture.add_column()
    last = found.last_checked_commit
    checked = f"{last[:SHORT]}, {_ago(found.checked_at, now_ms)}" if last else "never"
    picture.add_row("checked", "", checked)
    busy = {(one.work, one.commit): one for one in found.at_work}
    for name, commits, style in (
        ("queue", found.queue, "yellow"),
        ("built", found.built, "green"),
        ("failed", found.failed, "red"),
    ):
        picture.add_row(name, str(len(commits)), _commits(commits, style))
        for one in (busy[key] for c in commits if (key := ("build", c)) in busy):
            picture.add_row("", "", _working(one, "built", now_ms))
    picture.add_row("schedule", str(len(found.schedule)), "oldest first" if found.schedule else "")
    for entry in found.schedule:
        line = Text(f"{entry.hash[:SHORT]:<{SHORT}} ", style="cyan")
        line.append(BAR * min(entry.fuzz_count, WIDEST), style="green")
        line.append(f" {entry.fuzz_count} " if entry.fuzz_count else "never fuzzed ", style="dim")
        picture.add_row("", "", line)
        if ("fuzz", entry.hash) in busy:
            picture.add_row("", "", _working(busy["fuzz", entry.hash], "fuzzed", now_ms))
    _add_findings(picture, found)
    picture.add_row("coverage", "", _coverage(found, now_ms))
    return picture


def _commits(commits: tuple[str, ...], style: str) -> Text:
    shown = Text(" ".join(commit[:SHORT] for commit in commits[:SHOWN]), style=style)
    if len(commits) > SHOWN:
        shown.append(f" and {len(commits) - SHOWN} more", style="dim")
    return shown


def _working(one: AtWork, doing: str, now_ms: int) -> Text:
    left = format_duration((parse_moment(one.until, "until") - now_ms) // 1000 * 1000)
    again = f", try {one.tries}" if one.tries > 1 else ""
    return Text(
        f"└ {one.commit[:SHORT]} is being {doing} by {one.holder}, for {left} more at most{again}",
        style="cyan",
    )


def _add_findings(picture: Table, found: Overview) -> None:
    opened = [finding for finding in found.findings if finding.state == "open"]
    ended = len(found.findings) - len(opened)
    picture.add_row("findings", str(len(opened)), f"open, {ended} closed")
    for finding in opened[:SHOWN]:
        since = f" since {finding.introduced_by[:SHORT]}" if finding.introduced_by else ""
        picture.add_row("", "", Text(f"{finding.key[:SHORT]} {finding.title}{since}", style="red"))


def _coverage(found: Overview, now_ms: int) -> str:
    if found.coverage_mapped_at is None:
        return "no map yet"
    when = _ago(found.coverage_mapped_at, now_ms)
    return f"mapped {when}, {format_size(found.coverage_bytes)}"


def _ago(then: str | None, now_ms: int) -> str:
    if then is None:
        return "at an unknown time"
    passed = max(now_ms - parse_moment(then, "time"), 0)
    return f"{format_duration(passed // 1000 * 1000)} ago"
