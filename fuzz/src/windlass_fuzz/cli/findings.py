"""`windlass fuzz findings`: lists, shows, reproduces, rechecks and files findings."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from cyclopts import App, Parameter

from windlass.cli.options.flags import Json
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_json, say
from windlass.domain.values.errors import Conflict, NotFound
from windlass.domain.values.quantities import parse_duration_ms
from windlass_fuzz.cli.app import (
    DEFAULT_LOCATION,
    DryRun,
    FuzzContext,
    Location,
    SolverName,
    fuzz,
    run_step,
    warn,
)
from windlass_fuzz.cli.progress import Progress
from windlass_fuzz.cli.roles import stop_on_sigterm
from windlass_fuzz.engines.engine import Verdict
from windlass_fuzz.engines.signature import is_surely_same
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.report import blamed, branches_in_short, input_name, render, summary
from windlass_fuzz.findings.severity import by_severity, severity_of
from windlass_fuzz.findings.sightings import mark_closed, quarantine, release
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.processes.workspace import workspace
from windlass_fuzz.roles.fuzzer import Fuzzer
from windlass_fuzz.trackers.filing import IssueFiler, Step
from windlass_fuzz.trackers.options import issue_options

T = TypeVar("T")

VERBS: Final = {
    "open": "file with", "close": "close", "reopen": "reopen", "update": "update",
    "summary": "write a summary to",
}  # fmt: skip
ENDED: Final = {
    "fine": "runs the input fine", "unsupported": "refuses the input",
    "timeout": "needs too much time", "memory": "needs too much memory",
}  # fmt: skip
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
        return [f async for f in FindingStore(context.pipeline).all(warn) if all or f.live]

    found = sorted(run_step(solver, location, step, reading=True), key=by_severity)
    if json:
        print_json(found)
        return
    rows: list[tuple[object, ...]] = [
        (f.key, f.state, severity_of(f), f.kind.replace("_", " "), f.title, blamed(f), f.times,
         count_of(f.size, "byte"), f.issue)
        for f in found
    ]  # fmt: skip
    columns = [
        "finding",
        "state",
        "severity",
        "kind",
        "title",
        "introduced by",
        "seen",
        "input",
        "issue",
    ]
    if any(f.branches for f in found):
        columns.append("branches")
        rows = [(*row, branches_in_short(f)) for row, f in zip(rows, found, strict=True)]
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

    found, page = run_step(solver, location, step, reading=True)
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
        Parameter(help="Use the build of this commit. Default: the one that showed the input."),
    ] = None,
    input: Annotated[  # noqa: A002 - the name of the flag
        Path | None, Parameter(help="Copy the input to this file or folder.")
    ] = None,
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Run a finding's input again; exit with 1 if it no longer shows the bug.

    If the build is gone, the commit is checked out and built on this machine.
    """
    reproduce_finding(solver, finding, commit, input, location, json)


