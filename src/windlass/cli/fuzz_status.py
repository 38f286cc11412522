"""`windlass fuzz status`: the pipeline of a solver as a picture.

First the way of commits through it, with a number at each station; then what stands there.
"""

from collections.abc import Iterator, Sequence

from rich.text import Text

from windlass.cli.fuzz_app import HERE, Opened, Place, SolverName, fuzz, run_step, warn
from windlass.cli.options.flags import Json
from windlass.cli.output.consoles import console
from windlass.cli.output.text import print_json
from windlass.domain.values.quantities import format_duration, format_size
from windlass.domain.values.times import parse_moment
from windlass.fuzzing.overview import AtWork, Overview, look_at

SHORT = 12
SHOWN = 10  # commits, or findings, of a list
A_LINE = 5  # commits that fit side by side into 80 columns
BAR = "█"
WIDEST = 24
MARGIN = 10


@fuzz.command
def status(solver: SolverName, /, *, at: Place = HERE, json: Json = False) -> None:
    """Show queue, built and failed commits, the schedule with its counts, findings, coverage."""

    async def step(there: Opened) -> tuple[Overview, int]:
        return await look_at(there.board), there.board.now_ms()

    found, now_ms = run_step(solver, at, step, reading=True)
    if json:
        print_json(found)
        return
    for trouble in found.unreadable:
        warn(trouble)
    for line in _picture(found, now_ms):
        if console.is_terminal:
            console.print(line, no_wrap=True, overflow="ellipsis")
        else:
            console.print(line, soft_wrap=True)  # whatever reads a pipe copes with long lines


def _picture(found: Overview, now_ms: int) -> Iterator[Text]:
    yield Text.assemble((found.solver, "bold"), f"  {found.bucket}")
    yield Text("")
    yield from _way(found)
    yield Text("")
    last = found.last_checked_commit
    checked = f"{last[:SHORT]}, {_ago(found.checked_at, now_ms)}" if last else "never"
    yield _row("checked", checked)
    yield _row("coverage", _coverage(found, now_ms))
    yield from _waiting(found, now_ms)
    yield from _scheduled(found, now_ms)
    yield from _findings(found)


def _way(found: Overview) -> Iterator[Text]:
    """The stations and how many are there; what is good is green, what is bad is red."""
    bugs = sum(finding.state == "open" for finding in found.findings)
    queue = _station("queue", len(found.queue), "yellow")
    first = Text.assemble(
        "  ", queue, " ─┬─► ", _station("built", len(found.built), "green"), " ──► ",
        _station("schedule", len(found.schedule), "cyan"), " ──► ",
        _station("findings", bugs, "red"), f" open, {len(found.findings) - bugs} closed",
    )  # fmt: skip
    yield first
    failed = _station("failed", len(found.failed), "red")
    yield Text.assemble(" " * (len(queue) + 3), " └─► ", failed)


def _station(name: str, count: int, style: str) -> Text:
    return Text.assemble(f"{name} ", (str(count), style if count else "dim"))


def _waiting(found: Overview, now_ms: int) -> Iterator[Text]:
    """The commits of the queue, of `built` and of `failed`; those at work on lines of their own."""
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
        hint = f"windlass fuzz builder log {found.solver} COMMIT says why, queue retry tries again"
        yield _row("", Text(hint, style="dim"))


def _scheduled(found: Overview, now_ms: int) -> Iterator[Text]:
    """The schedule, oldest first: how often each was fuzzed, and who is at it."""
    fuzzers = {one.commit: one for one in found.at_work if one.work == "fuzz"}
    lines = []
    for entry in found.schedule:
        line = Text.assemble((entry.hash[:SHORT], "cyan"), "  ")
        line.append(BAR * min(entry.fuzz_count, WIDEST), style="green")
        line.append(f" {entry.fuzz_count}" if entry.fuzz_count else "never fuzzed", style="dim")
        if entry.hash in fuzzers:
            line.append_text(Text("  "))
            line.append_text(_working(fuzzers[entry.hash], "fuzzed", now_ms))
        lines.append(line)
    yield from _block("schedule", lines)


def _findings(found: Overview) -> Iterator[Text]:
    opened = [finding for finding in found.findings if finding.state == "open"]
    lines = []
    for finding in opened[:SHOWN]:
        since = f"  since {finding.introduced_by[:SHORT]}" if finding.introduced_by else ""
        lines.append(Text(f"{finding.key[:SHORT]}  {finding.title}{since}", style="red"))
    yield from _block("findings", [*lines, *_more(len(opened))])


def _block(name: str, lines: Sequence[Text]) -> Iterator[Text]:
    """Lines under one name; none, and nothing is said."""
    for number, line in enumerate(lines):
        yield _row("" if number else name, line)


def _row(name: str, content: str | Text) -> Text:
    return Text.assemble((f"{name:<{MARGIN}}", "bold"), content)


def _grid(commits: Sequence[str], style: str) -> list[Text]:
    shown = [commit[:SHORT] for commit in commits[:SHOWN]]
    rows = [shown[start : start + A_LINE] for start in range(0, len(shown), A_LINE)]
    return [*(Text(" ".join(row), style=style) for row in rows), *_more(len(commits))]


def _more(count: int) -> list[Text]:
    return [Text(f"and {count - SHOWN} more", style="dim")] if count > SHOWN else []


def _working(one: AtWork, doing: str, now_ms: int) -> Text:
    left = format_duration((parse_moment(one.until, "until") - now_ms) // 1000 * 1000)
    again = f", try {one.tries}" if one.tries > 1 else ""
    return Text(f"being {doing} by {one.holder}, {left} left at most{again}", style="cyan")


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
