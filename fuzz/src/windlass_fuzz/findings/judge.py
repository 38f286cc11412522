"""Runs inputs with one build and returns whether they fail, by the rules of each kind of
finding.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from windlass_fuzz.config.finding_settings import FailureKind
from windlass_fuzz.engines.engine import Engine, Verdict
from windlass_fuzz.engines.frames import on_all
from windlass_fuzz.engines.signature import DEFAULT_RULES, HANG, Signature, hang_in, with_stack
from windlass_fuzz.findings.evidence import NO_TIME, REFUSED

TRIES: Final = 5
MORE_TRIES: Final = 15  # tries for an input that failed once and not in the first tries
MAX_TRIES: Final = 100
SEEN_ENOUGH: Final = 4  # failures that show how often a flaky input fails
FLAKY_TRIES: Final = 60  # maximum runs for that
LOOKED: Final = 3  # failures whose stack we request: a flaky input may not show it
MISSED: Final = 0.001  # accepted chance of missing a flaky failure
LUCK: Final = 0.1  # accepted chance that a flaky failure is rarer than assumed
HALVINGS: Final = 30
PATIENCE: Final = 4  # after this multiple of the limit, a run counts as a hang
BRISK: Final = 0.5  # a timeout is fixed if the input needs less than this part of the limit

Outcome = Literal["fails", "fine", "unclear"]
Slow = ("timeout", "hang")
ENDING: Final = ("crash", "assertion", "sanitizer", "hang")  # kinds that end a run


class Observation(NamedTuple):
    """How one run went; `why` explains an unclear result, `stopped` means that a limit ended it.

    `stack` are the functions that a limit ended, if known.
    """

    outcome: Outcome
    signature: Signature | None = None
    output: str = ""
    why: str = ""
    refused: bool = False
    stopped: bool = False
    stack: tuple[str, ...] = ()


class Reproduction(NamedTuple):
    """How often an input failed, and under which signatures; the last failure, if any.

    `tried` leaves out runs that were stopped by a limit: on a busy machine that happens even to
    inputs which fail every time, and they would look flaky.
    """

    shown: int
    tried: int
    signatures: tuple[Signature, ...] = ()
    last: Observation | None = None
    unclear: str = ""
    refused: bool = False

    @property
    def fine(self) -> bool:
        """Returns whether every run was fine; only then the bug is gone."""
        return self.shown == 0 and self.tried > 0 and not self.unclear


def apart_from_leaks(ran: Reproduction, kind: FailureKind) -> Reproduction:
    """Returns how an input ran with regard to a failure that would have ended it.

    A leak is reported once an input has run to its end, so runs that only leaked were fine.
    """
    leaks = ran.signatures and all(one.kind == "leak" for one in ran.signatures)
    return ran._replace(shown=0, signatures=()) if leaks and kind in ENDING else ran


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges runs of one build. `engine_with` returns its engine with another time limit.

    As many `frames` name a hang.
    """

    engine: Engine
    kinds: Collection[FailureKind]
    engine_with: Callable[[float], Engine]
    frames: int = DEFAULT_RULES.frames

    async def look(self, path: Path, *, deep: bool = False, slow: bool = False) -> Observation:
        """Runs an input once.

        `deep` asks for the stack of a crash, and whether a timeout is a hang. `slow` is for inputs
        that were too slow: they are fine only with a margin.
        """
        verdict = await self.engine.classify(path)
        if verdict.kind == "bug":
            return await self._bug(path, verdict, deep)
        if verdict.kind == "fine":
            return await self._fine(path, verdict, slow)
        if verdict.kind == "unsupported":
            return Observation("unclear", output=verdict.output, why=REFUSED, refused=True)
        if verdict.kind == "memory":
            return self._limit("memory", "needs too much memory", verdict)
        return await self._timeout(path, verdict, deep)

    def has_more_to_say(self, found: Signature) -> bool:
        """Returns whether a deep look may name a failure better."""
        silent = found.source == "output" and found.kind == "crash"
        return silent or (found.kind == "timeout" and "hang" in self.kinds)

    async def reproduce(
        self, path: Path, tries: int = TRIES, slow: bool = False,
        late: Callable[[], bool] = lambda: False, known: Signature | None = None,
    ) -> Reproduction:  # fmt: skip
        """Runs an input several times; failures are examined until a stack names one.

        Once it is `late`, an input that did not fail yet says nothing. If it is `known` as a hang,
        it need not prove again that it never ends; its stacks show whether it is in another place.
        """
        hang = known if known is not None and known.kind == "hang" else None
        shown = tried = looked = 0
        signatures: dict[str, Signature] = {}
        stacks: list[tuple[str, ...]] = []
        last: Observation | None = None
        unclear, refused = "", False
        for number in range(tries):
            if number and late():
                unclear = unclear or NO_TIME
                break
            deep = looked < LOOKED and all(one.source == "output" for one in signatures.values())
            deep = deep and not hang and not any(one.kind in Slow for one in signatures.values())
            seen = await self.look(path, deep=deep, slow=slow)
            tried += not seen.stopped
            if seen.outcome == "unclear":
                unclear, refused = seen.why, seen.refused
            if seen.outcome == "fails" and seen.signature is not None:
                shown += 1
                looked += deep
                last = seen
                hang = seen.signature if seen.signature.kind == "hang" else hang
                found = hang if hang and seen.signature.kind == "timeout" else seen.signature
                stacks += [seen.stack] if found is hang and seen.stack else []
                signatures.setdefault(found.title, found)
        if hang and stacks:
            signatures[hang.title] = hang_in(stacks, self.frames, hang)
        named = tuple(signatures.values())
        return Reproduction(shown, tried, _stacked(named), last, unclear, refused)

    async def _bug(self, path: Path, verdict: Verdict, deep: bool) -> Observation:
        found = verdict.signature
        if found.kind not in self.kinds:
            why = f"shows a {found.kind}, which is not reported"
            return Observation("unclear", output=verdict.output, why=why)
        if deep and found.source == "output" and found.kind == "crash":
            found = with_stack(found, await self.engine.stack(path))
        return Observation("fails", found, verdict.output)

    async def _fine(self, path: Path, verdict: Verdict, slow: bool) -> Observation:
        if slow and (await self.engine_with(BRISK).classify(path)).kind == "timeout":
            why = "still needs more than half of the time limit"
            return Observation("unclear", output=verdict.output, why=why)
        return Observation("fine", output=verdict.output)

    async def _timeout(self, path: Path, verdict: Verdict, deep: bool) -> Observation:
        if not (deep and "hang" in self.kinds):
            return self._limit("timeout", "needs too much time", verdict)
        patient = await self.engine_with(PATIENCE).classify(path)
        if patient.kind != "timeout":
            return self._limit("timeout", "needs too much time", verdict)
        stacks = [one.frames for one in (verdict, patient) if one.frames]
        stack = on_all(stacks) or await self.engine.stack(path)
        seen = self._limit("hang", HANG, verdict)
        return seen._replace(signature=hang_in([stack], self.frames, None), stack=stack)

    def _limit(self, kind: FailureKind, title: str, verdict: Verdict) -> Observation:
        wanted = kind in self.kinds or (kind in Slow and any(k in self.kinds for k in Slow))
        if not wanted:
            return Observation("unclear", output=verdict.output, why=title, stopped=True)
        return Observation("fails", Signature(kind, title), verdict.output, stack=verdict.frames)


