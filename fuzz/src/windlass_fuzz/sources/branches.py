"""Chooses the branches to watch among those of a repository."""

from collections.abc import Iterable, Sequence
from typing import Final

from windlass_fuzz.config.branch_names import is_pattern, matches
from windlass_fuzz.sources.commits import Head, Watched

MAX_BRANCHES: Final = 20  # maximum watched branches


def fitting(wanted: Sequence[str], heads: Iterable[Head]) -> list[Head]:
    """Returns the matching branches, in the order of the list, then by name."""
    ranked = []
    for head in heads:
        place = next((n for n, one in enumerate(wanted) if matches(one, head.name)), None)
        if place is not None:
            ranked.append((place, head.name, head))
    return [head for _, _, head in sorted(ranked)]


def choose(wanted: Sequence[str], heads: Iterable[Head], most: int = MAX_BRANCHES) -> Watched:
    """Returns the branches to watch: the first one, and the others with the newest commits."""
    found = fitting(wanted, heads)
    names = {head.name for head in found}
    missing = tuple(name for name in wanted if not is_pattern(name) and name not in names)
    newest = sorted(found, key=lambda head: (head.name != wanted[0], -head.at_ms))[:most]
    kept = {head.name for head in newest}
    return Watched(
        tuple(head for head in found if head.name in kept),
        tuple(head.name for head in found if head.name not in kept),
        missing,
    )
