"""The audit log: who did what, from where. A row may stand for several equal calls."""

from collections.abc import Hashable
from typing import Final, NamedTuple

KEYS_KEPT: Final = 1_000  # kinds of calls that are counted apart in one minute
OTHERS: Final = "(others)"  # stands for callers beyond these


class AuditRow(NamedTuple):
    """One call that changed something or was refused, or several equal ones.

    `at`, `resource`, `request` and `about` are those of the first of them.
    """

    id: int
    at: int
    calls: int
    status: int  # of the HTTP answer
    token: int  # 0: no token of ours
    actor: str  # the caller's name; empty: anonymous
    role: str
    address: str
    action: str  # method and path of the route
    resource: str  # the path
    namespace: str  # empty: it concerns none, or several
    code: str  # of the error; empty: it succeeded
    request: str  # the id that the answer carried
    about: str  # the object in words, such as "queue `video`"; empty: none is known


class _Counted:
    """Equal calls after the first one; `row` is that of the second."""

    __slots__ = ("calls", "row")

    def __init__(self, row: AuditRow) -> None:
        self.row = row
        self.calls = 0


class Repeats:
    """Lets the first of equal calls through and counts the others, minute by minute.

    So a flood of refusals makes two rows a minute for each caller, and callers beyond
    `KEYS_KEPT` in a minute share rows. `key` says which calls are equal.
    """

    def __init__(self) -> None:
        self._counted: dict[Hashable, _Counted] = {}

    def repeat(self, key: Hashable) -> bool:
        """Counts a call if it needs no row of its own; this is all that most calls need."""
        counted = self._counted.get(key)
        if counted is None or not counted.calls:
            return False
        counted.calls += 1
        return True

    def add(self, key: Hashable, row: AuditRow) -> AuditRow | None:
        """Returns the row if it is the first of its kind in this minute, else None."""
        if key not in self._counted and len(self._counted) >= KEYS_KEPT:
            row = row._replace(actor=OTHERS, role="", address="", namespace="", token=0)
            key = (OTHERS, row.action, row.status, row.code)
        counted = self._counted.get(key)
        if counted is None:
            self._counted[key] = _Counted(row)
            return row
        if not counted.calls:
            counted.row = row
        counted.calls += 1
        return None

    def take(self) -> list[AuditRow]:
        """Ends the minute and returns what was counted in it."""
        counted, self._counted = self._counted, {}
        return [one.row._replace(calls=one.calls) for one in counted.values() if one.calls]
