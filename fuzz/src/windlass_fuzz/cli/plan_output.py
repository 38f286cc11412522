"""Prints the plans of `--dry-run`."""

import shlex
from collections.abc import Iterable

from windlass.cli.output.text import say
from windlass.domain.values.quantities import format_duration, format_size
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.roles.coverage import CoveragePlan
from windlass_fuzz.roles.plan import BuildPlan, FuzzPlan, HeldByOther

SHORT = 12
Line = tuple[str, str]


def say_build_plan(plan: BuildPlan) -> None:
    """Prints what a builder would do."""
    _say_first(plan.outcome, plan.commit, plan.why)
    lines = _held_by_others(plan.passed_over)
    crashed = "its builds crashed too often; it moves to failed"
    lines += [("give up", f"{commit[:SHORT]}: {crashed}") for commit in plan.given_up]
    if plan.commit is not None:
        tried = f"try {plan.attempt} of {plan.attempts}"
        lines.append(("lease", f"{format_duration(plan.lease_ms)}, renewed while it runs; {tried}"))
        for name, argv in plan.combinations.items():
            lines.append(("combination", f"{name}: {shlex.join(argv)}"))
        for kind, argv in plan.commands.items():
            if kind == "production" and plan.combinations:
                continue
            present = "replaces the one in the bucket" if plan.in_bucket[kind] else "not built yet"
            lines.append((kind, f"{shlex.join(argv)} ({present})"))
        lines.append(("limits", f"{format_duration(plan.timeout_ms)} for each build"))
        needed = "coverage and one combination" if plan.combinations else "both"
        lines.append(("afterwards", f"move to built if {needed} succeed, else to failed"))
    _say_rest(lines, plan.writes)


def say_fuzz_plan(plan: FuzzPlan) -> None:
    """Prints what a fuzzer would do."""
    _say_first(plan.outcome, plan.commit, plan.why)
    lines = _held_by_others(plan.passed_over)
    lines += [("remove", f"{commit[:SHORT]}: its binary is gone") for commit in plan.removed]
    if plan.commit is not None:
        lines += _fuzzing(plan)
    _say_rest(lines, plan.writes)


def say_coverage_plan(plan: CoveragePlan) -> None:
    """Prints what the coverage role would do."""
    _say_first("would map", plan.commit, plan.why)
    part = "" if plan.shard == "1/1" else f", part {plan.shard}"
    timeout = format_duration(plan.timeout_ms)
    lines = [
        ("build", "in the bucket" if plan.in_bucket else "none in the bucket; made here first"),
        ("tests", f"{plan.tests}{part}, {plan.cores} at a time, {timeout} for each"),
        ("map", "replaces the one in the bucket" if plan.replaces_map else "the first one"),
    ]
    _say_rest(lines, plan.writes)


def _fuzzing(plan: FuzzPlan) -> list[Line]:
    binaries = ", ".join(
        f"{kind} {'present' if present else 'missing'}" for kind, present in plan.in_bucket.items()
    )
    names = " ".join(plan.first_tests) + (" …" if plan.tests > len(plan.first_tests) else "")
    reserved = format_duration(plan.reserved_ms)
    each = f"{format_size(plan.memory)} and {format_duration(plan.input_timeout_ms)}"
    filed = f"; files issues with {plan.issues}" if plan.issues else ""
    after = "it leaves" if plan.fuzz_count_after is None else "it stays"
    count = f"{plan.fuzz_count} → {plan.fuzz_count + 1}"
    return [
        ("lease", f"{format_duration(plan.lease_ms)}, renewed while it runs"),
        ("binaries", binaries),
        ("engine", f"{plan.engine}, on {plan.cores} cores; {each} for each input"),
        ("tests", f"{plan.tests} ({plan.chosen_by})" + (f": {names}" if names else "")),
        ("corpus", f"{count_of(plan.corpus, 'input')} from earlier runs"),
        ("budget", f"{format_duration(plan.budget_ms)}, {reserved} of it for triage"),
        *_shares(plan),
        ("findings", f"{plan.rechecks} open ones, rechecked with this build{filed}"),
        ("afterwards", f"fuzz_count {count}; {after}: {plan.rule}"),
    ]


def _shares(plan: FuzzPlan) -> list[Line]:
    """Returns what each combination of a matrix gets."""
    if plan.next_run is None:
        return []
    return [
        ("combination", f"{one.combination}: {one.percent} % ({one.why})")
        for one in plan.next_run.shares
    ]


def _held_by_others(passed: Iterable[HeldByOther]) -> list[Line]:
    return [("skip", f"{p.commit[:SHORT]}: held by {p.holder} until {p.until}") for p in passed]


def _say_first(outcome: str, commit: str | None, why: str) -> None:
    say(f"{outcome} {commit}: {why}" if commit else f"nothing to do: {why}")


def _say_rest(lines: list[Line], writes: list[str]) -> None:
    for name, text in lines:
        say(f"  {name:<11} {text}")
    for number, key in enumerate(writes):
        below = "… (depends on what it finds)" if key.endswith("/") else ""
        say(f"  {'' if number else 'would write':<11} {key}{below}")
    say("nothing was written")
