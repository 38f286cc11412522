"""`windlass fuzz findings`: lists, shows, reproduces, rechecks and files findings."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from windlass.cli.fuzz.app import (
    DEFAULT_LOCATION,
    DryRun,
    FuzzContext,
    Location,
    SolverName,
    fuzz,
    run_step,
    warn,
)
from windlass.cli.fuzz.progress import Progress
from windlass.cli.fuzz.roles import stop_on_sigterm
from windlass.cli.options.flags import Json
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_json, say
from windlass.domain.values.errors import NotFound
from windlass.fuzzing.errors import InvalidSetting
from windlass.fuzzing.findings.issues import IssueTracker, issue_options
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.report import input_name, render
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.processes.workspace import workspace
from windlass.fuzzing.roles.fuzzer import Fuzzer

SHORT = 12
FindingKey = Annotated[str, Parameter(help="The key of a finding, or a prefix of it.")]

findings = App(name="findings", help="List, show, reproduce, recheck and file findings.")
fuzz.command(findings)


@findings.default
@findings.command(name="list")
def list_findings(
    solver: SolverName,
    /,
    *,
    all: Annotated[bool, Parameter(show_default=False, help="Include closed findings.")] = False,  # noqa: A002
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """List findings."""

    async def step(context: FuzzContext) -> list[Finding]:
        return [
            f async for f in FindingStore(context.pipeline).all(warn) if all or f.state == "open"
        ]

    found = run_step(solver, location, step)
    if json:
        print_json(found)
        return
    rows = [
        (f.key, f.state, f.title, (f.introduced_by or "")[:SHORT] if f.last_good else "older",
         f.times, f"{f.size} bytes", f.issue)
        for f in found
    ]  # fmt: skip
    columns = ("finding", "state", "title", "introduced by", "seen", "input", "issue")
    print_table(columns, rows, "no findings")


@findings.command
def show(
    solver: SolverName,
    finding: FindingKey,
    /,
    *,
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Show the report of a finding."""

    async def step(context: FuzzContext) -> tuple[Finding, str]:
        store = FindingStore(context.pipeline)
        found = await store.get(finding)
        return found, render(found, context.solver.name, store.location(found))

    found, page = run_step(solver, location, step)
    if json:
        print_json(found)
    else:
        say(page)


@findings.command
def reproduce(
    solver: SolverName,
    finding: FindingKey,
    /,
    *,
    commit: Annotated[
        str | None,
        Parameter(help="Use the build of this commit. Default: the one it was found in."),
    ] = None,
    input: Annotated[  # noqa: A002 - the name of the flag
        Path | None, Parameter(help="Copy the input to this file or folder.")
    ] = None,
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Run a finding's input again; exit with 1 if it no longer shows the bug."""

    async def step(context: FuzzContext) -> dict[str, Any]:
        with workspace(context.work, context.solver.name, "findings") as folder:
            return await _reproduce(context, folder, finding, commit, input)

    outcome = run_step(solver, location, step)
    if json:
        print_json(outcome)
    else:
        say(outcome["output"].strip())
        verb = "shows" if outcome["shown"] else "does not show"
        say(f"\n{outcome['commit']} {verb} {outcome['title']}")
    if not outcome["shown"]:
        raise SystemExit(FAILED)


@findings.command
def recheck(
    solver: SolverName,
    commit: Annotated[str, Parameter(help="A commit that has a binary.")],
    /,
    *,
    location: Location = DEFAULT_LOCATION,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Run all open findings with the build of a later commit, and close those that are fixed."""

    async def step(context: FuzzContext) -> list[Finding]:
        progress = Progress(context.pipeline.runtime.clock, json)
        with workspace(context.work, context.solver.name, "findings") as folder:
            role = Fuzzer(context.solver, context.pipeline, folder, progress.notify)
            return await stop_on_sigterm(role.recheck(commit))

    gone = run_step(solver, location, step, dry_run=dry_run)
    _print_each(gone, json, lambda f: f"fixed: {f.key} {f.title}", "no finding is fixed")


@findings.command(name="file")
def file_issues(
    solver: SolverName, /, *, location: Location = DEFAULT_LOCATION, json: Json = False
) -> None:
    """File an issue for each open finding that has none, as set in the solver file.

    Also closes the issues of fixed findings, and reopens those of findings that came back.
    """

    async def step(context: FuzzContext) -> list[Finding]:
        options = issue_options(context.solver.issues)
        if options is None:
            raise InvalidSetting("issues", "the solver file has no `issues`: set issues.project")
        store = FindingStore(context.pipeline)
        tracker = IssueTracker(options, context.solver.name, context.pipeline.runtime.clock)
        try:
            return await tracker.sync_all(store, warn)
        finally:
            await tracker.close()

    _print_each(
        run_step(solver, location, step), json, lambda f: f"{f.key} {f.issue}", "nothing to file"
    )


async def _reproduce(
    context: FuzzContext, folder: Path, key: str, commit: str | None, copy: Path | None
) -> dict[str, Any]:
    store = FindingStore(context.pipeline)
    found = await store.get(key)
    path = folder / input_name(found)
    if not await store.fetch_input(found, path):
        raise NotFound("input of finding", key)
    if copy is not None:
        _copy(path, copy)
    name = commit or found.found_in
    verdict = await Fuzzer(context.solver, context.pipeline, folder).classify(name, path)
    return {
        "finding": found.key, "commit": name, "title": found.title,
        "shown": verdict.kind == "bug" and verdict.title == found.title,
        "verdict": verdict.kind, "output": verdict.output,
    }  # fmt: skip


def _copy(path: Path, to: Path) -> None:
    shutil.copyfile(path, to / path.name if to.is_dir() else to)


def _print_each(
    found: list[Finding], json: bool, line: Callable[[Finding], str], nothing: str
) -> None:
    if json:
        print_json(found)
        return
    for finding in found:
        say(line(finding))
    if not found:
        say(nothing)
