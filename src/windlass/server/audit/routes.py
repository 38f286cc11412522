"""The route of the audit log."""

from typing import Annotated

import msgspec

from windlass.api.events import moment_since
from windlass.domain.access.actions import Action
from windlass.domain.access.audit import AuditRow
from windlass.domain.values.times import format_moment
from windlass.server.http.call import Call
from windlass.server.http.routes import Routes
from windlass.wire.access import AuditEntry, AuditList
from windlass.wire.numbers import Cursor

PageSize = Annotated[int, msgspec.Meta(ge=1, le=1_000)]

routes = Routes("/api/v1/audit", "audit")


@routes.get("", needs=Action.READ_AUDIT)
async def read_audit(
    call: Call, after: Cursor = 0, since: str | None = None, limit: PageSize = 1_000
) -> AuditList:
    """Returns rows of the audit log, oldest first; to admins of namespaces only theirs.

    `since` is a time, or how long ago.
    """
    engine, namespaces = call.services.engine, call.who.namespaces
    begin = 0 if since is None else moment_since(since, await engine.now())
    rows = await engine.store.read(lambda tx: tx.audit.read(after, begin, namespaces, limit))
    following = rows[-1].id if len(rows) == limit else None
    return AuditList([_show(row) for row in rows], following)


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
    )
