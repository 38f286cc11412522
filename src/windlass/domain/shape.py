"""A shape: all that a claim filters by. Many jobs, few shapes."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from windlass.domain.clauses import Clause
from windlass.domain.matching import Mismatch, mismatches

NAMESPACES: Final = "namespaces"


class Shape(Struct, frozen=True):
    """Requirements and resources are in canonical form, so equal needs are equal shapes."""

    namespace: str
    queue: str
    task: str
    requires: tuple[Clause, ...] = ()
    resources: tuple[tuple[str, int], ...] = ()


def shape_digest(shape: Shape) -> str:
    """A name for the shape that is the same in every process."""
    return sha256(msgspec.json.encode(shape)).hexdigest()[:32]


def can_run(shape: Shape, metadata: Mapping[str, object]) -> Mismatch | None:
    """The first thing that keeps a worker from this shape; None: it can run it."""
    return next(shape_mismatches(shape, metadata), None)


def shape_mismatches(shape: Shape, metadata: Mapping[str, object]) -> Iterator[Mismatch]:
    """Everything that keeps a worker from this shape."""
    served = metadata.get(NAMESPACES)
    if served is not None:
        names = served if isinstance(served, list | tuple) else (served,)
        if shape.namespace not in names:
            has = f"{NAMESPACES} {', '.join(str(name) for name in names) or '(empty)'}"
            yield Mismatch(NAMESPACES, NAMESPACES, f"namespace {shape.namespace}", has)
    yield from mismatches(shape.task, shape.requires, shape.resources, metadata)
