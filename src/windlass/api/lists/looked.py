"""How far a search went, as callers of some namespaces may know it.

A search passes over jobs of other namespaces as well. How many there are is not for everybody.
"""

from typing import Final

from msgspec.structs import replace

from windlass.domain.access.rights import Identity
from windlass.wire.bulk import PreviewReply
from windlass.wire.jobs import JobCount, JobList

BOUND: Final = 1_000  # stands for a search that ended before it was through


def listed_for(who: Identity, found: JobList, limit: int) -> JobList:
    """Returns a page of jobs for this caller."""
    if not who.namespaces:
        return found
    is_cut = found.next is not None and len(found.jobs) < limit
    return replace(found, looked=BOUND if is_cut else len(found.jobs))


def counted_for(who: Identity, found: JobCount) -> JobCount:
    """Returns a count of jobs for this caller."""
    if not who.namespaces:
        return found
    return replace(found, looked=found.count if found.exact else BOUND, estimate=None)


def previewed_for(who: Identity, found: PreviewReply) -> PreviewReply:
    """Returns the count of what an action would change for this caller."""
    if not who.namespaces:
        return found
    return replace(found, looked=found.count if found.exact else BOUND, estimate=None)
