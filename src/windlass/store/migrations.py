"""Loads the numbered steps that bring an older database up to date.

`schema.sql` is version 1. A change of the schema after a release is made in `schema.sql` and in a
new file `migrations/0002_what_changes.sql`; the number of the last file is the version.
"""

import re
from importlib.resources import files
from typing import Final, NamedTuple

from windlass.store.sql.queries import read_sql

FIRST_VERSION: Final = 1
_FILE: Final = re.compile(r"^(\d{4})_([a-z0-9_]+)\.sql$")


class Step(NamedTuple):
    """Brings a database from the version before to `version`."""

    version: int
    name: str
    sql: str


def load_steps(package: str) -> tuple[Step, ...]:
    """Returns the steps in `package`, in order; they are numbered from 2 without a gap."""
    names = sorted(entry.name for entry in files(package).iterdir())
    steps = tuple(
        Step(int(match[1]), match[2], read_sql(package, name))
        for name in names
        if (match := _FILE.match(name))
    )
    if [step.version for step in steps] != list(range(FIRST_VERSION + 1, latest(steps) + 1)):
        raise ValueError(f"expected migrations numbered from 2 without a gap, got {names}")
    return steps


def latest(steps: tuple[Step, ...]) -> int:
    """Returns the version that a database has after all steps."""
    return FIRST_VERSION + len(steps)
