"""The parts of the solver file about findings: what counts, how it is named, when a run counts."""

import re
from collections.abc import Collection
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms
from windlass_fuzz.errors import InvalidSetting

FailureKind = Literal[
    "crash", "assertion", "sanitizer", "leak", "wrong_answer", "timeout", "hang", "memory"
]
ALWAYS: Final[tuple[FailureKind, ...]] = (
    "crash", "assertion", "sanitizer", "leak", "wrong_answer",
)  # fmt: skip


DRIVERS: Final = ("libfuzzer", "afl")  # engines that call a target: each input is a short call


class SignatureSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a failure is named.

    `frames` is how many functions of the stack count, `ignore` are patterns of functions and files
    to skip, `inlined: false` skips inlined functions. `messages` are patterns of lines that
    identify a bug, with priority over everything else; `blank` are patterns of text that varies.
    `debugger: none` never asks a debugger for the stack of a program that a signal ended.
    """

    frames: int = 3
    ignore: tuple[str, ...] = ()
    inlined: bool = True
    messages: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()
    debugger: Literal["gdb", "none"] = "gdb"


class FindingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What counts as a finding, and how much time it may cost.

    `kinds` are the kinds to report; unless given, engines that call a target report hangs, too.
    `inputs` is how many inputs of a finding are kept. `triage` is how long a run may spend on
    triage; it is also at most a tenth of the budget, and what an engine that ended early has left.
    `refused_is_fixed` makes a build that refuses an input, but runs a test, count as fixed.
    """

    kinds: tuple[FailureKind, ...] | None = None
    inputs: int = 10
    triage: str = "10m"
    refused_is_fixed: bool = False

    def kinds_with(self, engine: str) -> tuple[FailureKind, ...]:
        """Returns the kinds to report with an engine."""
        if self.kinds is not None:
            return self.kinds
        return (*ALWAYS, "hang") if engine in DRIVERS else ALWAYS

    @property
    def triage_ms(self) -> int:
        return parse_duration_ms(self.triage, "findings.triage")


class HealthSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a run counts: if at least this share of its executions ran to an answer.

    After `runs` unhealthy runs in a row, the build counts as failed. `coverage: false` is for
    solvers without a real coverage build: then a build that counts nothing is accepted.
    """

    share: float = 0.01
    runs: int = 3
    coverage: bool = True


def may_be_finding(verdict: str, kinds: Collection[FailureKind]) -> bool:
    """Returns whether a run that a limit ended may be a finding of these kinds."""
    return verdict in kinds or (verdict == "timeout" and "hang" in kinds)


def check_finding_settings(
    signature: SignatureSettings, findings: FindingSettings, health: HealthSettings
) -> None:
    """Raises if a value makes no sense; the message names the key."""
    for field in ("ignore", "messages", "blank"):
        for pattern in getattr(signature, field):
            _check_pattern(f"signature.{field}", pattern)
    for least, most, name, number in (
        (1, 20, "signature.frames", signature.frames),
        (1, 100, "findings.inputs", findings.inputs),
        (1, 1_000, "health.runs", health.runs),
    ):
        if not least <= number <= most:
            raise InvalidInput(name, f"a number from {least} to {most}", number)
    if not 0 <= health.share <= 1:
        raise InvalidInput("health.share", "a share from 0 to 1", health.share)
    if findings.triage_ms <= 0:
        raise InvalidInput("findings.triage", "a time above 0", findings.triage)


def _check_pattern(field: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        message = f"{field}: {pattern!r} is not a valid pattern: {error}"
        raise InvalidSetting(field, message, pattern) from None
