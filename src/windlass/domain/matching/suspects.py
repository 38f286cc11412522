"""Keeps suspects apart: jobs that lost a worker which also held other jobs.

Any of them may have killed it, or none: a machine that is switched off blames nobody. So after the
first such loss the jobs may run together again. Each further loss halves how many of them may share
a worker, until a suspect is alone on its worker. So a loss with an outside cause costs little, and
a job that kills workers is alone after a few losses. A loss counts against a job only if it was
alone.

The mark is an entry in the job's list of excluded workers, in which worker 0 stands for company.
"""

import json
from typing import Final, NamedTuple, Self

COMPANY: Final = 0  # replaces a worker's id; its number is the suspicion
ALONE: Final = 1  # 1: alone; more: the maximum of suspects that may share a worker
MAX_SUSPICION: Final = 32_767  # what stores keep


class Company(NamedTuple):
    """What a worker holds: its jobs, the suspects among them, and how many suspects are allowed.

    `most` is 0 if there are no suspects.
    """

    held: int = 0
    suspects: int = 0
    most: int = 0

    def admits(self, suspicion: int) -> bool:
        """Returns True if a job under this suspicion may join them."""
        if self.most == ALONE:
            return False
        if suspicion == ALONE:
            return not self.held
        return not suspicion or self.suspects < min(suspicion, self.most or suspicion)

    def joined_by(self, suspicion: int) -> Self:
        """Returns the company after one more job with this suspicion joins."""
        if not suspicion:
            return self._replace(held=self.held + 1)
        most = min(suspicion, self.most or suspicion)
        return self._replace(held=self.held + 1, suspects=self.suspects + 1, most=most)


NOBODY: Final = Company()


def suspicion_of(excluded: str | None) -> int:
    """Returns how many suspects may share a worker, including this job; 0: it is not a suspect."""
    if excluded is None:
        return 0
    return next((level for who, level in json.loads(excluded) if who == COMPANY), 0)


def suspect(excluded: str | None, company: Company) -> str:
    """Returns the excluded workers of a job whose worker was lost with this company.

    The first loss allows as many suspects as there were jobs. Later ones halve the number of those
    that were already suspects.
    """
    known = suspicion_of(excluded)
    level = (min(known, company.suspects) + 1) // 2 if known else company.held
    level = max(ALONE, min(level, MAX_SUSPICION))
    others = [entry for entry in json.loads(excluded or "[]") if entry[0] != COMPANY]
    return json.dumps([(COMPANY, level), *others], separators=(",", ":"))
