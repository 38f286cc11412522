"""The lines in which jobs wait: how many ready jobs of which shapes come before each."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from windlass.domain.rows.records import JobFacts
from windlass.domain.rows.views import ReadySpan
from windlass.engine.transaction.catalog import Catalog, Profile
from windlass.store.sql.places import Head
from windlass.store.sql.transaction import ReadTx

COUNTED: Final = 10_001  # counting more jobs ahead does not improve a forecast
APART: Final = 8  # shapes ahead that are counted separately; the others are counted together
PROFILES: Final = 16  # distinct workers whose other work we check
FIRST: Final = (-(2**62), 0)  # before every rank and job

Parts = list[tuple[int, int]]  # shapes, and how many jobs of each


async def line_before(
    tx: ReadTx,
    catalog: Catalog,
    facts: JobFacts,
    heads: Sequence[Head],
    profiles: Iterable[Profile],
) -> Parts:
    """Returns (shape, number of ready jobs) before a job, as far as its workers take them."""
    return (await lines_before(tx, catalog, [(facts, profiles)], heads))[facts.id]


async def lines_before(
    tx: ReadTx,
    catalog: Catalog,
    jobs: Sequence[tuple[JobFacts, Iterable[Profile]]],
    heads: Sequence[Head],
) -> dict[int, Parts]:
    """Does the same for several jobs; no part of a line is counted twice."""
    shapes = {facts.id: _ahead(catalog, facts, heads, who) for facts, who in jobs}
    places: dict[int, set[tuple[int, int]]] = {}
    for facts, _ in jobs:
        for shape in shapes[facts.id][:APART]:
            places.setdefault(shape, set()).add((facts.rank, facts.id))
    counts = await _counts(tx, places)
    lines: dict[int, Parts] = {}
    for facts, _ in jobs:
        place, before = (facts.rank, facts.id), shapes[facts.id]
        line = [(shape, counts[shape, place]) for shape in before[:APART]]
        if len(before) > APART:
            rest = await tx.views.ready_before(before[APART:], *place, COUNTED)
            line.append((before[APART], rest))
        lines[facts.id] = line
    return lines


async def _counts(
    tx: ReadTx, places: Mapping[int, set[tuple[int, int]]]
) -> dict[tuple[int, tuple[int, int]], int]:
    """Counts the ready jobs of each shape before each of its places."""
    spans = [
        ReadySpan(shape, *start, *end)
        for shape, ends in places.items()
        for start, end in pairwise([FIRST, *sorted(ends)])
    ]
    counts: dict[tuple[int, tuple[int, int]], int] = {}
    found = await tx.views.ready_within(spans, COUNTED) if spans else []
    for span, count in zip(spans, found, strict=True):
        so_far = counts.get((span.shape, (span.since_rank, span.since_job)), 0)
        counts[span.shape, (span.rank, span.job)] = min(so_far + count, COUNTED)
    return counts


def _ahead(
    catalog: Catalog, facts: JobFacts, heads: Iterable[Head], profiles: Iterable[Profile]
) -> list[int]:
    """Returns the shapes with ready jobs before a job that its workers take."""
    distinct = list({profile.digest: profile for profile in profiles}.values())[:PROFILES]
    return [
        head.shape
        for head in heads
        if (head.rank, head.job) < (facts.rank, facts.id)
        and not catalog.paused(head.shape)
        and any(profile.runs(head.shape) for profile in distinct)
    ]
