"""Follows a workflow: a live tree on a terminal, one line per change elsewhere.

Each long poll returns when the workflow ends, or after a second. For a large workflow it asks only
for the counts and for the running and failed jobs.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from windlass.cli.output.consoles import console
from windlass.cli.output.exit_codes import FAILED, OK
from windlass.cli.output.refresh import can_redraw
from windlass.cli.output.tables import STYLES
from windlass.cli.output.text import escape_json, escape_line, say
from windlass.cli.output.workflow_view import ended_jobs, jobs_of, progress_of, remark_on
from windlass.client.blocking.client import Client
from windlass.messages.jobs import Job
from windlass.messages.workflows import Workflow
from windlass.workflows.graph import entry_of

ENDS: Final = frozenset({"completed", "failed", "canceled"})
LARGE: Final = 500  # With more jobs than this, only running and failed ones are shown.
FEW: Final = 8  # Up to this many jobs of one entry get a line each.
POLL_SECONDS: Final = 1
LINES_AROUND: Final = 4  # the progress, the name, what is hidden, and the cursor
URGENT: Final = ("failed", "rejected", "timed_out", "running")
# The most urgent state first; states that are not named here come last.
URGENCY: Final = {
    state: rank
    for rank, state in enumerate(
        (*URGENT, "canceling", "retrying", "assigned", "suspended", "queued", "aborted", "blocked")
    )
}
SIGNS: Final = {
    "completed": "✓", "failed": "✗", "rejected": "✗", "aborted": "–", "canceled": "–",
    "skipped": "–", "running": "▶", "assigned": "▶", "blocked": "·", "queued": "○",
    "retrying": "↻", "suspended": "⏸", "canceling": "…", "timed_out": "✗",
}  # fmt: skip


def follow(client: Client, number: int, json: bool) -> int:
    """Shows a workflow until it ends and returns the exit code."""
    workflow = client.workflow(number)
    info = workflow.info()
    with _view(json) as show:
        while True:
            show(info, _worth_showing(client, info))
            if info.state in ENDS:
                break
            info = workflow.info(POLL_SECONDS)
    return OK if info.state == "completed" else FAILED


@contextmanager
def _view(json: bool) -> Iterator[Callable[[Workflow, list[Job]], None]]:
    """Yields what shows the current state: it prints the changes, or draws a tree again."""
    if json or not can_redraw():
        yield _Lines(_as_json if json else _as_text).show
        return
    with Live(console=console, auto_refresh=False) as live:

        def redraw(info: Workflow, jobs: list[Job]) -> None:
            room = console.size.height - LINES_AROUND
            live.update(Group(_head(info), draw(info, jobs, room)), refresh=True)

        yield redraw


class _Lines:
    """Prints a line for each change."""

    def __init__(self, line: Callable[[str, int, str, str | None], str]) -> None:
        self._line = line
        self._state = ""
        self._known: dict[int, tuple[str, int]] = {}

    def show(self, info: Workflow, jobs: list[Job]) -> None:
        """Prints what changed since the last call."""
        for job in jobs:
            now = (job.state, job.attempt)
            if self._known.get(job.id) != now:
                self._known[job.id] = now
                say(self._line(job.name or job.task, job.id, job.state, job.reason))
        if info.state != self._state:
            self._state = info.state
            say(self._line(f"workflow {info.name}", info.id, info.state, info.reason))
        sys.stdout.flush()


def _as_text(name: str, number: int, state: str, reason: str | None) -> str:
    why = f" ({reason})" if reason else ""
    return f"{name} {number}: {state}{why}"


def _as_json(name: str, number: int, state: str, reason: str | None) -> str:
    change = {"name": name, "id": number, "state": state, "reason": reason}
    return escape_json(msgspec.json.encode(change).decode())


def draw(info: Workflow, jobs: Iterable[Job], room: int) -> Tree:
    """Groups jobs by entry; jobs of nested workflows go below the nested workflow's name.

    Entries that have no room are counted: first the completed ones, last those that failed.
    """
    tree = Tree(Text(escape_line(f"workflow {info.id} {info.name}"), style="bold"))
    branches: dict[str, Tree] = {"": tree}
    entries: dict[str, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: job.id):
        if job.superseded_by is None:
            entries.setdefault(entry_of(job.name or f"{job.task} {job.id}"), []).append(job)
    kept = _with_room(entries, room)
    for entry, alike in entries.items():
        if entry not in kept:
            continue
        *inside, last = entry.split("/")
        branch = _branch(branches, inside)
        if len(alike) == 1:
            branch.add(_line(alike[0], (alike[0].name or last).rpartition("/")[2]))
        else:
            _add_alike(branch, last, alike)
    _add_hidden(
        tree, [job for entry, alike in entries.items() if entry not in kept for job in alike]
    )
    return tree


def _with_room(entries: Mapping[str, Sequence[Job]], room: int) -> set[str]:
    """Returns the entries to show: all, or the most urgent ones that fit."""
    kept: set[str] = set()
    drawn: set[str] = set()  # nested workflows that have their line
    left = room
    for entry in sorted(entries, key=lambda entry: _importance(entries[entry])):
        above = {path for path in _paths_above(entry) if path not in drawn}
        alike = entries[entry]
        left -= len(above) + (1 if len(alike) == 1 else 1 + len(_named(alike)))
        if left < 0 and kept:
            break
        drawn |= above
        kept.add(entry)
    return kept


def _importance(jobs: Iterable[Job]) -> int:
    return min(URGENCY.get(job.state, len(URGENCY)) for job in jobs)


def _paths_above(entry: str) -> list[str]:
    parts = entry.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def _add_hidden(tree: Tree, jobs: Sequence[Job]) -> None:
    if jobs:
        tree.add(
            Text(f"… {len(jobs)} more: ").append_text(_counted(Counter(j.state for j in jobs)))
        )


def _branch(branches: dict[str, Tree], path: list[str]) -> Tree:
    name = ""
    branch = branches[name]
    for part in path:
        name = f"{name}/{part}"
        if name not in branches:
            branches[name] = branch.add(Text(escape_line(part), style="bold"))
        branch = branches[name]
    return branch


def _add_alike(branch: Tree, name: str, jobs: Sequence[Job]) -> None:
    label = Text(f"{escape_line(name)} × {len(jobs)}  ")
    label.append_text(_counted(Counter(job.state for job in jobs)))
    group = branch.add(label)
    for job in _named(jobs):
        group.add(_line(job, (job.name or "").rpartition("/")[2]))


def _named(alike: Sequence[Job]) -> Sequence[Job]:
    """Returns the jobs of an entry that get a line of their own: a few, or the most urgent."""
    if len(alike) <= FEW:
        return alike
    urgent = [job for job in alike if job.state in URGENT]
    chosen = sorted(urgent, key=lambda job: URGENCY[job.state])[:FEW]
    return sorted(chosen, key=lambda job: job.id)


def _line(job: Job, name: str) -> Text:
    style = STYLES.get(job.state, "")
    text = Text(f"{SIGNS.get(job.state, '?')} ", style=style, no_wrap=True, overflow="ellipsis")
    text.append(escape_line(name), style="default")
    text.append(f"  {job.state}")
    if job.attempt > 1:
        text.append(f", attempt {job.attempt}")
    if job.state == "running" and isinstance(job.progress, int | float):
        text.append(f", {job.progress:.0%}")
    if job.state == "running" and job.worker:
        text.append(f" on {escape_line(job.worker)}", style="dim")
    remark = remark_on(job)
    if remark and job.state != "completed":
        text.append(f"  {escape_line(remark)}", style="dim")
    return text


def _head(info: Workflow) -> Table:
    row = Table.grid(padding=(0, 1))
    row.add_row(
        Text(info.state, style=STYLES.get(info.state, "cyan")),
        ProgressBar(max(info.jobs, 1), ended_jobs(info) if info.jobs else 1, width=30),
        Text(progress_of(info)),
        _counted(info.counts),
    )
    return row


def _counted(counts: Mapping[str, int]) -> Text:
    parts = [Text(f"{count} {state}", style=STYLES.get(state, ""))
             for state, count in counts.items() if count]  # fmt: skip
    return Text(", ").join(parts)


def _worth_showing(client: Client, info: Workflow) -> list[Job]:
    if info.jobs <= LARGE:
        return jobs_of(client, info.id)
    return client.jobs(LARGE, workflow=info.id, state=["running", "failed"])
