"""Changes to a finding's record after a sighting, a check or a search. Pure functions."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from windlass_fuzz.findings.evidence import FAILS, FINE, REFUSED, Where, inputs_of, merged, with_run
from windlass_fuzz.findings.judge import Reproduction, tries_needed
from windlass_fuzz.findings.record import SHOWN, SIGNATURES, Finding, KeptInput, Origin, State

INPUTS: Final = 10
ANYWHERE: Final = Where()
REOPENINGS: Final = 5  # a finding that came back this often is set aside


def seen_again(
    known: Finding | None, new: Finding, limit: int = INPUTS, decided: str = ""
) -> Finding:
    """Returns the record after another sighting: adds its inputs, reopens a closed one.

    Every input that still fails stays, up to the limit, different ones first; the one that
    `decided` its origin stays in any case.
    """
    fresh = inputs_of(new)
    if known is None:
        return msgspec.structs.replace(
            new, seen_in=[new.found_in], inputs=kept(fresh, limit, {decided}),
            signatures=_together([new.title], new.signatures), state=_state(new, fresh),
        )  # fmt: skip
    deciding = {decided, *(origin.input for origin in known.origins)}
    inputs = kept([*fresh, *inputs_of(known)], limit, deciding)
    described = [one for one in inputs if one.name in (new.input, known.input)]
    best = representative(described or inputs)
    about = new if best.name == new.input else known
    seen = [commit for commit in known.seen_in if commit != new.found_in]
    reopened = known.reopened + (known.state == "closed")
    after = msgspec.structs.replace(
        known,
        input=best.name, size=best.size, shown=best.shown, tried=best.tried, inputs=inputs,
        excerpt=about.excerpt, binary=about.binary, output=about.output, command=about.command,
        output_of=about.output_of, output_in=about.output_in,
        combination=about.combination, engine=about.engine,
        times=known.times + 1, seen_in=[*seen, new.found_in][-SHOWN:],
        signatures=_together(known.signatures or [known.title], [new.title, *new.signatures]),
        frames=_fewer(known.frames, new.frames), group=known.group or new.group,
        closed_in=None, closed_at_ms=0, closed_by="", closed_why="", reopened=reopened, unsure="",
    )  # fmt: skip
    return _set_state(after, inputs)


def kept(inputs: Iterable[KeptInput], limit: int, decided: Collection[str] = ()) -> list[KeptInput]:
    """Returns the inputs to keep: those that `decided` origins, then failing, distinct, small ones.

    Among these, inputs that the last good build refuses come last.
    """
    known: dict[str, KeptInput] = {}
    for one in inputs:
        known[one.name] = merged(known[one.name], one) if one.name in known else one
    ranked: list[tuple[bool, bool, int, int, KeptInput]] = []
    groups: dict[tuple[str, int], int] = {}
    for place, one in enumerate(sorted(known.values(), key=_worth)):
        group = (one.title, one.origin)
        groups[group] = groups.get(group, 0) + 1
        ranked.append((one.name not in decided, _is_fine(one), groups[group], place, one))
    return [row[-1] for row in sorted(ranked, key=lambda row: row[:-1])[:limit]]


def representative(inputs: Iterable[KeptInput]) -> KeptInput:
    """Returns the smallest input that fails, or the smallest one if none does.

    One that the last good build refuses is the last choice.
    """
    return min(inputs, key=_worth)


def _worth(one: KeptInput) -> tuple[bool, bool, int, str]:
    return _is_fine(one), one.before == REFUSED, one.size, one.name


def checked(
    known: Finding, commit: str, results: Mapping[str, Reproduction], masks: Mapping[str, str],
    where: Where = ANYWHERE,
) -> Finding:  # fmt: skip
    """Records how the inputs ran with a commit; `masks` names findings that hide this one."""
    inputs = [_checked(one, commit, results, masks, where) for one in inputs_of(known)]
    titles = [
        signature.title
        for name, result in results.items()
        if name not in masks
        for signature in result.signatures
    ]
    best = representative(inputs)
    after = msgspec.structs.replace(
        known, inputs=inputs, input=best.name, size=best.size, shown=best.shown, tried=best.tried,
        signatures=_together(known.signatures or [known.title], titles),
        unsure=doubt_about(inputs, commit),
    )  # fmt: skip
    if any(one.checked == FAILS and one.checked_in == commit for one in inputs):
        seen = [name for name in known.seen_in if name != commit]
        after = msgspec.structs.replace(after, seen_in=[*seen, commit][-SHOWN:])
        after = _set_state(after, inputs) if after.live else after
    return after


def with_masked(
    known: Finding | None, *, one: KeptInput, commit: str, ran: Reproduction, by: str, where: Where
) -> Finding:
    """Adds an input that showed a finding, and that shows the finding `by` with this commit."""
    assert known is not None
    after = msgspec.structs.replace(known, inputs=[*inputs_of(known), one])
    after = checked(after, commit, {one.name: ran}, {one.name: by}, where)
    return msgspec.structs.replace(
        after, input=known.input, size=known.size, shown=known.shown, tried=known.tried
    )


def is_gone(finding: Finding, commit: str) -> bool:
    """Returns whether every kept input ran fine with this commit, or is no evidence."""
    return not _doubtful(inputs_of(finding), commit)


def _doubtful(inputs: list[KeptInput], commit: str) -> list[KeptInput]:
    """Returns the inputs that keep a finding open.

    An input that is refused says nothing if the last good build refuses it as well, but one input
    at least must run fine. If the input that it was reduced from, or the reduced one, runs fine,
    a refused input or one that shows another bug says nothing, either.
    """
    fine = {one.name for one in inputs if one.checked_in == commit and _is_fine(one)}
    related = fine | {one.source for one in inputs if one.name in fine and one.source}

    def says_nothing(one: KeptInput) -> bool:
        refused = one.checked == REFUSED
        if one.checked_in != commit or not fine or not (refused or one.masked_by):
            return False
        return (refused and one.before == REFUSED) or bool({one.name, one.source} & related)

    return [one for one in inputs if one.name not in fine and not says_nothing(one)]


def doubt_about(inputs: list[KeptInput], commit: str) -> str:
    """Returns why a finding without failing inputs cannot be closed; "" if it can."""
    here = [one for one in _doubtful(inputs, commit) if one.checked_in == commit]
    if any(one.checked == FAILS for one in here):
        return ""
    doubts = sorted({one.checked for one in here})
    return f"with {commit[:12]} an input {', another '.join(doubts)}" if doubts else ""


def mark_closed(known: Finding, commit: str | None, now_ms: int, by: str = "") -> Finding:
    """Returns the record with the state closed, by this commit or by a person."""
    if known.state == "closed":
        return known
    origins = [
        one if one.gone_in else msgspec.structs.replace(one, gone_in=commit)
        for one in known.origins
    ]
    return msgspec.structs.replace(
        known, state="closed", closed_in=commit, closed_at_ms=now_ms, closed_by=by,
        origins=origins, unsure="",
    )  # fmt: skip


def reopened(known: Finding) -> Finding:
    """Returns a closed record as open again, because one of its inputs fails again."""
    if known.state != "closed":
        return known
    after = msgspec.structs.replace(
        known,
        closed_in=None,
        closed_at_ms=0,
        closed_by="",
        closed_why="",
        reopened=known.reopened + 1,
    )
    return _set_state(after, inputs_of(known))


def quarantine(known: Finding, why: str) -> Finding:
    """Sets a finding aside: it is watched, but it is not filed and blocks no change."""
    return msgspec.structs.replace(known, state="quarantined", note=why)


def release(known: Finding) -> Finding:
    """Returns a quarantined finding as open or flaky."""
    if known.state != "quarantined":
        return known
    after = msgspec.structs.replace(known, state="open", note="", reopened=0)
    return _set_state(after, inputs_of(known))


def with_origin(known: Finding, new: Origin, *, place: int | None = None) -> Finding:
    """Adds an origin, or replaces one, and repeats the newest one in the record's own fields."""
    origins = list(known.origins)
    if place is None:
        place = len(origins)
        origins.append(new)
    else:
        origins[place] = new
    inputs = [
        msgspec.structs.replace(one, origin=place) if one.name == new.input else one
        for one in known.inputs
    ]
    return headlined(msgspec.structs.replace(known, origins=origins, inputs=inputs))


