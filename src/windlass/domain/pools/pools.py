"""Pools: workers that are started when jobs wait and stopped when they are idle.

A pool's description is kept as JSON. Its workers move in one direction, from `requested` to `gone`.
We record each step before we ask the provider, so that another server knows after a crash what may
exist. `Template` is what we know about the workers of a pool before any has started.
"""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from windlass.domain.matching.clauses import CPUS, canonical_resources, resource_key
from windlass.domain.matching.matching import amount_of
from windlass.domain.matching.room import SHARES, Room
from windlass.domain.matching.shapes import Shape, can_run, shape_mismatches
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import did_you_mean
from windlass.domain.values.quantities import parse_duration_ms

PROVIDERS: Final = ("local", "command", "ec2", "kubernetes", "slurm")
_ELSEWHERE: Final = ("ec2", "kubernetes")  # providers whose machines are never the server's own
POOL_KEY: Final = "pool:name"  # the metadata key that marks a worker as part of a pool
ARCHITECTURES: Final = "system:architectures"
TAGS: Final = "tags"
MICROS: Final = 1_000_000  # of one unit of money
HOUR_MS: Final = 3_600_000

MAX_WORKERS: Final = 10_000
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_BODY_LIMIT: Final = 256 * 1024


class Lifecycle(IntEnum):
    """The state of a pool's worker. The numbers are stored; never reuse one."""

    REQUESTED = 1  # planned: we may have asked the provider
    STARTING = 2  # the provider has it, but it has not enrolled yet
    ONLINE = 3
    DRAINING = 4  # it gets no more jobs
    TERMINATING = 5  # it holds no job, and the provider was asked to end it
    GONE = 6


# States in which a machine exists or may exist, and costs money.
LIVING: Final = (
    Lifecycle.REQUESTED,
    Lifecycle.STARTING,
    Lifecycle.ONLINE,
    Lifecycle.DRAINING,
    Lifecycle.TERMINATING,
)
# States in which it runs jobs, now or soon.
SERVING: Final = (Lifecycle.REQUESTED, Lifecycle.STARTING, Lifecycle.ONLINE)


class PoolState(IntEnum):
    """Whether a pool is wanted. An unwanted one is deleted when its last worker is gone."""

    ACTIVE = 1
    DELETING = 2


class PoolRow(NamedTuple):
    """A pool as stores keep it; `body` is the `Pool`, `learned` its workers' metadata."""

    id: int
    name: str
    state: int
    failures: int  # failed launches in a row
    next_at: int  # start nothing before this time
    started_at: int  # when a worker was last started
    message: str | None  # the provider's last error
    learned: str | None
    body: bytes
    created_at: int
    created_by: str | None
    updated_at: int


class PoolWorkerRow(NamedTuple):
    """A worker of a pool; the provider knows it by `token` and names it `machine`.

    `worker` is its id as a worker, until it is gone.
    """

    id: int
    pool: int
    state: int
    worker: int | None
    last_lease: int  # the newest lease it held
    requested_at: int
    changed_at: int
    idle_since: int | None  # None while it has work or is not online
    charged_until: int
    tries: int  # calls to the provider in this state
    spot: int
    token: str
    machine: str | None
    reason: str | None

    @property
    def known_worker(self) -> int:
        """Returns the id of a worker that is not gone."""
        if self.worker is None:
            raise ValueError(f"worker {self.token} is gone")
        return self.worker


class CostRow(NamedTuple):
    """What a pool cost in a month, for one namespace and queue; both are empty for idle time."""

    pool: str
    month: int  # 202611
    namespace: str
    queue: str
    ms: int
    micros: int


