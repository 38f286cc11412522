"""Keeps suspects apart: jobs that lost a worker which held other jobs too.

Any of them may have killed it. After the first such loss a job only goes to workers that hold no
other suspect; after the second it is alone on its worker. A loss counts against a job only if it
was alone, so an innocent neighbour is not blamed, and a job that kills workers soon is.

The mark is part of the job's list of excluded workers, in which 0 stands for company.
"""

import json
from typing import Final, NamedTuple

COMPANY: Final = 0  # takes the place of a worker's id; its number is the suspicion
APART: Final = 1  # not beside another suspect
ALONE: Final = 2  # not beside any other job


class Company(NamedTuple):
    """What a worker holds: the number of its jobs, and the highest suspicion among them."""

    held: int = 0
    suspicion: int = 0

    def admits(self, suspicion: int) -> bool:
        """Returns True if a job under this suspicion may join them."""
        if self.suspicion >= ALONE:
            return False
        if suspicion >= ALONE:
            return not self.held
        return not (suspicion and self.suspicion)


NOBODY: Final = Company()


def suspicion_of(excluded: str | None) -> int:
    """Returns how much a job is suspected: 0, `APART` or `ALONE`."""
    if excluded is None:
        return 0
    return next((level for who, level in json.loads(excluded) if who == COMPANY), 0)


def suspect(excluded: str | None) -> str:
    """Returns the list of excluded workers of a job that is suspected once more."""
    level = min(suspicion_of(excluded) + 1, ALONE)
    others = [entry for entry in json.loads(excluded or "[]") if entry[0] != COMPANY]
    return json.dumps([(COMPANY, level), *others], separators=(",", ":"))