def _stacked(found: tuple[Signature, ...]) -> tuple[Signature, ...]:
    """Drops titles from output if the same failure was also seen with its stack."""
    stacks = [one for one in found if one.source == "stack"]
    return tuple(one for one in found if one.source != "output") if stacks else found


def tries_for(shown: int, tried: int, least: int) -> int:
    """Returns how often to run an input in one go; see `tries_needed`."""
    return max(least, min(tries_needed(shown, tried), MAX_TRIES))


def tries_needed(shown: int, tried: int) -> int:
    """Returns how many runs show whether a failure of this frequency is gone.

    Returns 0 if it came every time, or in no run.
    """
    if shown >= tried or shown == 0:
        return 0
    return math.ceil(math.log(MISSED) / math.log(1 - _least_rate(shown, tried)))


def _least_rate(shown: int, tried: int) -> float:
    """Returns a lower bound for the rate of a failure, since we may have been lucky to see it."""
    low, high = 0.0, shown / tried
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _as_often(shown, tried, middle) > LUCK else (middle, high)
    return high


def _as_often(shown: int, tried: int, rate: float) -> float:
    """Returns the probability that a failure of this rate comes at least this often."""
    ways = math.lgamma(tried + 1)
    rarer = (
        math.exp(
            ways - math.lgamma(count + 1) - math.lgamma(tried - count + 1)
            + count * math.log(rate) + (tried - count) * math.log1p(-rate)
        )
        for count in range(shown)
    )  # fmt: skip
    return 1 - sum(rarer)
