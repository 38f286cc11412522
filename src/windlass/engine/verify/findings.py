"""What a check found: which invariant of the design is broken, where, and how."""

from msgspec import Struct

MAX_FINDINGS = 1_000  # one bug can break an invariant for every job; the first ones are enough


class Violation(Struct, frozen=True):
    """A broken invariant, by its name in the design: "S3". `seq` is the event's, if any."""

    invariant: str
    message: str
    job: int = 0
    seq: int = 0


class Findings:
    """The violations found so far, a bounded number."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def add(self, invariant: str, message: str, job: int = 0, seq: int = 0) -> None:
        """Adds a violation."""
        if len(self.violations) < MAX_FINDINGS:
            self.violations.append(Violation(invariant, message, job, seq))
