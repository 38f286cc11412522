"""The route of the audit log."""

from functools import partial
from typing import Annotated, Final, NamedTuple

import msgspec

from windlass.domain.access.audit import AuditRow
from windlass.domain.access.rights import Action
from windlass.domain.values.quantities import format_moment
from windlass.messages.access import AuditEntry, AuditList
from windlass.messages.numbers import Cursor
from windlass.operations.dispatch.routes import Routes, words_of
from windlass.operations.events import moment_since
from windlass.server.http.call import HttpCall
from windlass.store.sql.transaction import ReadTx

RecentSize = Annotated[int, msgspec.Meta(ge=1, le=500)]
CHUNK: Final = 1_000  # rows to read at once
MAX_CHUNKS: Final = 20  # that one call looks at

PageSize = Annotated[int, msgspec.Meta(ge=1, le=1_000)]

routes = Routes("/api/v1/audit", "audit")


@routes.get("", needs=Action.READ_AUDIT)
async def read_audit(
    call: HttpCall, after: Cursor = 0, since: str | None = None, limit: PageSize = 1_000
) -> AuditList:
    """Returns rows of the audit log, oldest first; to admins of namespaces only theirs.

    `since` is a time, or how long ago.
    """
    engine, namespaces = call.services.engine, call.who.namespaces
    begin = 0 if since is None else moment_since(since, await engine.now())
    rows = await engine.store.read(lambda tx: tx.audit.read(after, begin, namespaces, limit))
    following = rows[-1].id if len(rows) == limit else None
    return AuditList([_show(row) for row in rows], following)


@routes.get("/recent", needs=Action.READ_AUDIT)
async def read_recent(
    call: HttpCall,
    before: Cursor = 0,
    actor: str | None = None,
    action: str | None = None,
    namespace: str | None = None,
    address: str | None = None,
    refused: bool = False,
    since: str | None = None,
    until: str | None = None,
    limit: RecentSize = 100,
) -> AuditList:
    """Returns rows of the audit log, newest first; to admins of namespaces only theirs.

    `since` and `until` are times, or how long ago. `next` is the `before` of the next page. A call
    looks at a bounded number of rows, so a page may be short and still have a `next`.
    """
    now = await call.services.engine.now()
    begin = None if since is None else moment_since(since, now)
    end = None if until is None else moment_since(until, now)
    wanted = RecentFilter(actor, action, namespace, address, refused, end)
    own = call.who.namespaces
    found: list[AuditRow] = []
    seen = before
    for _ in range(MAX_CHUNKS):
        read = partial(_read_recent, before=seen)
        rows = await call.services.engine.store.read(read)
        for row in rows:
            if len(found) == limit:
                return AuditList([_show(row) for row in found], seen)
            if begin is not None and row.at < begin:
                return AuditList([_show(row) for row in found], None)
            seen = row.id
            if wanted.takes(row) and (not own or row.namespace in own):
                found.append(row)
        if len(rows) < CHUNK:
            return AuditList([_show(row) for row in found], None)
    return AuditList([_show(row) for row in found], seen)


async def _read_recent(tx: ReadTx, before: int) -> list[AuditRow]:
    return await tx.audit.recent(before, CHUNK)


class RecentFilter(NamedTuple):
    """Which rows to show; None does not filter."""

    actor: str | None
    action: str | None
    namespace: str | None
    address: str | None
    refused: bool
    until: int | None

    def takes(self, row: AuditRow) -> bool:
        """Returns whether it shows this row."""
        return (
            self.actor in (None, row.actor)
            and self.action in (None, row.action)
            and self.namespace in (None, row.namespace)
            and self.address in (None, row.address)
            and (not self.refused or bool(row.code))
            and (self.until is None or row.at < self.until)
        )


def _show(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        at=format_moment(row.at),
        calls=row.calls,
        actor=row.actor or None,
        role=row.role or None,
        token=row.token or None,
        address=row.address,
        action=row.action,
        resource=row.resource,
        namespace=row.namespace or None,
        status=row.status,
        error=row.code or None,
        request=row.request,
        what=words_of(row.action),
        about=row.about or None,
    )