class Pool(Struct, frozen=True, kw_only=True):
    """A pool as described by people; durations in milliseconds, money in millionths."""

    name: str
    provider: str = "local"
    options: dict[str, Any] = {}
    architectures: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    slots: int | None = None  # None means 1, or as many as its resources allow
    resources: dict[str, int] = {}
    target_latency_ms: int = 300_000
    max_idle_ms: int = 300_000
    min_workers: int = 0
    max_workers: int = 1
    max_ms_per_month: int = 0  # 0: no limit
    hourly_price: Annotated[int, Meta(description="millionths")] = 0
    priority: int = 0
    spot: bool = False
    start_timeout_ms: int = 600_000
    start_cooldown_ms: int = 0
    failure_cooldown_ms: int = 30_000
    expected_ms: int = 60_000
    server: str | None = None
    enabled: bool = True

    def template(self) -> dict[str, object]:
        """Returns the metadata of its workers as far as it is known in advance."""
        found: dict[str, object] = {**self.metadata, POOL_KEY: self.name}
        if self.architectures:
            found[ARCHITECTURES] = list(self.architectures)
        if self.tags:
            found[TAGS] = list(self.tags)
        if self.resources:
            found[SHARES] = True  # as agents report it when they start with resources
        return found | {resource_key(name): amount for name, amount in self.resources.items()}

    def at_once(self, metadata: Mapping[str, object]) -> int:
        """Returns how many jobs a worker with this metadata runs at once, as it decides itself."""
        if self.slots is not None:
            return self.slots
        return max(amount_of(metadata, CPUS), 1) if self.resources else 1


# The names that people write, and the fields they set.
_DURATIONS: Final = {
    "target_latency_seconds": "target_latency_ms",
    "max_idle_seconds": "max_idle_ms",
    "max_seconds_per_month": "max_ms_per_month",
    "start_timeout_seconds": "start_timeout_ms",
    "start_cooldown_seconds": "start_cooldown_ms",
    "failure_cooldown_seconds": "failure_cooldown_ms",
    "expected_seconds": "expected_ms",
}
_WHOLE: Final = {
    "slots": (1, 1_000),
    "min_workers": (0, MAX_WORKERS),
    "max_workers": (0, MAX_WORKERS),
    "priority": (-1_000_000, 1_000_000),
}
_FLAGS: Final = ("spot", "enabled")
_LISTS: Final = ("architectures", "tags")
FIELDS: Final = (
    "name", "provider", "options", *_LISTS, "metadata", "resources", *_WHOLE, *_DURATIONS,
    "hourly_price", *_FLAGS, "server",
)  # fmt: skip
_NOT_ZERO: Final = ("target_latency_ms", "start_timeout_ms", "expected_ms")


def parse_pool(given: Mapping[str, object]) -> Pool:
    """Parses a pool from a file or a request; raises `InvalidInput` with the field's name."""
    for field in given:
        if field not in FIELDS:
            known = f"a field of pools, one of {', '.join(FIELDS)}"
            raise InvalidInput(field, known, field, did_you_mean(field, FIELDS))
    values: dict[str, Any] = {"name": _name(given.get("name"))}
    for field, value in given.items():
        if value is not None and field != "name":
            values[_DURATIONS.get(field, field)] = _value(field, value)
    pool = Pool(**values)
    check_pool(pool)
    return pool


def check_pool(pool: Pool) -> None:
    """Raises `InvalidInput` for limits that contradict each other."""
    if pool.provider not in PROVIDERS and ":" not in pool.provider:
        expected = f"one of {', '.join(PROVIDERS)}, or PLUG-IN:PROVIDER"
        raise InvalidInput("provider", expected, pool.provider)
    if pool.min_workers > pool.max_workers:
        expected = f"at most max_workers ({pool.max_workers})"
        raise InvalidInput("min_workers", expected, pool.min_workers)
    for stored in _NOT_ZERO:
        if getattr(pool, stored) <= 0:
            field = next(name for name, there in _DURATIONS.items() if there == stored)
            raise InvalidInput(field, "more than 0", getattr(pool, stored) / 1000)
    if pool.spot and pool.provider != "ec2":
        raise InvalidInput("spot", f"false: {pool.provider} has no spot machines", True)
    if pool.server is not None and not pool.server.startswith(("http://", "https://")):
        raise InvalidInput(
            "server", "an address that its workers can reach, http(s)://…", pool.server
        )
    if len(msgspec.json.encode(pool)) > _BODY_LIMIT:
        raise InvalidInput("options", f"a pool of at most {_BODY_LIMIT} bytes as JSON", "more")


