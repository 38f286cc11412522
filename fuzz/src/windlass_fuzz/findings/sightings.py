"""Changes to a finding's record after a sighting, a check or a search. Pure functions."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from windlass_fuzz.findings.evidence import FAILS, FINE, Where, inputs_of, merged, with_run
from windlass_fuzz.findings.judge import Reproduction, tries_needed
from windlass_fuzz.findings.record import SHOWN, SIGNATURES, Finding, KeptInput, Origin, State

INPUTS: Final = 10
ANYWHERE: Final = Where()
REOPENINGS: Final = 5  # a finding that came back this often is set aside


def seen_again(known: Finding | None, new: Finding, limit: int = INPUTS) -> Finding:
    """Returns the record after another sighting: adds its inputs, reopens a closed one.

    Every input that still fails stays, up to the limit, different ones first.
    """
    fresh = inputs_of(new)
    if known is None:
        return msgspec.structs.replace(
            new, seen_in=[new.found_in], inputs=kept(fresh, limit),
            signatures=_together([new.title], new.signatures), state=_state(new, fresh),
        )  # fmt: skip
    inputs = kept([*fresh, *inputs_of(known)], limit)
    best = representative(inputs)
    about = new if any(one.name == best.name for one in fresh) and new.input == best.name else known
    seen = [commit for commit in known.seen_in if commit != new.found_in]
    reopened = known.reopened + (known.state == "closed")
    after = msgspec.structs.replace(
        known,
        input=best.name, size=best.size, shown=best.shown, tried=best.tried, inputs=inputs,
        excerpt=about.excerpt, binary=about.binary, output=about.output, command=about.command,
        combination=about.combination, engine=about.engine,
        times=known.times + 1, seen_in=[*seen, new.found_in][-SHOWN:],
        signatures=_together(known.signatures or [known.title], [new.title, *new.signatures]),
        frames=_fewer(known.frames, new.frames), group=known.group or new.group,
        closed_in=None, closed_at_ms=0, closed_by="", closed_why="", reopened=reopened, unsure="",
    )  # fmt: skip
    return _set_state(after, inputs)


def kept(inputs: Iterable[KeptInput], limit: int) -> list[KeptInput]:
    """Returns the inputs to keep: failing ones first, then distinct ones, then small ones."""
    known: dict[str, KeptInput] = {}
    for one in inputs:
        known[one.name] = merged(known[one.name], one) if one.name in known else one
    ranked: list[tuple[tuple[bool, int, int, str], KeptInput]] = []
    groups: dict[tuple[str, int], int] = {}
    for one in sorted(known.values(), key=lambda one: (_is_fine(one), one.size, one.name)):
        group = (one.title, one.origin)
        groups[group] = groups.get(group, 0) + 1
        ranked.append(((_is_fine(one), groups[group], one.size, one.name), one))
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])[:limit]]


def representative(inputs: list[KeptInput]) -> KeptInput:
    """Returns the smallest input that fails, or the smallest one if none does."""
    return min(inputs, key=lambda one: (_is_fine(one), one.size, one.name))


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


def is_gone(finding: Finding, commit: str) -> bool:
    """Returns whether every kept input ran fine with this commit."""
    inputs = inputs_of(finding)
    return bool(inputs) and all(one.checked_in == commit and _is_fine(one) for one in inputs)


def doubt_about(inputs: list[KeptInput], commit: str) -> str:
    """Returns why a finding without failing inputs cannot be closed; "" if it can."""
    here = [one for one in inputs if one.checked_in == commit]
    if any(one.checked == FAILS for one in here):
        return ""
    doubts = sorted({one.checked for one in here if not _is_fine(one)})
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


def headlined(known: Finding) -> Finding:
    """Repeats the newest origin that has not ended, else the newest one."""
    if not known.origins:
        return known
    shown = ([one for one in known.origins if one.gone_in is None] or known.origins)[-1]
    return msgspec.structs.replace(
        known, introduced_by=shown.first_bad, introduced_subject=shown.subject,
        last_good=shown.last_good, suspects=shown.suspects,
        old=shown.first_bad != known.found_in,
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
