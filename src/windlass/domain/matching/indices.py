"""Indexed resources: not only how many GPUs, licences, ports or processors a job has, but which.

A worker lists its indices in its metadata (`indices:gpus`). A claim gives a job the first free ones
and records them in the lease (docs/decisions/015-indexed-resources.md).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from windlass.domain.matching.clauses import is_size, resource_key
from windlass.domain.values.errors import InvalidInput

Indices = dict[str, tuple[str, ...]]  # by resource

PREFIX: Final = "indices:"
MAX_INDICES: Final = 4_096  # of one resource on one worker
GPUS: Final = "gpus"
VENDOR: Final = "gpu:vendor"
AMD: Final = "amd"

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,99}")
_RANGE: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_EXPECTED: Final = "indices such as [0,1], [0-7] or ['a','b']"


def indices_key(resource: str) -> str:
    """Returns the metadata key under which a worker lists the indices of a resource."""
    return PREFIX + resource


def parse_indices(text: str, resource: str) -> tuple[str, ...]:
    """Parses `[0,1]`, `[0-7]` or `['lic-a','lic-b']`; quotes keep a name from being a range."""
    field = f"resources.{resource}"
    if is_size(resource):
        raise InvalidInput(field, "an amount: bytes have no indices", text)
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    found: list[str] = []
    for part in inner.split(",") if inner else ():
        found += _names(part.strip(), field)
        if len(found) > MAX_INDICES:
            raise InvalidInput(field, f"at most {MAX_INDICES} indices", text)
    if len(set(found)) < len(found):
        raise InvalidInput(field, "each index once", text)
    return tuple(found)


def _names(part: str, field: str) -> Sequence[str]:
    quoted = len(part) > 1 and part[0] == part[-1] and part[0] in "'\""
    name = part[1:-1] if quoted else part
    span = None if quoted else _RANGE.fullmatch(name)
    if span is not None:
        first, last = int(span[1]), int(span[2])
        if not first <= last < first + MAX_INDICES:
            raise InvalidInput(field, f"a rising range of at most {MAX_INDICES}", part)
        return [str(number) for number in range(first, last + 1)]
    if not _NAME.fullmatch(name):
        raise InvalidInput(field, _EXPECTED, part)
    return [name]


def offered(metadata: Mapping[str, object]) -> Indices:
    """Returns the indices that a worker offers, for resources that have any."""
    found: Indices = {}
    for key, value in metadata.items():
        if key.startswith(PREFIX):
            items = value if isinstance(value, list | tuple) else (value,)
            names = dict.fromkeys(str(item) for item in items if isinstance(item, str | int))
            if names:
                found[key.removeprefix(PREFIX)] = tuple(names)
    return found


def limit_amounts(metadata: dict[str, object]) -> None:
    """Lowers amounts in merged metadata to the number of indices: each job holds at least one."""
    for resource, names in offered(metadata).items():
        key = resource_key(resource)
        amount = metadata.get(key)
        if not isinstance(amount, int) or isinstance(amount, bool) or amount > len(names):
            metadata[key] = len(names)


def without_shared(found: dict[str, Any], reported: Mapping[str, object]) -> dict[str, Any]:
    """Returns detected metadata without the indices of resources that jobs share.

    If an operator offers more GPUs than exist, several jobs share one.
    """
    counts = {resource: reported.get(resource_key(resource)) for resource in offered(found)}
    shared = {
        indices_key(resource)
        for resource, count in counts.items()
        if isinstance(count, int) and count > len(offered(found)[resource])
    }
    return {key: value for key, value in found.items() if key not in shared}


def pick(
    needs: Iterable[tuple[str, int]], has: Indices, held: Mapping[str, set[str]]
) -> Indices | None:
    """Returns the first free indices for these needs; None if none of them is indexed.

    Raises `LookupError` if too few are free: a claim counts before it assigns.
    """
    picked: Indices = {}
    for resource, amount in needs:
        names = has.get(resource)
        if names is None:
            continue
        taken = held.get(resource, set())
        free = [name for name in names if name not in taken][:amount]
        if len(free) < amount:
            raise LookupError(f"expected free indices of {resource}: {amount}, got {len(free)}")
        picked[resource] = tuple(free)
    return picked or None


def write_indices(indices: Indices) -> str:
    """Encodes indices for a lease."""
    return msgspec.json.encode(indices, order="deterministic").decode()


def read_indices(text: str | None) -> Indices:
    """Decodes what `write_indices` returned."""
    return {} if text is None else _decode(text)


_decode: Final = msgspec.json.Decoder(Indices).decode


def held_by(texts: Iterable[str]) -> dict[str, set[str]]:
    """Returns all indices that these leases hold, by resource."""
    held: dict[str, set[str]] = {}
    for text in texts:
        for resource, names in read_indices(text).items():
            held.setdefault(resource, set()).update(names)
    return held


def variables(indices: Mapping[str, Sequence[str]], vendor: object = None) -> dict[str, str]:
    """Returns the environment variables that tell a job its indices.

    CUDA numbers GPUs by speed unless told to use the bus order, as nvidia-smi does. HIP applies
    CUDA_VISIBLE_DEVICES to what ROCR_VISIBLE_DEVICES leaves, so for AMD GPUs it counts from 0.
    """
    found = {variable_of(resource): ",".join(names) for resource, names in indices.items()}
    gpus = indices.get(GPUS)
    if gpus is not None:
        cuda = [str(n) for n in range(len(gpus))] if vendor == AMD else gpus
        found["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        found["CUDA_VISIBLE_DEVICES"] = ",".join(cuda)
        found["ROCR_VISIBLE_DEVICES"] = ",".join(gpus)
    return found


def variable_of(resource: str) -> str:
    """Returns the name of the variable that lists a job's indices of a resource."""
    return "WINDLASS_RESOURCE_" + re.sub(r"[^A-Z0-9]", "_", resource.upper())


def show_indices(indices: Mapping[str, Sequence[str]]) -> str:
    """Returns indices for people: gpus 0, 1; licences a."""
    return "; ".join(f"{resource} {', '.join(names)}" for resource, names in indices.items())
