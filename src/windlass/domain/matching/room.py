"""The room of a worker: what it offers to jobs, and what is left beside those it holds.

Claims and `explain` use the same functions: a claim asks whether anything is lacking, `explain`
shows what.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from windlass.domain.matching.clauses import (
    CPUS,
    NO_CPUS,
    canonical_resources,
    is_size,
    resource_key,
)
from windlass.domain.matching.indices import (
    Indices,
    indices_key,
    offered,
    parse_indices,
    variable_of,
)
from windlass.domain.matching.matching import APART, PER_WORKER, Mismatch, amount_of
from windlass.domain.matching.shapes import Shape
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import counted, readable_size

SHARES: Final = "system:shares"  # metadata of workers where each job takes a processor

MANY: Final = 1_000_000

Needs = tuple[tuple[str, int], ...]


def needs_of(shape: Shape, metadata: Mapping[str, object]) -> Needs:
    """Returns what a job takes; if jobs share processors, at least one by default."""
    if NO_CPUS in shape.resources:
        return tuple(need for need in shape.resources if need != NO_CPUS)
    if not metadata.get(SHARES) or any(name == CPUS for name, _ in shape.resources):
        return shape.resources
    return ((CPUS, 1), *shape.resources)


class Room:
    """The room of one worker: what it has, what its leases use, and what is reserved."""

    __slots__ = ("_amounts", "_apart", "_held", "_metadata", "_queues", "_reserved", "_used")

    def __init__(
        self,
        metadata: Mapping[str, object],
        reserved: Shape | None = None,
        held: Mapping[str, set[str]] | None = None,
    ) -> None:
        self._metadata = metadata
        self._held = held or {}  # indices in use, by resource; for display only
        self._amounts: dict[str, int] = {}
        self._reserved = reserved
        self._used: Counter[str] = Counter()
        self._apart: Counter[tuple[str, str]] = Counter()
        self._queues: Counter[str] = Counter()

    def take(self, shape: Shape, jobs: int = 1) -> None:
        """Adds (or removes) jobs of this shape to those the worker holds."""
        for name, amount in needs_of(shape, self._metadata):
            self._used[name] += amount * jobs
        if shape.apart is not None:
            self._apart[shape.namespace, shape.apart] += jobs
        self._queues[shape.queue] += jobs

    def use_at_least(self, name: str, amount: int) -> None:
        """Counts at least this much as used, even if the needs of jobs have changed since."""
        self._used[name] = max(self._used[name], amount)

    def lacks(self, shape: Shape, per_worker: int = 0) -> Mismatch | None:
        """Returns the first thing that one more job of this shape lacks; None if it fits.

        `per_worker` is how many jobs of its queue a worker may hold, 0 for any number.
        """
        if shape.apart is not None and self._apart[shape.namespace, shape.apart]:
            needs = f"a worker that holds no other job with apart={shape.apart}"
            other = f"another job with apart={shape.apart}"
            return Mismatch(f"apart={shape.apart}", APART, needs, other)
        held = self._queues[shape.queue]
        if per_worker and held >= per_worker:
            most = "no job" if per_worker == 1 else f"fewer than {per_worker} jobs"
            needs = f"{most} of queue {shape.queue}"
            full = f"{counted(held, 'job')} of queue {shape.queue}, the most for one worker"
            return Mismatch(PER_WORKER, PER_WORKER, needs, full)
        for name, amount in needs_of(shape, self._metadata):
            has, left = self._left(name, shape)
            if amount > left:
                return _shortage(name, amount, left, has, self._indices(name))
        return None

    def fits(self, shape: Shape, per_worker: int = 0) -> int:
        """Returns how many more jobs of this shape the worker could hold, `MANY` for any number."""
        most = MANY
        if shape.apart is not None:
            most = 0 if self._apart[shape.namespace, shape.apart] else 1
        if per_worker:
            most = min(most, per_worker - self._queues[shape.queue])
        for name, amount in needs_of(shape, self._metadata):
            most = min(most, self._left(name, shape)[1] // amount)
        return max(0, most)

    def left(self, name: str) -> int:
        """Returns how much of a resource its jobs leave free."""
        return self._has(name) - self._used[name]

    def _indices(self, name: str) -> str:
        """Shows which indices of a resource are in use: "; in use: 0, 1"."""
        held = self._held.get(name)
        if not held:
            return ""
        order = offered(self._metadata).get(name, ())
        return "; in use: " + ", ".join([index for index in order if index in held])

    def _has(self, name: str) -> int:
        has = self._amounts.get(name)
        if has is None:
            has = self._amounts[name] = amount_of(self._metadata, name)
        return has

    def _left(self, name: str, shape: Shape) -> tuple[int, int]:
        """Returns how much the worker has, and how much of it this shape may still take."""
        has = self._has(name)
        left = has - self._used[name]
        if self._reserved is not None and self._reserved != shape:
            left -= sum(a for n, a in needs_of(self._reserved, self._metadata) if n == name)
        return has, left


def _shortage(name: str, amount: int, left: int, has: int, indices: str) -> Mismatch:
    def shown(number: int) -> str:
        return readable_size(number) if is_size(name) else str(number)

    # Rounded for display, the two could look the same.
    room = shown(max(0, left)) if shown(left) != shown(amount) else f"{left:,} bytes"
    free = f"{room} of {shown(has)} free{indices}"
    return Mismatch(f"{name}={amount}", resource_key(name), f"{name} {shown(amount)}", free)


_PART: Final = re.compile(r"([^=,\[\]]*)=(\s*\[[^\[\]]*\]\s*|[^,\[\]]*)(?:,|$)")


class Offer(NamedTuple):
    """Metadata that a worker reports, and how many jobs it can run at once."""

    metadata: dict[str, Any]
    slots: int


def parse_offer(
    text: str, processors: int, pinnable: Collection[int] | None = None
) -> Offer | None:
    """Parses the value of --resources; None if it names nothing.

    `processors` is their number. With `pinnable`, jobs are pinned to processors, and the value must
    list some.
    """
    amounts, indices = _read(text)
    if pinnable is not None:
        _check_pins(indices.get(CPUS, ()), pinnable)
    if not amounts and not indices:
        return None
    # The server counts usage; a job that asks for no CPUs uses one.
    amounts = {CPUS: processors, **amounts, **{name: len(all_) for name, all_ in indices.items()}}
    metadata: dict[str, Any] = {resource_key(name): amount for name, amount in amounts.items()}
    metadata |= {indices_key(name): list(names) for name, names in indices.items()}
    metadata[SHARES] = True
    return Offer(metadata, max(1, amounts[CPUS]))


def _read(text: str) -> tuple[dict[str, int], Indices]:
    amounts: dict[str, str] = {}
    indices: Indices = {}
    at, end = 0, len(text.rstrip(", "))
    while at < end:
        match = _PART.match(text, at)
        if match is None:
            expected = "name=amount or name=[index,…], comma-separated"
            raise InvalidInput("resources", expected, text[at:])
        name, value = match[1].strip(), match[2].strip()
        canonical_resources({name: 1})  # raises if it is not a name
        if value.startswith("["):
            indices[name] = parse_indices(value, name)
        else:
            amounts[name] = value
        at = match.end()
    twice = {variable_of(name) for name in indices}
    if len(twice) < len(indices):
        raise InvalidInput("resources", "names that differ in more than case and signs", text)
    kept = dict(canonical_resources(amounts))
    return {name: kept.get(name, 0) for name in amounts}, indices  # gpus=0 offers none


def _check_pins(cpus: Collection[str], pinnable: Collection[int]) -> None:
    if not cpus:
        raise InvalidInput("pin-cpus", "cpus=[…] in --resources, such as cpus=[0-7]", "none")
    foreign = [name for name in cpus if not name.isdigit() or int(name) not in pinnable]
    if foreign:
        raise InvalidInput(
            "resources.cpus", "processors that this worker may run on", ", ".join(foreign)
        )