def compared(known: Finding, before: Mapping[str, str]) -> Finding:
    """Records how the last good build ran some inputs, by their names."""
    inputs = [
        msgspec.structs.replace(one, before=before.get(one.name, one.before))
        for one in known.inputs
    ]
    return msgspec.structs.replace(known, inputs=inputs)


def headlined(known: Finding) -> Finding:
    """Repeats the current origin in the record's own fields."""
    shown = known.current_origin
    if shown is None:
        return known
    return msgspec.structs.replace(
        known, introduced_by=shown.culprit, introduced_subject=shown.subject,
        last_good=shown.last_good, suspects=shown.suspects,
        old=shown.culprit != known.found_in,
    )  # fmt: skip


def _checked(
    one: KeptInput, commit: str, results: Mapping[str, Reproduction], masks: Mapping[str, str],
    where: Where,
) -> KeptInput:  # fmt: skip
    result = results.get(one.name)
    if result is None:
        return one
    quiet = one.quiet
    if one.name in masks:
        said = f"shows {masks[one.name]} instead"
    elif result.shown:
        said, quiet = FAILS, 0
    else:
        quiet += 0 if result.unclear else result.tried
        said = result.unclear or _quiet_enough(one, quiet)
    after = with_run(one, commit, said, where)
    if after is one:
        return one
    failed = said == FAILS
    return msgspec.structs.replace(
        after, masked_by=masks.get(one.name, ""), quiet=quiet,
        title=result.signatures[0].title if failed else one.title,
        shown=one.shown + (result.shown if failed else 0),
        tried=one.tried + (_quiet_before(one) + result.tried if failed else 0),
    )  # fmt: skip


def _quiet_before(one: KeptInput) -> int:
    """Returns how many quiet runs preceded a flaky failure that came back."""
    return one.quiet if one.shown < one.tried else 0


def _quiet_enough(one: KeptInput, quiet: int) -> str:
    """Returns that an input is fine if it ran often enough to show a rare failure."""
    needed = tries_needed(one.shown, one.tried)
    if quiet >= needed:
        return FINE
    return f"fails rarely, and ran fine {quiet} of the {needed} times that would prove a fix"


def _fewer(known: list[str], new: list[str]) -> list[str]:
    """Returns the better name: a smaller input has fewer operators."""
    return new if not known or (new and set(new) < set(known)) else known


def _is_fine(one: KeptInput) -> bool:
    return one.checked == FINE


def _together(known: list[str], more: list[str]) -> list[str]:
    return list(dict.fromkeys([*known, *more]))[:SIGNATURES]


def _state(known: Finding, inputs: list[KeptInput]) -> State:
    """Returns the state of a live finding: flaky if no input fails every time."""
    if known.state == "quarantined":
        return "quarantined"
    return "open" if any(one.shown >= one.tried for one in inputs) else "flaky"


def _set_state(known: Finding, inputs: list[KeptInput]) -> Finding:
    if known.reopened >= REOPENINGS and known.state != "quarantined":
        return quarantine(known, f"it came back {known.reopened} times")
    state = _state(known, inputs)
    return msgspec.structs.replace(known, state=state)
