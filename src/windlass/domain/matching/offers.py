"""What a worker offers to jobs that share it: `cpus=8,gpus=[0,1],licences=['a','b']`."""

import re
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from windlass.domain.matching.indices import Indices, indices_key, parse_indices, variable_of
from windlass.domain.matching.resources import CPUS, canonical_resources, resource_key
from windlass.domain.matching.room import SHARES
from windlass.domain.values.errors import InvalidInput

_PART: Final = re.compile(r"([^=,\[\]]*)=(\s*\[[^\[\]]*\]\s*|[^,\[\]]*)(?:,|$)")


class Offer(NamedTuple):
    """Metadata that a worker tells, and how many jobs it can run at once."""

    metadata: dict[str, Any]
    slots: int


def parse_offer(
    text: str, processors: int, pinnable: Collection[int] | None = None
) -> Offer | None:
    """Parses the value of --resources; None if it names nothing.

    `processors` is how many there are. With `pinnable`, jobs are pinned to processors: then it
    must list some of those.
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
        canonical_resources({name: 1})  # raises if it is no name
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