@findings.command
def bisect(
    solver: SolverName,
    finding: FindingKey,
    /,
    *,
    budget: Annotated[str, Parameter(help="How long the search may take.")] = "30m",
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Search again for the commits that brought and fixed a bug, building what is missing."""
    budget_ms = parse_duration_ms(budget, "budget")

    async def step(context: FuzzContext) -> Finding:
        progress = Progress(context.pipeline.runtime.clock, json)
        with workspace(context.work, context.solver.name, "findings") as folder:
            role = Fuzzer(context.solver, context.pipeline, folder, progress.notify)
            return await stop_on_sigterm(role.bisect(finding, budget_ms))

    _print_each([run_step(solver, location, step)], json, summary, "")


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
    """Run all open findings with the build of a later commit, and close the fixed ones."""

    async def step(context: FuzzContext) -> list[Finding]:
        progress = Progress(context.pipeline.runtime.clock, json)
        with workspace(context.work, context.solver.name, "findings") as folder:
            role = Fuzzer(context.solver, context.pipeline, folder, progress.notify)
            return await stop_on_sigterm(role.recheck(commit))

    gone = run_step(solver, location, step, dry_run=dry_run)
    _print_each(gone, json, lambda f: f"fixed: {f.key} {f.title}", "no finding is fixed")


@findings.command
def close(
    solver: SolverName,
    finding: FindingKey,
    /,
    *,
    why: Annotated[str, Parameter(help="Why it is not a bug, or how it was fixed.")],
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Close a finding by hand; it is reopened if one of its inputs fails later."""
    _change(solver, finding, location, json, lambda known, now: mark_closed(known, None, now, why))


@findings.command(name="quarantine")
def quarantine_finding(
    solver: SolverName,
    finding: FindingKey,
    /,
    *,
    why: Annotated[str, Parameter(help="Why it is set aside.")],
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Set a finding aside: it is watched, but it is not filed and blocks no change."""

    def change(known: Finding, _: int) -> Finding:
        if known.state == "closed":
            message = f"{known.key} is closed; only an open or flaky finding can be set aside"
            raise Conflict("finding_closed", message)
        return quarantine(known, why)

    _change(solver, finding, location, json, change)


@findings.command(name="release")
def release_finding(
    solver: SolverName,
    finding: FindingKey,
    /,
    *,
    location: Location = DEFAULT_LOCATION,
    json: Json = False,
) -> None:
    """Take a finding out of quarantine."""
    _change(solver, finding, location, json, lambda known, _: release(known))


@findings.command(name="file")
def file_issues(
    solver: SolverName,
    /,
    *,
    location: Location = DEFAULT_LOCATION,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """File an issue for each open finding that has none, as set in the solver file.

    Also closes the issues of fixed findings, and reopens those of findings that came back. Exits
    with 1 if one could not be filed.
    """
    refused: list[str] = []

    async def plan(context: FuzzContext) -> list[Step]:
        return await _filer(context).plan(FindingStore(context.pipeline), warn)

    async def step(context: FuzzContext) -> list[Finding]:
        filer = _filer(context)
        try:
            return await filer.sync_all(FindingStore(context.pipeline), warn)
        finally:
            refused.extend(filer.refused)
            await filer.close()

    if dry_run:
        _print_each(
            run_step(solver, location, plan, reading=True), json, _planned, "nothing to file"
        )
    else:
        settled = run_step(solver, location, step)
        nothing = "nothing was filed" if refused else "nothing to file"
        _print_each(settled, json, lambda f: f"{f.key} {f.issue}", nothing)
    if refused:
        raise SystemExit(FAILED)


def _filer(context: FuzzContext) -> IssueFiler:
    options = issue_options(context.solver.issues)
    if options is None:
        raise InvalidSetting("issues", "the solver file has no `issues`: set issues.project")
    return IssueFiler(options, context.solver.name, context.pipeline.runtime.clock)


def _planned(step: Step) -> str:
    """Returns a line about what would be done."""
    about = ["private"] if step.private else []
    about += [f"labels {', '.join(step.labels)}"] if step.labels else []
    about += [f"input {step.input}"] if step.input else []
    more = f" ({'; '.join(about)})" if about else ""
    return f"would {VERBS[step.action]} {step.where}: {step.key} {step.title}{more}"


def reproduce_finding(
    solver: str,
    finding: str,
    commit: str | None,
    copy: Path | None,
    location: Location,
    json: bool,
) -> None:
    """Runs a finding's input again and prints the result."""

    async def step(context: FuzzContext) -> dict[str, Any]:
        with workspace(context.work, context.solver.name, "findings") as folder:
            return await _reproduce(context, folder, finding, commit, copy)

    outcome = run_step(solver, location, step)
    if json:
        print_json(outcome)
    else:
        if output := outcome["output"].strip():
            say(f"{output}\n")
        say(f"{outcome['commit']} {outcome['said']}")
    if not outcome["shown"]:
        raise SystemExit(FAILED)


def _change(
    solver: str,
    key: str,
    location: Location,
    json: bool,
    change: Callable[[Finding, int], Finding],
) -> None:
    """Changes the record of a finding and prints its state."""

    async def step(context: FuzzContext) -> Finding:
        store = FindingStore(context.pipeline)
        found = await store.get(key)
        now = context.pipeline.now_ms()
        return await store.update(found.key, lambda known: change(known or found, now))

    changed = run_step(solver, location, step)
    _print_each([changed], json, lambda f: f"{f.key} is {f.state}", "")


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
    name = commit or found.shown_in
    verdict = await Fuzzer(context.solver, context.pipeline, folder).classify(
        name, path, found.combination
    )
    return {
        "finding": found.key, "commit": name, "title": found.title,
        "combination": found.combination,
        "shown": verdict.kind == "bug" or verdict.kind == found.kind,
        "verdict": verdict.kind, "output": verdict.output, "said": _verdict_text(verdict, found),
    }  # fmt: skip


def _verdict_text(verdict: Verdict, finding: Finding) -> str:
    """Returns what a build does with the input, and whether that is the bug."""
    if verdict.kind == "bug":
        same = is_surely_same(verdict.signature, finding.names)
        other = f"fails in another way than {finding.title}: {verdict.title}"
        return f"shows {finding.title}" if same else other
    if verdict.kind == finding.kind:
        return f"shows {finding.title}"
    return f"does not show {finding.title}: it {ENDED[verdict.kind]}"


def _copy(path: Path, to: Path) -> None:
    shutil.copyfile(path, to / path.name if to.is_dir() else to)


def _print_each(found: list[T], json: bool, line: Callable[[T], str], nothing: str) -> None:
    if json:
        print_json(found)
        return
    for one in found:
        say(line(one))
    if not found:
        say(nothing)
