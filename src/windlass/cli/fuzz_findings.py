"""`windlass fuzz findings`: what was found, and whether it is still there."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from windlass.cli.fuzz_app import HERE, DryRun, Opened, Place, SolverName, fuzz, run_step, warn
from windlass.cli.fuzz_progress import Progress
from windlass.cli.fuzz_work import stoppable
from windlass.cli.options.flags import Json
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_json, say
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.fuzzing.findings.issues import IssueDesk, issue_options
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.report import input_name, render
from windlass.fuzzing.findings.shelf import Shelf
from windlass.fuzzing.fuzzer import Fuzzer
from windlass.fuzzing.workplace import workplace

SHORT = 12
FindingKey = Annotated[str, Parameter(help="The key of a finding, or its beginning.")]

findings = App(name="findings", help="Look at findings, reproduce, check and file them.")
fuzz.command(findings)


@findings.default
@findings.command(name="list")
def list_findings(
    solver: SolverName,
    /,
    *,
    all: Annotated[bool, Parameter(show_default=False, help="Closed ones too.")] = False,  # noqa: A002
    at: Place = HERE,
    json: Json = False,
) -> None:
    """List what was found."""

    async def step(there: Opened) -> list[Finding]:
        return [f async for f in Shelf(there.board).all(warn) if all or f.state == "open"]

    found = run_step(solver, at, step)
    if json:
        print_json(found)
        return
    rows = [
        (f.key, f.state, f.title, (f.introduced_by or "")[:SHORT] if f.last_good else "older",
         f.times, f"{f.size} bytes", f.issue)
        for f in found
    ]  # fmt: skip
    columns = ("finding", "state", "title", "introduced by", "met", "input", "issue")
    print_table(columns, rows, "no findings")


@findings.command
def show(
    solver: SolverName, finding: FindingKey, /, *, at: Place = HERE, json: Json = False
) -> None:
    """Show the report of a finding."""

    async def step(there: Opened) -> tuple[Finding, str]:
        shelf = Shelf(there.board)
        found = await shelf.get(finding)
        return found, render(found, there.solver.name, shelf.location(found))

    found, page = run_step(solver, at, step)
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
        str | None, Parameter(help="With the build of this commit. Default: where it was found.")
    ] = None,
    input: Annotated[  # noqa: A002 - it reads as it is typed
        Path | None, Parameter(help="Copy the input to this file, or into this folder.")
    ] = None,
    at: Place = HERE,
    json: Json = False,
) -> None:
    """Run a finding's input once more; exits with 1 if it does not show the bug."""

    async def step(there: Opened) -> dict[str, Any]:
        with workplace(there.work, there.solver.name, "findings") as folder:
            return await _reproduce(there, folder, finding, commit, input)

    outcome = run_step(solver, at, step)
    if json:
        print_json(outcome)
    else:
        say(outcome["output"].strip())
        said = "shows" if outcome["shown"] else "does not show"
        say(f"\n{outcome['commit']} {said} {outcome['title']}")
    if not outcome["shown"]:
        raise SystemExit(FAILED)


@findings.command
def recheck(
    solver: SolverName,
    commit: Annotated[str, Parameter(help="A commit whose binary exists.")],
    /,
    *,
    at: Place = HERE,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Run all open findings with the build of a later commit; close those that are gone."""

    async def step(there: Opened) -> list[Finding]:
        progress = Progress(there.board.around.clock, json)
        with workplace(there.work, there.solver.name, "findings") as folder:
            working = Fuzzer(there.solver, there.board, folder, progress.told)
            return await stoppable(working.recheck(commit))

    gone = run_step(solver, at, step, dry_run=dry_run)
    _print_each(gone, json, lambda f: f"gone: {f.key} {f.title}", "nothing is gone")


@findings.command(name="file")
def file_issues(solver: SolverName, /, *, at: Place = HERE, json: Json = False) -> None:
    """File an issue for each open finding that has none, as the solver's file says.

    Issues of findings that are gone, or have come back, are closed and opened.
    """

    async def step(there: Opened) -> list[Finding]:
        options = issue_options(there.solver.issues)
        if options is None:
            raise InvalidInput("issues", "a project in the solver's file", "nothing")
        shelf = Shelf(there.board)
        desk = IssueDesk(options, there.solver.name, there.board.around.clock)
        try:
            return await desk.settle_all(shelf, warn)
        finally:
            await desk.close()

    _print_each(run_step(solver, at, step), json, lambda f: f"{f.key} {f.issue}", "nothing to file")


async def _reproduce(
    there: Opened, folder: Path, key: str, commit: str | None, copy: Path | None
) -> dict[str, Any]:
    shelf = Shelf(there.board)
    found = await shelf.get(key)
    path = folder / input_name(found)
    if not await shelf.fetch_input(found, path):
        raise NotFound("input of finding", key)
    if copy is not None:
        _copy(path, copy)
    name = commit or found.found_in
    verdict = await Fuzzer(there.solver, there.board, folder).judge(name, path)
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