def check_reach(pool: Pool, address: str) -> None:
    """Raises `InvalidInput` if the pool's machines are remote but the server is on loopback."""
    if pool.provider in _ELSEWHERE and pool.server is None and _is_here(address):
        expected = f"given: machines of {pool.provider} cannot reach {address}"
        raise InvalidInput("server", expected, "nothing")


def _is_here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def describe_pool(pool: Pool) -> dict[str, object]:
    """Returns a pool as people write it, with every field."""
    shown: dict[str, object] = {}
    for field in FIELDS:
        value = getattr(pool, _DURATIONS.get(field, field))
        if field in _DURATIONS:
            value = value / 1000 if value % 1000 else value // 1000
        elif field == "hourly_price":
            value = value / MICROS
        shown[field] = list(value) if field in _LISTS else value
    return shown


def backoff_ms(pool: Pool, failures: int) -> int:
    """Returns how long to wait after this many failed launches in a row."""
    return int(min(pool.failure_cooldown_ms * 2 ** min(max(failures - 1, 0), 20), HOUR_MS))


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        expected = "1 to 40 lower-case letters, digits and dashes, such as build-arm64"
        raise InvalidInput("name", expected, value)
    return value


def _value(field: str, value: object) -> object:
    if field in _DURATIONS:
        return parse_duration_ms(value, field)
    if field in _WHOLE:
        return _whole(field, value, *_WHOLE[field])
    if field in _FLAGS:
        if not isinstance(value, bool):
            raise InvalidInput(field, "true or false", value)
        return value
    if field in _LISTS:
        return _texts(field, value)
    if field == "resources":
        return dict(canonical_resources(_mapping(field, value)))
    if field in ("options", "metadata"):
        return dict(_mapping(field, value))
    if field == "hourly_price":
        return _price(value)
    if not isinstance(value, str):
        raise InvalidInput(field, "text", value)
    return value


def _whole(field: str, value: object, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(field, f"a whole number from {low} to {high}", value)
    return value


def _texts(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v for v in value):
        raise InvalidInput(field, "a list of names", value)
    return tuple(value)


def _mapping(field: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(field, "names with values", value)
    return value


def _price(value: object) -> int:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        amount = Decimal(str(value)) * MICROS
        if not 0 <= amount <= 10**12:
            raise ValueError
        return int(amount)
    except (ValueError, InvalidOperation):
        raise InvalidInput("hourly_price", "an amount from 0 to 1000000", value) from None


decode_pool = msgspec.json.Decoder(Pool).decode


class Template(NamedTuple):
    """The metadata of a pool's workers; complete only once we have seen one."""

    pool: str
    metadata: Mapping[str, Any]
    complete: bool
    slots: int

    def could_run(self, shape: Shape) -> bool:
        """Returns True if its workers can run this shape, or if nothing known prevents it."""
        if self.complete:
            return can_run(shape, self.metadata) is None
        return all(m.key not in self.metadata for m in shape_mismatches(shape, self.metadata))

    def room(self, shape: Shape, per_worker: int) -> int:
        """Returns how many jobs of this shape one of its workers takes at once; 0 if none."""
        return room_for(shape, self.metadata, self.slots, per_worker)


def room_for(shape: Shape, metadata: Mapping[str, Any], slots: int, per_worker: int) -> int:
    """Returns how many jobs of this shape an empty worker takes at once."""
    if can_run(shape, metadata) is not None:
        return 0
    return min(slots, Room(metadata).fits(shape, per_worker))


def template_of(row: PoolRow, pool: Pool | None = None) -> Template:
    """Returns the template of this pool's workers."""
    described = decode_pool(row.body) if pool is None else pool
    learned = msgspec.json.decode(row.learned) if row.learned else {}
    metadata = {**learned, **described.template()}
    slots = described.at_once(metadata)
    return Template(row.name, metadata, row.learned is not None, slots)
