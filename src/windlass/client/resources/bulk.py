"""Edits of many jobs: a server does a part at a time, a client asks until all is done."""

from collections.abc import Mapping
from typing import Any, Final

from windlass.client.service import Service
from windlass.messages.bulk import Action, BulkReply, BulkRequest, RefusedJob
from windlass.messages.jobs import Where

TOLD: Final = 20  # refusals that are told one by one


async def edit_parts(
    service: Service, action: Action, where: Where, options: Mapping[str, Any]
) -> BulkReply:
    """Runs a bulk change part by part and returns the sum of all parts."""
    matched = applied = refusals = after = 0
    refused: list[RefusedJob] = []
    while True:
        part = await service.bulk(BulkRequest(action=action, where=where, after=after, **options))
        matched, applied = matched + part.matched, applied + part.applied
        refusals += part.refusals
        refused = (refused + part.refused)[:TOLD]
        if part.next is None:
            return BulkReply(matched=matched, applied=applied, refusals=refusals, refused=refused)
        after = part.next
