"""The audit log: who did what, from where. One row can cover several identical calls."""

from collections.abc import Hashable
from typing import Final, NamedTuple

KEYS_KEPT: Final = 1_000  # kinds of calls counted separately in one minute
OTHERS: Final = "(others)"  # the shared actor of callers beyond these


class AuditRow(NamedTuple):
    """One call that changed something or was refused, or several identical ones.

    `at`, `resource`, `request` and `about` belong to the first of them.
    """

    id: int
    at: int
    calls: int
    status: int  # of the HTTP answer
    token: int  # 0: not one of our tokens
    actor: str  # the caller's name; empty: anonymous
    role: str
    address: str
    action: str  # method and path of the route
    resource: str  # path of the request
    namespace: str  # empty: it concerns none, or several
    code: str  # code of the error; empty: success
    request: str  # the id that the answer carried
    about: str  # the object in words, such as "queue `video`"; empty: none is known


class _Counted:
    """Identical calls after the first one; `row` belongs to the second."""

    __slots__ = ("calls", "row")

    def __init__(self, row: AuditRow) -> None:
        self.row = row
        self.calls = 0


class Repeats:
    """Lets the first of identical calls through and counts the rest, minute by minute.

    A flood of refusals therefore writes at most two rows a minute per caller, and callers beyond
    `KEYS_KEPT` in a minute share rows. `key` says which calls are identical.
    """

    def __init__(self) -> None:
        self._counted: dict[Hashable, _Counted] = {}

    def repeat(self, key: Hashable) -> bool:
        """Counts a call that was repeated before, the common case; returns whether it was."""
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
