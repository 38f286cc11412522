"""How bad a bug is, by what its run did to memory: decides which findings come first."""

from collections.abc import Mapping
from typing import Final, Literal

from windlass_fuzz.findings.record import Finding

Effect = Literal[
    "write", "read", "wrong answer", "null", "crash", "assertion", "leak", "memory", "timeout"
]
Level = Literal["critical", "high", "medium", "low"]
LEVELS: Final[Mapping[Effect, Level]] = {
    "write": "critical", "read": "high", "wrong answer": "high", "null": "medium",
    "crash": "medium", "assertion": "medium", "leak": "low", "memory": "low", "timeout": "low",
}  # fmt: skip
ORDER: Final = tuple(LEVELS)  # the worst first
_NULL: Final = ("points to the zero page", "null pointer")
_WRITES: Final = ("WRITE of size", "caused by a WRITE", "double-free", "bad-free", "store to")
_READS: Final = ("READ of size", "caused by a READ", "out of bounds", "load of", "use-of-uninit")


def effect_of(finding: Finding) -> Effect:
    """Returns what the failing run did, as far as its output says."""
    if finding.kind == "crash" or finding.kind == "sanitizer":
        text = f"{finding.title}\n{finding.output}"
        for words, effect in _EFFECTS:
            if any(word in text for word in words):
                return effect
        return "crash"
    if finding.kind == "wrong_answer":
        return "wrong answer"
    if finding.kind == "hang":
        return "timeout"
    return finding.kind


def severity_of(finding: Finding) -> Level:
    """Returns how bad a bug is."""
    return LEVELS[effect_of(finding)]


def by_severity(finding: Finding) -> tuple[int, int]:
    """Sorts findings, the worst first, then the oldest."""
    return ORDER.index(effect_of(finding)), finding.found_at_ms


_EFFECTS: Final[tuple[tuple[tuple[str, ...], Effect], ...]] = (
    (_NULL, "null"), (_WRITES, "write"), (_READS, "read"),
)  # fmt: skip
