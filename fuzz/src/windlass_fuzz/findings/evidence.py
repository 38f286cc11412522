"""Which combinations an input broke, and how it has run with them since. Pure functions.

Only a combination that an input broke can prove that it is fixed: a build without the sanitizer, or
of another target, runs it fine without any fix.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from windlass_fuzz.findings.record import Evidence, Finding, KeptInput

FAILS: Final = "fails"
FINE: Final = "fine"
REFUSED: Final = "was refused"
NO_TIME: Final = "there was no time to run it often enough"
OLD: Final = "was found before the file had a matrix, and no combination shows it"
GONE: Final = "it is not in the solver file"
PLAIN: Final = "the build without a matrix"


class Where(NamedTuple):
    """The build that an input runs with; both are "" without a matrix."""

    combination: str = ""
    target: str = ""


def inputs_of(finding: Finding) -> list[KeptInput]:
    """Returns the kept inputs; a record without a list has the one of its own fields."""
    if finding.inputs:
        return list(finding.inputs)
    return [
        KeptInput(
            name=finding.input, size=finding.size, title=finding.title,
            found_in=finding.found_in, shown=finding.shown, tried=finding.tried,
        )
    ]  # fmt: skip


def inputs_for(finding: Finding, where: Where) -> list[KeptInput]:
    """Returns the inputs to run with a build.

    These are the ones that broke its combination. If there are none, the smallest one that broke
    another combination of the same target shows whether this one has the bug, too.
    """
    inputs = inputs_of(finding)
    own = [one for one in inputs if not one.combinations or where.combination in one.combinations]
    if own or not finding.live or (where.target and where.target not in finding.targets):
        return own
    return [one for one in inputs if one.name == finding.input] or inputs[:1]


def checker_for(one: KeptInput) -> str:
    """Returns what a build needs to report an input; combinations may differ in that."""
    return one.checker if len(one.combinations) <= 1 else ""


def was_run(one: KeptInput, commit: str) -> bool:
    """Returns whether there was time to run an input with the build of a commit."""
    return one.checked_in == commit and one.checked != NO_TIME


def fails_with(one: KeptInput, where: Where) -> bool:
    """Returns whether an input failed when it last ran with this combination."""
    if not one.combinations:
        return one.checked == FAILS
    ran = one.combinations.get(where.combination)
    return ran is not None and ran.checked == FAILS


def first_evidence(where: Where, commit: str) -> dict[str, Evidence]:
    """Returns the evidence of a new input; without a matrix, from its own fields."""
    if not where.combination:
        return {}
    return {where.combination: Evidence(target=where.target, checked_in=commit)}


def with_run(one: KeptInput, commit: str, said: str, where: Where) -> KeptInput:
    """Records how an input ran; ignores a build of a combination that it never broke."""
    if not where.combination and not one.combinations:
        return msgspec.structs.replace(one, checked_in=commit, checked=said)
    if said != FAILS and where.combination not in one.combinations:
        if one.combinations:
            return one
        said = OLD if said == FINE else said
        return msgspec.structs.replace(one, checked_in=commit, checked=said)
    ran = Evidence(target=where.target, checked_in=commit, checked=said)
    known = {**one.combinations, where.combination: ran}
    return msgspec.structs.replace(
        one, combinations=known, checked_in=commit, checked=_together(known, commit)
    )


def merged(one: KeptInput, other: KeptInput) -> KeptInput:
    """Returns an input with the combinations of another record of the same input."""
    if not other.combinations:
        return one
    both = {**other.combinations, **one.combinations}
    return msgspec.structs.replace(one, combinations=both)


def missing_runs(finding: Finding, commit: str, reasons: Mapping[str, str]) -> str:
    """Returns with which combinations the inputs did not run, and why; "" if an input fails.

    `reasons` are about combinations of the file; others are no longer in it.
    """
    inputs = inputs_of(finding)
    if any(one.checked_in == commit and one.checked == FAILS for one in inputs):
        return ""
    missing = sorted({
        name
        for one in inputs
        for name, ran in one.combinations.items()
        if ran.checked_in != commit
    })  # fmt: skip
    said = [f"{name or PLAIN}: {reasons.get(name, GONE)}" for name in missing]
    return f"with {commit[:12]} an input did not run with {'; '.join(said)}" if said else ""


def _together(known: Mapping[str, Evidence], commit: str) -> str:
    """Returns what all combinations together say about an input and a commit."""
    here = {name: ran.checked for name, ran in known.items() if ran.checked_in == commit}
    if FAILS in here.values():
        return FAILS
    missing = [name or PLAIN for name in known if name not in here]
    if missing:
        return f"did not run with {', '.join(missing)}"
    return next((said for said in here.values() if said != FINE), FINE)
