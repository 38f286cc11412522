"""The audit log: who did what, from where. A row may stand for several equal calls."""

from typing import Final, NamedTuple

KEYS_KEPT: Final = 1_000  # kinds of calls that are counted apart in one minute
OTHERS: Final = "(others)"  # stands for callers beyond these


class AuditRow(NamedTuple):
    """One call that changed something or was refused, or several equal ones.

    `at`, `resource` and `request` are those of the first of them.
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


class Repeats:
    """Lets the first of equal calls through and counts the others, minute by minute.

    So a flood of refusals makes two rows a minute for each caller, and callers beyond
    `KEYS_KEPT` in a minute share rows.
    """

    def __init__(self) -> None:
        self._counted: dict[tuple[object, ...], AuditRow] = {}

    def add(self, row: AuditRow) -> AuditRow | None:
        """Returns the row if it is the first of its kind in this minute, else None."""
        key = _key(row)
        if key not in self._counted and len(self._counted) >= KEYS_KEPT:
            row = row._replace(actor=OTHERS, role="", address="", namespace="", token=0)
            key = _key(row)
        known = self._counted.get(key)
        if known is None:
            self._counted[key] = row._replace(calls=0)
            return row
        # The resource and the time of a row are those of the first call that it counts.
        first = known if known.calls else row
        self._counted[key] = first._replace(calls=known.calls + row.calls)
        return None

    def take(self) -> list[AuditRow]:
        """Ends the minute and returns what was counted in it."""
        counted, self._counted = self._counted, {}
        return [row for row in counted.values() if row.calls]


def _key(row: AuditRow) -> tuple[object, ...]:
    return (
        row.token, row.actor, row.address, row.action, row.namespace, row.status, row.code
    )  # fmt: skip
