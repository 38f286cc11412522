"""Prints the reports of builders and fuzzers."""

from typing import Final

from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.text import print_json, say
from windlass.domain.values.quantities import format_duration, format_moment
from windlass_fuzz.cli.app import set_workflow_outputs
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.reach.html_store import ReportInfo, TargetReport
from windlass_fuzz.roles.builder import BuildReport
from windlass_fuzz.roles.combinations.combination_run import CombinationReport
from windlass_fuzz.roles.fuzzer import FuzzReport
from windlass_fuzz.roles.triager import TriageReport

SHORT: Final = 12


def say_built(report: BuildReport, solver: str) -> None:
    """Prints how a build ended."""
    for commit in report.given_up:
        say(f"{commit} failed: its builds crashed too often")
    name = f"{report.commit}: " if report.commit else ""
    if report.outcome == "built":
        say(f"{name}built in {format_duration(report.took_ms)}")
        for combination, why in report.broken.items():
            say(f"  {combination} could not be built: {why}")
        if report.alarm:
            say(f"  {report.alarm}")
    elif report.outcome == "failed":
        say(f"{name}failed: {report.why}")
        say_output(report.output)
        say(f"  log: windlass fuzz builder log {solver} {report.commit}")
    else:
        say(f"{name}{report.why}")


def say_output(output: str) -> None:
    """Prints what a failed build printed.

    A line of its own, or this mark anywhere, could be a command to a CI runner.
    """
    for line in output.splitlines():
        say(f"  | {line.replace('##[', '## [')}")


def print_fuzzed(report: FuzzReport, solver: str, json: bool) -> None:
    """Prints the report of a fuzzer's run, as text or JSON."""
    set_workflow_outputs(commit=report.commit or "", outcome=report.outcome)
    if json:
        print_json(report)
    else:
        say_fuzzed(report, solver)
    if report.outcome == "unhealthy":
        raise SystemExit(FAILED)


def say_fuzzed(report: FuzzReport, solver: str) -> None:
    """Prints the report as text, with the commands to run next."""
    for commit in report.removed:
        say(f"{commit} left the schedule: its binary is gone")
    count = report.statistics
    if count is None:
        say(f"{report.commit}: {report.why}" if report.commit else report.why)
        return
    say(
        f"{report.commit}: {count_of(count.executions, 'execution')} in {count.seconds:.0f} s from "
        f"{count_of(report.tests, 'test')}, {count_of(len(report.findings), 'finding')}, "
        f"corpus of {report.corpus}"
    )
    for one in report.combinations:
        say(f"  {_about_combination(one)}")
    if report.outcome == "unhealthy":
        say(f"  this run does not count: {report.why}")
    if report.marked_bad:
        say("  the build is marked as bad and left the schedule")
    if report.untriaged:
        say(f"{count_of(report.untriaged, 'input')} will be triaged in the next run")
    if (reached := report.reached) is not None and reached.line_count:
        say(
            f"  reached for the first time: {count_of(reached.function_count, 'function')}, "
            f"{count_of(reached.line_count, 'line')}"
        )
    for key in report.findings:
        say(f"  found {key}: windlass fuzz findings show {solver} {key}")
    for key in report.closed:
        say(f"  fixed {key}")
    for address in report.issues:
        say(f"  issue {address}")


def say_triaged(report: TriageReport, solver: str) -> None:
    """Prints what a triager did, with the time line of each finding."""
    if not report.times:
        say("nothing to triage")
    for key, rows in report.times.items():
        say(f"{key}: windlass fuzz findings show {solver} {key}")
        for row in rows:
            say(f"  {row}")
    for address in report.issues:
        say(f"issue {address}")
    if report.untriaged:
        say(f"left for the next run: {count_of(report.untriaged, 'input')}")


def _about_combination(one: CombinationReport) -> str:
    count = one.statistics
    if one.outcome == "skipped" or count is None:
        return f"{one.combination}: did not run: {one.why}"
    said = (
        f"{one.combination}: {count_of(count.executions, 'execution')} in {count.seconds:.0f} s, "
        f"{count_of(len(one.findings), 'finding')}"
    )
    return f"{said}; unhealthy: {one.why}" if one.why else said


def about_report(report: ReportInfo) -> list[str]:
    """Describes a coverage report: a line, and one for each target if there are several."""
    first = f"coverage report of {report.commit[:SHORT]}, {format_moment(report.made_at_ms)}: "
    return [
        f"{first}{_figures(report)}",
        *(f"  {one.target}: {one.problem or _figures(one)}" for one in report.targets),
    ]


def _figures(report: ReportInfo | TargetReport) -> str:
    part = "" if report.complete else "; not all inputs ran in time"
    return (
        f"{report.functions} of {count_of(report.all_functions, 'function')}, "
        f"{report.lines} of {count_of(report.all_lines, 'line')}{part}"
    )
