"""The worst findings come first, by what their runs did to memory."""

import pytest
from msgspec.structs import replace

from windlass_fuzz.config.finding_settings import FailureKind
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.severity import by_severity, effect_of, severity_of

FINDING = Finding(
    key="k", title="", engine="command", command=[], input="i", size=1, shown=1, tried=1,
    found_in="c", found_at_ms=0,
)  # fmt: skip
CASES: tuple[tuple[FailureKind, str, str, str], ...] = (
    ("sanitizer", "WRITE of size 4 at 0x1 thread T0", "write", "critical"),
    ("sanitizer", "READ of size 4 at 0x1 thread T0", "read", "high"),
    ("sanitizer", "toy.c:3:1: runtime error: index 4 out of bounds for type", "read", "high"),
    ("sanitizer", "a WRITE access.\nHint: address points to the zero page", "null", "medium"),
    ("crash", "Segmentation fault", "crash", "medium"),
    ("assertion", "toy: Assertion `one' failed.", "assertion", "medium"),
    ("leak", "Direct leak of 4 byte(s)", "leak", "low"),
    ("hang", "", "timeout", "low"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "output", "effect", "level"), CASES)
def test_what_a_run_did_decides(kind: FailureKind, output: str, effect: str, level: str) -> None:
    finding = replace(FINDING, kind=kind, output=output)
    assert (effect_of(finding), severity_of(finding)) == (effect, level)


def test_the_worst_come_first() -> None:
    findings = [replace(FINDING, kind=kind, output=output) for kind, output, _, _ in CASES[::-1]]
    effects = [effect_of(one) for one in sorted(findings, key=by_severity)]
    assert effects == [
        "write", "read", "read", "null", "crash", "assertion", "leak", "timeout",
    ]  # fmt: skip
